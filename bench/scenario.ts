/** The activity of a turn: only answer, call tools, stream its text, or run subagents. */
export type AgentKind = "plain" | "tools" | "streaming" | "lead";

/** One row of the table. Every contender does the same work. */
export interface Scenario {
  readonly name: string;
  /** For people, one line. */
  readonly title: string;
  readonly agent: AgentKind;
  /** The model names for the agent and, if it has any, for its subagents; they select the model server's behaviour. */
  readonly model: string;
  readonly childModel?: string;
  /** Number of concurrent conversations. */
  readonly parallel: number;
  /** Sequential turns of one conversation with a growing history. */
  readonly turns: number;
  /** Model calls per turn, including subagents. A sample with another number of calls fails. */
  readonly callsPerTurn: number;
  /** Conversations per sample, in a full and in a quick run. */
  readonly conversations: { readonly full: number; readonly quick: number };
  /** `turns/s` of all parallel conversations, or milliseconds from a turn's input to its result (mean of the sample). */
  readonly unit: "turns/s" | "ms/turn";
}

export const instructions = "You are one of many. Use the tools when they help, then answer in one sentence.";
export const childInstructions = "You look after one part. Look it up, then answer in one sentence.";
export const userInput = "Please do the work and tell me when it is done.";

/** The only tool of the bench. It returns at once, so that only the code around it is measured. */
export async function lookup(key: string): Promise<string> {
  return `The value of ${key} is 42.`;
}

export const scenarios: readonly Scenario[] = [
  {
    name: "turns-1",
    title: "conversations of 5 turns, one model call a turn, one at a time",
    agent: "plain",
    model: "one",
    parallel: 1,
    turns: 5,
    callsPerTurn: 1,
    conversations: { full: 60, quick: 20 },
    unit: "turns/s",
  },
  {
    name: "turns-64",
    title: "the same, 64 at a time",
    agent: "plain",
    model: "one",
    parallel: 64,
    turns: 5,
    callsPerTurn: 1,
    conversations: { full: 64, quick: 64 },
    unit: "turns/s",
  },
  {
    name: "loop-10",
    title: "one turn of 10 steps: nine tool calls, one after the other, then the answer",
    agent: "tools",
    model: "loop-10",
    parallel: 1,
    turns: 1,
    callsPerTurn: 10,
    conversations: { full: 30, quick: 10 },
    unit: "ms/turn",
  },
  {
    name: "calls-8",
    title: "one turn of 2 steps: eight tool calls at once, then the answer",
    agent: "tools",
    model: "calls-8",
    parallel: 1,
    turns: 1,
    callsPerTurn: 2,
    conversations: { full: 150, quick: 40 },
    unit: "ms/turn",
  },
  {
    name: "stream-16",
    title: "16 streams at a time, 512 chunks each, every piece of text read by a listener",
    agent: "streaming",
    model: "stream-512",
    parallel: 16,
    turns: 1,
    callsPerTurn: 1,
    conversations: { full: 48, quick: 16 },
    unit: "ms/turn",
  },
  {
    name: "subagents-50",
    title: "one turn that runs 50 subagents at once, each with one tool call and an answer",
    agent: "lead",
    model: "spawn-50",
    childModel: "child-2",
    parallel: 1,
    turns: 1,
    callsPerTurn: 102,
    conversations: { full: 5, quick: 2 },
    unit: "ms/turn",
  },
];
