import type { ServerReply, WireRequestBody } from "../../test/support/model-server.ts";
import { type BilledCallLine, readRequest, taskPrefix } from "../model/script.ts";
import { fractionOf } from "../../src/testing/simulation/seeded-random.ts";

/** A request in the log of the spending server. */
export interface SpendingLine extends BilledCallLine {
  /** Number of open requests when it arrived, including itself. */
  readonly atOnce: number;
}

/** A client that disconnected while it waited for an answer that is never sent. */
export interface GoneLine {
  readonly task: string;
  readonly step: number;
  readonly at: number;
}

interface Answer {
  readonly reply: ServerReply;
  readonly line: BilledCallLine;
  /** Whether the answer is never sent. */
  readonly hangs: boolean;
}

/** Least and most tokens of an answer, unless the request allows fewer. */
const OUTPUT_TOKENS = [60, 400] as const;

/**
 * The answers of the models of the spending scenarios, by name. `fan:N` requests N children and then answers. `steps:N`
 * requests a tool until its N-th answer, `endless` always does, and `endless-fan` also requests a child every third time. A
 * `leaf` never gets its answer, waits in a tool, or requests one tool after the other, depending on its task.
 */
export function spendingAnswer(body: WireRequestBody, at: number): Answer {
  const call = readRequest(body, at);
  const { model, task, step } = call;
  const toolCalls = callsOf(model, task, step);
  const reply: ServerReply = { text: `DONE ${task}`, ...(toolCalls.length > 0 ? { toolCalls } : {}) };
  const [least, most] = OUTPUT_TOKENS;
  const wished = Math.round(least + fractionOf(`${task}:${step}`) * (most - least));
  // A text costs about one token per four characters. A reasoning model bills more, no model bills less.
  const said = Math.ceil(JSON.stringify(reply).length / 4);
  const outputTokens = Math.min(Math.max(wished, said), Number(body["max_completion_tokens"] ?? Infinity));
  const usage = { inputTokens: Math.ceil(JSON.stringify(body.messages).length / 5), outputTokens };
  const hangs = model === "leaf" && leafKindOf(task) === "hangs";
  return { reply: { ...reply, usage }, line: { ...call, ...usage }, hangs };
}

function callsOf(model: string, task: string, step: number) {
  const [kind, number] = model.split(":");
  const count = Number(number ?? 0);
  const look = { name: "look", arguments: {} };
  const child = (index: number) => ({ name: "child", arguments: { input: `${taskPrefix}${task}/${step}.${index}` } });
  if (kind === "fan" && step === 1) return Array.from({ length: count }, (_, index) => child(index));
  if (kind === "steps" && step < count) return [look];
  if (kind === "leaf") return leafKindOf(task) === "waits" ? [{ name: "wait", arguments: {} }] : [look];
  if (kind === "endless") return [look];
  if (kind === "endless-fan") return step % 3 === 1 ? [look, child(1)] : [look];
  return [];
}

const leafKinds = ["hangs", "waits", "looks"] as const;

/** The behaviour of a leaf, by its task. */
export function leafKindOf(task: string): (typeof leafKinds)[number] {
  return leafKinds[Math.floor(fractionOf(task) * leafKinds.length)] ?? "hangs";
}
