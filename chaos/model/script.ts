import type { ServerReply, WireRequestBody } from "../../test/support/model-server.ts";

/** What one answer of the model asks for: tools of chaos/worker-agents.ts, several in one answer run in parallel. */
type Round = readonly string[];

/** The rounds of each model before its final answer; what each agent does follows from its model's name. */
export const plans: Readonly<Record<string, readonly Round[]>> = {
  lead: [["look", "charge", "send", "book"], ["charge", "helper", "helper"], ["send"]],
  helper: [["charge", "book", "scribe"], ["look"]],
  scribe: [["send", "charge"]],
  // Those of chaos/workers/team.ts, whose tools but `look` run on a queue.
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
  // That of chaos/serving/team.ts, with the hand of above.
  desk: [
    ["look", "charge", "send"],
    ["hand", "book"],
  ],
  // Those of the teller of chaos/serving/team.ts, whose tasks end with what is to be done.
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
  // One call, no tool.
  talker: [],
  // Those whose tools are the end of their worker.
  dies: [["die"]],
  "dies-once": [["dieOnce"]],
  "dies-here": [["dieHere"]],
  stops: [["stop"]],
};

/** What `fan` calls, one after the other. */
const fanned: Round = ["charge", "send", "look", "book"];
const WIDEST = 8;

/**
 * `crowd:N` asks for N talkers at once, `fan` for as many calls as its task ends with, then for the rest of nine, `teller` for
 * what its task ends with.
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
/** The user's message begins with it; what follows names the conversation. */
export const taskPrefix = "TASK ";
/** A question of a teller begins with it. */
export const questionPrefix = "what for ";
/** A call made by a hook or a tool begins with it; what follows names the run that asks. */
export const sidePrefix = "SIDE ";

/** A tool result as the model was told it. */
export interface ToldResult {
  /** The round that asked for it, from 1, and its place there, from 0. */
  readonly step: number;
  readonly index: number;
  readonly text: string;
}

/** A request, reduced to what the checks compare with the journal. */
export interface ModelCallLine {
  readonly at: number;
  readonly model: string;
  /** What the user's message names; the whole message of a side call. */
  readonly task: string;
  /** From 1; 0 for a side call. */
  readonly step: number;
  readonly told: readonly ToldResult[];
  /** Each round's calls are followed by exactly their results. */
  readonly isLegal: boolean;
}

/** A request as it is logged: with its cost, whether or not the process lives to receive the answer. */
export interface BilledCallLine extends ModelCallLine {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** What an answer costs: fewer tokens than any bound that is reserved for it, and other ones for each request. */
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
    // The adapter separates results and a user's message by an answer without calls, which does not count as a step.
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

/** The same answer for the same conversation: a model without whims. */
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

/** What a teller adds when its answer is to take long. */
const DRONING = " and so on".repeat(50);
const LONGEST_PIECE = 6;
const PIECE_MS = 50;

/** An answer in pieces, with time between them in which a server can die. */
function spoken(text: string): ServerReply {
  const deltas = text.match(new RegExp(`.{1,${LONGEST_PIECE}}`, "gs")) ?? [];
  return { text, deltas, gapMs: PIECE_MS };
}
