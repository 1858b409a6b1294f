import { setTimeout as delay } from "node:timers/promises";
import type { ServerReply, WireRequestBody } from "../../test/support/model-server.ts";

/** What a turn of the soak is about; its message says it. */
export const turnKinds = ["plain", "look", "child", "approve", "queued", "abort"] as const;
export type TurnKind = (typeof turnKinds)[number];

/** Of twenty turns of an agent: five have a child, one is aborted, one waits for a person. */
export function kindOf(turn: number): TurnKind {
  if (turn % 4 === 1) return "child";
  if (turn % 20 === 7) return "abort";
  if (turn % 20 === 11) return "approve";
  if (turn % 5 === 3) return "queued";
  return turn % 2 === 0 ? "look" : "plain";
}

const SLOWEST_MS = 5;
/** A turn that is to be aborted has its answer no sooner. */
const HANGS_MS = 60_000;

/** The same for the same conversation: one call of what the last message names, then an end. */
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
