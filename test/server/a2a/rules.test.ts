import { a2aSurface } from "troupe/server";
import { type SurfaceAnswer, type SurfaceDriver, surfaceSuite } from "../../contracts/surfaces.contract.ts";
import { requestOf } from "../served.ts";
import { EXTENSION } from "../../../src/server/a2a/read-message.ts";

/** The fields of a task that the suite reads. */
interface Task {
  readonly id?: string;
  readonly contextId?: string;
  readonly status?: {
    readonly state: string;
    readonly message?: {
      readonly parts: readonly { readonly metadata: { requestId: string; argumentsHash: string } }[];
    };
  };
  readonly artifacts?: readonly { readonly parts: readonly { readonly text?: string }[] }[];
}

const surface = await a2aSurface();
let sent = 0;
const post = (as: SurfaceAnswerOf, message: object, signal?: AbortSignal): Request =>
  requestOf("/a2a/desk/message:send", {
    as,
    method: "POST",
    body: { message: { role: "ROLE_USER", ...message } },
    headers: { "a2a-version": "1.0" },
    ...(signal ? { signal } : {}),
  });
type SurfaceAnswerOf = Parameters<typeof requestOf>[1] extends infer Asked | undefined
  ? Asked extends { as?: infer As }
    ? As
    : never
  : never;

const driver: SurfaceDriver = {
  surfaces: () => [surface],
  messageIs: "decision",
  chosenName: "holiday",
  foreignStatus: 200,
  strangerStatus: 404,
  request: ({ as, text, conversation, key, signal }) => {
    sent += 1;
    const contextId = conversation ?? (key === undefined ? undefined : "keyed");
    return post(as, { messageId: key ?? `m-${sent}`, contextId, parts: [{ text }] }, signal);
  },
  read: async (_, response): Promise<SurfaceAnswer> => {
    const { task = {} } = (await response.json()) as { task?: Task };
    const { id = "", contextId = "", status, artifacts } = task;
    return {
      status: response.status,
      text: status?.state === "TASK_STATE_COMPLETED" ? (artifacts?.at(-1)?.parts[0]?.text ?? null) : null,
      waitsFor: (status?.message?.parts ?? []).map(({ metadata }) => JSON.stringify([id, metadata])),
      isReplayed: response.headers.get("idempotency-replayed") === "true",
      conversation: contextId,
      turn: id,
    };
  },
  decide: (request, verdict, as) => {
    const [taskId, { requestId, argumentsHash }] = JSON.parse(request) as [
      string,
      { requestId: string; argumentsHash: string },
    ];
    sent += 1;
    const data = { requestId, argumentsHash, verdict: verdict === "approve" ? "approved" : "rejected" };
    return post(as, { messageId: `m-${sent}`, taskId, extensions: [EXTENSION], parts: [{ data }] });
  },
};

surfaceSuite("A2A", driver);
