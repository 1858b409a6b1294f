/**
 * The answers of the model server, serialised once per model name. Owns the mapping from (model name, tool results since
 * the last user message) to the text of an answer; independent of HTTP.
 *
 * Names are `one`, or a kind and a count: `loop-10`, `child-2`, `calls-8`, `spawn-50`, `stream-512`.
 */

/** The final answer of every model except `stream-N`. */
export const answerText = "The bench is done: every step was taken and every result was read.";

/**
 * Tokens that an answer reports: about its real number, calls included, as a provider does. If it reported fewer, a library
 * that checks usage would count the text itself.
 */
function usageOf({ pieces, calls }: Answer): object {
  const [prompt, completion] = [40, Math.max(20, pieces.length * 2 + calls.length * 12)];
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

/**
 * Server-sent events per write of a stream: few enough to arrive in pieces, enough that the server is not the bottleneck.
 */
const eventsPerPiece = 16;

interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

interface Answer {
  readonly pieces: readonly string[];
  readonly calls: readonly ToolCall[];
}

/** Placeholder for the id of an answer; `withId` replaces it with an id of the same length. */
const idPlaceholder = "chatcmpl-000000000";

export interface SerialisedAnswer {
  /** The body of a `chat.completion`. */
  readonly whole: string;
  /** The same as server-sent events, one string per write, including usage and `[DONE]`. */
  readonly streamed: readonly string[];
}

/** A body, or a piece of one, with a unique id: some clients treat two messages with one id as the same message. */
export function withId(text: string, answer: number): Buffer {
  return Buffer.from(text.replaceAll(idPlaceholder, `chatcmpl-${String(answer).padStart(9, "0")}`));
}

export interface ModelBehaviour {
  /**
   * The answer to a request by its number of tool messages after the last user message; `undefined` if that is impossible.
   */
  answer(toolMessages: number): SerialisedAnswer | undefined;
}

/** The final text of a turn with this model. */
export function expectedText(model: string): string {
  const { kind, count } = parseModel(model) ?? { kind: "one", count: 1 };
  return kind === "stream" ? streamPieces(count).join("") : answerText;
}

/** The behaviour for a model name; `undefined` if the name is not known. */
export function modelBehaviour(model: string): ModelBehaviour | undefined {
  const parsed = parseModel(model);
  if (parsed === undefined) return undefined;
  const { kind, count } = parsed;
  const last = serialise(model, { pieces: kind === "stream" ? streamPieces(count) : [answerText], calls: [] });
  if (kind === "calls" || kind === "spawn") {
    const first = serialise(model, { pieces: [], calls: range(count).map(kind === "calls" ? lookupCall : childCall) });
    return { answer: (toolMessages) => (toolMessages === 0 ? first : toolMessages === count ? last : undefined) };
  }
  const steps = kind === "loop" || kind === "child" ? count : 1;
  const answers = range(steps - 1).map((step) => serialise(model, { pieces: [], calls: [lookupCall(step)] }));
  answers.push(last);
  return { answer: (toolMessages) => answers[toolMessages] };
}

function parseModel(model: string): { kind: string; count: number } | undefined {
  if (model === "one") return { kind: "one", count: 1 };
  const match = /^(loop|child|calls|spawn|stream)-([1-9][0-9]{0,4})$/.exec(model);
  return match === null ? undefined : { kind: match[1] ?? "", count: Number(match[2]) };
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

function streamPieces(count: number): readonly string[] {
  return range(count).map((index) => `word${index} `);
}

function lookupCall(index: number): ToolCall {
  return toolCall(index, "lookup", { key: `key-${index}` });
}

function childCall(index: number): ToolCall {
  return toolCall(index, "child", { input: `Look after part ${index}.` });
}

function toolCall(index: number, name: string, args: Readonly<Record<string, string>>): ToolCall {
  return { id: `call_${name}_${index}`, type: "function", function: { name, arguments: JSON.stringify(args) } };
}

function serialise(model: string, answer: Answer): SerialisedAnswer {
  return { whole: JSON.stringify(completion(model, answer)), streamed: serverSentEvents(model, answer) };
}

function completion(model: string, answer: Answer): object {
  const { pieces, calls } = answer;
  const content = calls.length === 0 ? pieces.join("") : null;
  const message = { role: "assistant", content, refusal: null, ...(calls.length === 0 ? {} : { tool_calls: calls }) };
  const choice = { index: 0, message, logprobs: null, finish_reason: finishReason(calls) };
  return { ...envelope(model, "chat.completion"), choices: [choice], usage: usageOf(answer) };
}

function serverSentEvents(model: string, answer: Answer): readonly string[] {
  const { pieces, calls } = answer;
  const chunk = (delta: object, finish: string | null) => ({
    ...envelope(model, "chat.completion.chunk"),
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
  });
  const chunks: readonly object[] = [
    chunk({ role: "assistant", content: calls.length === 0 ? "" : null }, null),
    ...pieces.map((content) => chunk({ content }, null)),
    ...calls.map((call, index) => chunk({ tool_calls: [{ index, ...call }] }, null)),
    chunk({}, finishReason(calls)),
    { ...envelope(model, "chat.completion.chunk"), choices: [], usage: usageOf(answer) },
  ];
  const events = [...chunks.map((body) => `data: ${JSON.stringify(body)}\n\n`), "data: [DONE]\n\n"];
  const writes = range(Math.ceil(events.length / eventsPerPiece));
  return writes.map((index) => events.slice(index * eventsPerPiece, (index + 1) * eventsPerPiece).join(""));
}

function envelope(model: string, object: string): object {
  return { id: idPlaceholder, object, created: 1_700_000_000, model };
}

function finishReason(calls: readonly ToolCall[]): string {
  return calls.length === 0 ? "stop" : "tool_calls";
}
