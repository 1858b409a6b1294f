import { agUiSurface } from "troupe/server";
import type { SurfaceAnswer, SurfaceDriver, SurfaceMessage } from "../../contracts/surfaces.contract.ts";
import { surfaceSuite } from "../../contracts/surfaces.contract.ts";
import { sseFrames } from "../../support/sse-frames.ts";
import { requestOf } from "../served.ts";

/** The fields of the events that the suite reads. */
interface Event {
  readonly type: string;
  readonly messageId?: string;
  readonly delta?: string;
  readonly stepName?: string;
  readonly outcome?: { readonly interrupts?: readonly { readonly id: string }[] };
  readonly messages?: readonly { readonly id: string; readonly role: string; readonly content?: string }[];
}

/** A message without a thread or a key opens a new thread; one with a key uses the thread of that key. */
function threadOf({ conversation, key, text }: SurfaceMessage): string {
  return conversation ?? (key === undefined ? `thread of ${text} ${crypto.randomUUID()}` : `thread of ${key}`);
}

const driver: SurfaceDriver = {
  surfaces: () => [agUiSurface()],
  chosenName: "my thread",
  messageIs: "turn",
  foreignStatus: 200,
  strangerStatus: 404,
  request: (message) => {
    const { as, text, key, signal } = message;
    const runId = key ?? crypto.randomUUID();
    const messages = [{ id: `said in ${runId}`, role: "user", content: text }];
    return requestOf("/ag-ui/desk", {
      as,
      method: "POST",
      body: { threadId: threadOf(message), runId, messages },
      ...(signal ? { signal } : {}),
    });
  },
  read: async (_, response): Promise<SurfaceAnswer> => {
    let turn = "";
    let text: string | null = null;
    let waitsFor: readonly string[] = [];
    let conversation = "";
    for await (const { data } of sseFrames(response)) {
      const event = JSON.parse(data) as Event & { readonly threadId?: string };
      if (event.type === "RUN_STARTED") conversation = event.threadId ?? "";
      if (event.type === "TEXT_MESSAGE_START") text = null;
      if (event.type === "TEXT_MESSAGE_CONTENT") {
        text = (text ?? "") + event.delta;
        turn = event.messageId?.split(":")[0] ?? "";
      }
      // A run that was started before receives the stored messages.
      const last = event.messages?.at(-1);
      if (last?.role === "assistant") [turn = "", text = null] = [last.id.split(":")[0], last.content ?? null];
      if (event.type === "RUN_FINISHED") waitsFor = (event.outcome?.interrupts ?? []).map(({ id }) => id);
    }
    const isReplayed = response.headers.get("idempotency-replayed") === "true";
    return { status: response.status, text, waitsFor, isReplayed, conversation, turn };
  },
  decide: (interruptId, verdict, as, { conversation }) =>
    requestOf("/ag-ui/desk", {
      as,
      method: "POST",
      body: {
        threadId: conversation,
        runId: crypto.randomUUID(),
        messages: [],
        resume: [{ interruptId, status: "resolved", payload: { approved: verdict === "approve" } }],
      },
    }),
};

// Tests of plain messages to a waiting turn are left out: in AG-UI they decide nothing, because `resume` does.
surfaceSuite("AG-UI", driver);
