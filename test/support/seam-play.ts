import type { AgentOptions, LanguageModel, ModelResponse, Runtime, RuntimeOptions } from "../../src/index.ts";
import { defineAgent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

/** A foreign value in place of a valid one: returned while it is on, and the valid value otherwise. */
export class Foreign {
  #isOn = false;
  #value: () => unknown = () => undefined;

  get isOn(): boolean {
    return this.#isOn;
  }

  on(value: () => unknown): void {
    this.#isOn = true;
    this.#value = value;
  }

  off(): void {
    this.#isOn = false;
  }

  /** Replaces the valid value. */
  or<Right>(right: Right): Right {
    return this.#isOn ? (this.#value() as Right) : right;
  }

  /** Throws in code that otherwise does nothing. */
  thrown(): void {
    if (this.#isOn) throw this.#value();
  }
}

/** One point at which a value from user code enters. */
export interface Seam {
  readonly name: string;
  define(foreign: Foreign): AgentOptions;
  /** Further options of its runtime. */
  readonly runtime?: Pick<RuntimeOptions, "work">;
}

/** The second answer of the adapter, which is the last after any calls in the first. */
export const rightAnswer: ModelResponse = {
  content: "done",
  toolCalls: [],
  usage: { inputTokens: 5, outputTokens: 2 },
  finishReason: "stop",
  model: "foreign",
};

export const callOf = (name: string, args: object = {}): ModelResponse => ({
  ...rightAnswer,
  content: "",
  toolCalls: [{ id: "call-1", name, arguments: JSON.stringify(args) }],
  finishReason: "tool_calls",
});

/** A custom adapter: it answers a user's prompt with `first`, and then returns its last answer. */
export function adapter(first: () => unknown, more: Partial<LanguageModel> = {}): LanguageModel {
  return {
    name: "foreign",
    provider: "nobody",
    countPromptTokens: () => 10,
    generate: async ({ messages }) => (messages.at(-1)?.role === "user" ? await first() : rightAnswer) as ModelResponse,
    ...more,
  };
}

export const worker = (options: Partial<AgentOptions> = {}): AgentOptions => ({
  name: "worker",
  model: adapter(() => rightAnswer),
  maxModelAttempts: 1,
  ...options,
});

export const childDefinition = defineAgent({ name: "child", model: scriptedModel("a child's answer") });

/** Runs a turn of the agent to its end. A turn that waits for a person is aborted. */
export async function playTurn(runtime: Runtime, agentId: string): Promise<string> {
  const agent = await runtime.agent("worker", { agentId });
  await agent.start();
  const turn = agent.executeTurn("go");
  // With a subscriber, answers are streamed and progress is reported.
  turn.subscribe(() => undefined);
  const rest = await turn.settled;
  if (rest.status === "waiting") await turn.abort("no person is there");
  return (await turn.result).status;
}
