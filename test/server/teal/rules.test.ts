import { tealSurface } from "troupe/server";
import { type SurfaceAnswer, type SurfaceDriver, surfaceSuite } from "../../contracts/surfaces.contract.ts";
import { requestOf } from "../served.ts";

/** The fields of Teal's answers that the suite reads. */
interface TealAnswer {
  readonly task_id?: string;
  readonly request_id?: string;
  readonly status?: string;
  readonly content?: { readonly output?: string; readonly tool_calls?: readonly unknown[] };
}

const driver: SurfaceDriver = {
  surfaces: (runtime) => {
    const definition = runtime.definitions.get("desk");
    if (definition === undefined) throw new Error("the suite serves an agent desk");
    return [tealSurface({ agents: [{ definition, version: "0.1" }] })];
  },
  messageIs: "decision",
  foreignStatus: 401,
  strangerStatus: 401,
  request: ({ as, text, conversation, key, signal }) =>
    requestOf("/desk/0.1", {
      as,
      method: "POST",
      body: { items: [{ content: text }], ...(conversation === undefined ? {} : { task_id: conversation }) },
      headers: key === undefined ? {} : { "idempotency-key": key },
      ...(signal ? { signal } : {}),
    }),
  read: async (_, response): Promise<SurfaceAnswer> => {
    const { task_id: task = "", request_id: request = "", content } = (await response.json()) as TealAnswer;
    return {
      status: response.status,
      text: content?.output ?? null,
      // A decision covers all open calls of its request.
      waitsFor: (content?.tool_calls ?? []).map(() => request),
      isReplayed: response.headers.get("idempotency-replayed") === "true",
      conversation: task,
      turn: request,
    };
  },
  decide: (requestId, action, as) =>
    requestOf(`/desk/0.1/tealagents/v1alpha1/resume/${requestId}`, { as, method: "POST", body: { action } }),
};

surfaceSuite("Teal Agents", driver);
