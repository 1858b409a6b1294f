import { aiSdkSurface } from "troupe/server";
import type { SurfaceAnswer, SurfaceDriver, SurfaceMessage } from "../../contracts/surfaces.contract.ts";
import { surfaceSuite } from "../../contracts/surfaces.contract.ts";
import { sseFrames } from "../../support/sse-frames.ts";
import { requestOf } from "../served.ts";

/** The fields of the chunks that the suite reads. */
interface Chunk {
  readonly type: string;
  readonly messageId?: string;
  readonly delta?: string;
  readonly approvalId?: string;
  readonly toolMetadata?: { readonly requestId: string };
  readonly messageMetadata?: { readonly status: string };
}

/** A message without a chat or a key opens a new chat; one with a key uses the chat of that key. */
function chatOf({ conversation, key, text }: SurfaceMessage): string {
  return conversation ?? (key === undefined ? `chat of ${text} ${crypto.randomUUID()}` : `chat of ${key}`);
}

/** The chats of the answers, which the protocol does not repeat. */
const chats = new WeakMap<SurfaceMessage, string>();

const driver: SurfaceDriver = {
  surfaces: () => [aiSdkSurface()],
  chosenName: "my chat",
  messageIs: "turn",
  foreignStatus: 200,
  strangerStatus: 404,
  open: (_, message) => {
    const chat = chatOf(message);
    chats.set(message, chat);
    return Promise.resolve(chat);
  },
  request: (message) => {
    const { as, text, key, signal } = message;
    const id = `said in ${key ?? crypto.randomUUID()}`;
    return requestOf("/ai-sdk/desk", {
      as,
      method: "POST",
      body: { id: chatOf(message), messages: [{ id, role: "user", parts: [{ type: "text", text }] }] },
      ...(signal ? { signal } : {}),
    });
  },
  read: async (_, response, message): Promise<SurfaceAnswer> => {
    const { status, headers } = response;
    const waitsFor: string[] = [];
    let [turn, text, isOver] = ["", "", false];
    if (status !== 200) await response.text();
    for await (const { data } of status === 200 ? sseFrames(response) : []) {
      if (data === "[DONE]") break;
      const chunk = JSON.parse(data) as Chunk;
      if (chunk.type === "start") turn = chunk.messageId ?? "";
      if (chunk.type === "start-step") text = "";
      if (chunk.type === "text-delta") text += chunk.delta;
      if (chunk.approvalId !== undefined) waitsFor.push(chunk.approvalId);
      if (chunk.toolMetadata !== undefined) waitsFor.push(chunk.toolMetadata.requestId);
      isOver = chunk.type === "finish" && chunk.messageMetadata?.status === "completed";
    }
    const conversation = message.conversation ?? chats.get(message) ?? chatOf(message);
    const isReplayed = headers.get("idempotency-replayed") === "true";
    return { status, text: isOver ? text : null, waitsFor: isOver ? [] : waitsFor, isReplayed, conversation, turn };
  },
  decide: (id, verdict, as, { conversation, turn }) => {
    const part = {
      type: "tool-remove",
      toolCallId: id.slice(0, id.lastIndexOf(":")),
      state: "approval-responded",
      input: {},
      approval: { id, approved: verdict === "approve" },
    };
    const messages = [{ id: turn, role: "assistant", parts: [{ type: "step-start" }, part] }];
    return requestOf("/ai-sdk/desk", { as, method: "POST", body: { id: conversation, messages } });
  },
};

// Tests of plain messages to a waiting turn are left out: here they decide nothing, because approvals and tool outputs do.
surfaceSuite("AI SDK", driver);
