import type { Message, ModelRequest, ModelResponse, ResponseFormat, ToolChoice } from "../state/index.ts";
import type { ModelDelta } from "./language-model.ts";

/*
 * The strategy `tool` of structured output: the schema is sent as the parameters of a tool, and the arguments of its call are the text of
 * the answer. Only the wire has the tool and the call: the runtime gets, journals and later sends the answer as text, which every
 * provider can continue.
 */

type SchemaFormat = Extract<ResponseFormat, { type: "json_schema" }>;

/** The name of the tool; a number follows if the agent has a tool of this name. */
export const outputToolName = "final_answer";

const description =
  "Gives your final answer. Call it once, alone, when you have everything that you need; the call ends your work. Do not answer in text.";

/** The texts of the tool, for counting: a longer name is covered by the overhead of a tool. */
export function outputToolText(schema: SchemaFormat["schema"]): string {
  return outputToolName + description + JSON.stringify(schema);
}

/** A request whose answer is the call of a tool. */
export interface OutputToolRequest {
  readonly request: ModelRequest;
  readonly name: string;
  /** Whether the model has to call this tool. */
  readonly isForced: boolean;
}

/**
 * The request with the tool in place of its schema. The tool must be called if there are no others or they may not be called, and some
 * tool must be called after an answer in text that did not fit.
 */
export function withOutputTool(
  request: ModelRequest,
  { schema }: SchemaFormat,
  { forcesTools }: { readonly forcesTools: boolean },
): OutputToolRequest {
  const { tools = [], toolChoice = "auto", messages } = request;
  const name = freeName(tools);
  // As in the parameters of other tools: some servers refuse the member.
  const { $schema: _draft, ...parameters } = schema;
  const sent = { ...request, responseFormat: undefined, tools: [...tools, { name, description, parameters }] };
  const isForced = forcesTools && (tools.length === 0 || toolChoice === "none");
  const choice = isForced ? { tool: name } : otherChoice(toolChoice, forcesTools && isRepair(messages));
  return { request: { ...sent, toolChoice: choice }, name, isForced };
}

function otherChoice(asked: ToolChoice, isForced: boolean): ToolChoice {
  if (asked === "none") return "auto";
  return asked === "auto" && isForced ? "required" : asked;
}

function freeName(tools: NonNullable<ModelRequest["tools"]>): string {
  const taken = new Set(tools.map((tool) => tool.name));
  let name = outputToolName;
  for (let number = 2; taken.has(name); number += 1) name = `${outputToolName}_${number}`;
  return name;
}

/** Whether the last message asks for the answer again: the runtime writes after an answer only if that did not fit. */
function isRepair(messages: readonly Message[]): boolean {
  const [answer, last] = messages.slice(-2);
  const isAnswer = answer?.role === "assistant" && (answer.toolCalls ?? []).length === 0;
  return isAnswer && last?.role === "user" && last.origin === "runtime";
}

/** Between a text and the answer behind it. */
const GAP = "\n\n";

/**
 * The answer with the arguments of the tool's call as its text. Calls of other tools stay: they run, and the model is asked again, since
 * it has not seen their results yet.
 */
export function withoutOutputTool(response: ModelResponse, name: string): ModelResponse {
  const given = response.toolCalls.filter((call) => call.name === name);
  if (given.length === 0) return response;
  const toolCalls = response.toolCalls.filter((call) => call.name !== name);
  const texts = [response.content, ...given.map((call) => call.arguments)];
  const ends = response.finishReason === "tool_calls" && toolCalls.length === 0;
  return {
    ...response,
    content: texts.filter((text) => text !== "").join(GAP),
    toolCalls,
    finishReason: ends ? "stop" : response.finishReason,
  };
}

/** Reports the arguments of the tool's calls as text, and the other calls as if the tool's were not among them. */
export class OutputToolDeltas {
  readonly #name: string;
  readonly #onDelta: (delta: ModelDelta) => void;
  readonly #own = new Set<number>();
  /** Whether a gap precedes the next text of a call. */
  #isBehindText = false;
  #current: number | undefined;

  constructor(name: string, onDelta: (delta: ModelDelta) => void) {
    this.#name = name;
    this.#onDelta = onDelta;
  }

  readonly add = (delta: ModelDelta): void => {
    if (delta.type === "tool-call" && delta.name === this.#name) this.#own.add(delta.index);
    else if (delta.type === "tool-call") this.#onDelta({ ...delta, index: this.#indexOf(delta.index) });
    else if (delta.type !== "tool-arguments") this.#tell(delta, undefined);
    else if (this.#own.has(delta.index)) this.#tell({ type: "text", text: delta.text }, delta.index);
    else this.#onDelta({ ...delta, index: this.#indexOf(delta.index) });
  };

  #tell(delta: Extract<ModelDelta, { type: "text" | "reasoning" }>, call: number | undefined): void {
    if (delta.type === "text" && delta.text !== "") {
      if (call !== this.#current && this.#isBehindText) this.#onDelta({ type: "text", text: GAP });
      this.#current = call;
      this.#isBehindText = true;
    }
    this.#onDelta(delta);
  }

  /** The position among the calls that stay. */
  #indexOf(index: number): number {
    return index - [...this.#own].filter((own) => own < index).length;
  }
}
