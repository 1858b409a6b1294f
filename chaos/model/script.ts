import type { ServerReply, WireRequestBody } from "../../test/support/model-server.ts";

/** The calls of one answer: tools of chaos/worker-agents.ts. Several calls in one answer run in parallel. */
type Round = readonly string[];

/** The rounds of each model before its final answer. An agent's actions follow from its model's name. */
export const plans: Readonly<Record<string, readonly Round[]>> = {
  lead: [["look", "charge", "send", "book"], ["charge", "helper", "helper"], ["send"]],
  helper: [["charge", "book", "scribe"], ["look"]],
  scribe: [["send", "charge"]],
  // Models of chaos/workers/team.ts, whose tools except `look` run on a queue.
  foreman: [
    ["look", "charge", "send"],
    ["hand", "book"],
  ],
  hand: [["charge"]],
  porter: [
    ["charge", "send", "book", "charge", "send", "book", "charge", "look"],
    ["charge"],
    ["send", "charge", "book"],
  ],
  // The model of chaos/serving/team.ts, with `hand` from above.
  desk: [
    ["look", "charge", "send"],
    ["hand", "book"],
  ],
  // Rounds of the teller of chaos/serving/team.ts, by the kind at the end of its task.
  "teller-talk": [],
  "teller-work": [
    ["look", "charge", "send"],
    ["hand", "book"],
  ],
  "teller-pay": [["pay"]],
  "teller-sign": [["sign"]],
  "teller-stamp": [["stamp"]],
  "teller-ask": [["ask_user"]],
  "teller-drone": [],
  // One model call, no tools.
  talker: [],
  // Models whose tools kill their worker.
  dies: [["die"]],
  "dies-once": [["dieOnce"]],
  "dies-here": [["dieHere"]],
  stops: [["stop"]],
};

/** The tools that `fan` calls, in order. */
const fanned: Round = ["charge", "send", "look", "book"];
const WIDEST = 8;

/**
 * `crowd:N` requests N talkers at once. `fan` requests the number of calls at the end of its task, then the rest of nine.
 * `teller` requests the calls named at the end of its task.
 */
function planOf({ model, task }: Pick<ModelCallLine, "model" | "task">): readonly Round[] | undefined {
  const [, count] = /^crowd:(\d+)$/.exec(model) ?? [];
  if (count !== undefined) return [Array.from({ length: Number(count) }, () => "talker")];
  const [, deed] = (model === "teller" && /-to-(\w+)$/.exec(task)) || [];
  if (deed !== undefined) return plans[`teller-${deed}`];
  const [, width] = (model === "fan" && /-wide-([1-8])$/.exec(task)) || [];
  if (width === undefined) return plans[model];
  return [Number(width), WIDEST + 1 - Number(width)].map(fanOf);
}

function fanOf(width: number): Round {
  return Array.from({ length: width }, (_, at) => fanned[at % fanned.length] ?? "look");
}

const subagents: ReadonlySet<string> = new Set(["helper", "scribe", "hand", "talker"]);
/** Prefix of the user's message; the conversation's name follows. */
export const taskPrefix = "TASK ";
/** Prefix of a teller's question. */
export const questionPrefix = "what for ";
/** Prefix of a call by a hook or tool; the name of the calling run follows. */
export const sidePrefix = "SIDE ";

/** A tool result as sent to the model. */
export interface ToldResult {
  /** The round of the call, from 1, and its index in the round, from 0. */
  readonly step: number;
  readonly index: number;
  readonly text: string;
}

/** A request, reduced to the fields that the checks compare with the journal. */
export interface ModelCallLine {
  readonly at: number;
  readonly model: string;
  /** The name in the user's message; for a side call the whole message. */
  readonly task: string;
  /** Round number from 1; 0 for a side call. */
  readonly step: number;
  readonly told: readonly ToldResult[];
  /** Whether each round's calls are followed by exactly their results. */
  readonly isLegal: boolean;
}

/** A logged request with its cost, whether or not the process survives to receive the answer. */
export interface BilledCallLine extends ModelCallLine {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** The tokens of an answer: fewer than any reservation, and different for each request. */
export function billOf(body: WireRequestBody, reply: ServerReply): { inputTokens: number; outputTokens: number } {
  const said = (reply.text ?? "") + JSON.stringify(reply.toolCalls ?? "");
  const inputTokens = Math.ceil(JSON.stringify(body.messages).length / 5);
  return { inputTokens, outputTokens: Math.max(1, Math.ceil(said.length / 3)) };
}

export function readRequest(body: WireRequestBody, at: number): ModelCallLine {
  const [only] = body.messages;
  if (textIn(only?.content).startsWith(sidePrefix)) {
    const { model } = body;
    return { at, model, task: textIn(only?.content), step: 0, told: [], isLegal: body.messages.length === 1 };
  }
  const first = body.messages.findIndex(({ role, content }) => role === "user" && isTask(content));
  const task = textIn(body.messages[first]?.content).slice(taskPrefix.length);
  const told: ToldResult[] = [];
  let step = 0;
  let open: string[] = [];
  let asked: readonly string[] = [];
  let isLegal = first >= 0;
  for (const message of body.messages.slice(first + 1)) {
    if (message.role === "tool") {
      const id = message.tool_call_id ?? "";
      isLegal &&= open.includes(id);
      open = open.filter((one) => one !== id);
      told.push({ step, index: asked.indexOf(id), text: textIn(message.content) });
      continue;
    }
    isLegal &&= open.length === 0;
    // The adapter inserts an answer without calls between results and a user message; it does not count as a step.
    if (message.role !== "assistant" || message.tool_calls === undefined) continue;
    step += 1;
    asked = message.tool_calls.map(({ id }) => id);
    open = [...asked];
  }
  isLegal &&= open.length === 0;
  return { at, model: body.model, task, step: step + 1, told, isLegal };
}

function isTask(content: unknown): boolean {
  return textIn(content).startsWith(taskPrefix);
}

function textIn(content: unknown): string {
  return typeof content === "string" ? content : "";
}

/** A deterministic model: the same conversation gets the same answer. */
export function answerTo({ model, task, step, told }: ModelCallLine): ServerReply {
  if (step === 0) return { text: `noted ${task}` };
  const plan = planOf({ model, task });
  if (!plan) return { status: 404, errorBody: { error: { message: `there is no model "${model}"` } } };
  const round = plan[step - 1];
  if (!round) {
    const text = `DONE ${task}: ${told.map((result) => result.text).join("; ")}`;
    return model === "teller" ? spoken(task.endsWith("-to-drone") ? `${text}${DRONING}` : text) : { text };
  }
  return {
    toolCalls: round.map((name, index) => ({
      name,
      arguments: argumentsOf(name, task, `${step}.${index}`),
    })),
  };
}

function argumentsOf(name: string, task: string, place: string): Readonly<Record<string, string>> {
  if (name === "ask_user") return { question: `${questionPrefix}${task}?` };
  return subagents.has(name) ? { input: `${taskPrefix}${task}/${place}` } : { note: place };
}

/** Text that a teller adds to make its answer long. */
const DRONING = " and so on".repeat(50);
const LONGEST_PIECE = 6;
const PIECE_MS = 50;

/** An answer in pieces with delays, in which a server can die. */
function spoken(text: string): ServerReply {
  const deltas = text.match(new RegExp(`.{1,${LONGEST_PIECE}}`, "gs")) ?? [];
  return { text, deltas, gapMs: PIECE_MS };
}
