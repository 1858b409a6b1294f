import { setTimeout as delay } from "node:timers/promises";
import type { ServerReply, WireRequestBody } from "../../test/support/model-server.ts";

/** The kind of a soak turn; it is in the turn's message. */
export const turnKinds = ["plain", "look", "child", "approve", "queued", "abort"] as const;
export type TurnKind = (typeof turnKinds)[number];

/** Twenty turns of an agent: five have a child, one is aborted, one waits for a person. */
export function kindOf(turn: number): TurnKind {
  if (turn % 4 === 1) return "child";
  if (turn % 20 === 7) return "abort";
  if (turn % 20 === 11) return "approve";
  if (turn % 5 === 3) return "queued";
  return turn % 2 === 0 ? "look" : "plain";
}

const SLOWEST_MS = 5;
/** Least duration of an answer in a turn that is aborted. */
const HANGS_MS = 60_000;

/** A deterministic model: one call of the tool in the last message, then an answer. */
export function soakAnswer(body: WireRequestBody, gone: AbortSignal): ServerReply {
  const begin = body.messages.findLastIndex(({ role }) => role === "user");
  const content = body.messages[begin]?.content;
  const kind = typeof content === "string" ? content : "";
  const isOver = body.messages.length > begin + 1;
  const delayUntil = delay(Math.random() * SLOWEST_MS);
  if (kind === "abort")
    return { text: "late", delayUntil: delay(HANGS_MS, undefined, { signal: gone }).catch(() => undefined) };
  if (isOver || kind === "plain") return { text: `done: ${kind}`, delayUntil };
  const given = kind === "child" ? { input: "look" } : { note: "n".repeat(200) };
  return { toolCalls: [{ name: kind, arguments: given }], delayUntil };
}
