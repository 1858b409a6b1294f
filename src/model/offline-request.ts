import { type JsonObject, type Message, type ModelRequest, textOf } from "../state/index.ts";
import { wordsOf } from "./offline-words.ts";

/** A tool call of the open turn, with its result. */
export interface ToolResult {
  readonly name: string;
  readonly arguments: JsonObject;
  readonly text: string;
  readonly isError: boolean;
}

/** A request in the form from which the engine plans, without the tools. */
export interface Assignment {
  readonly question: string;
  /** The user's question before this one, for follow-ups. */
  readonly previousQuestion: string | undefined;
  /** The file that a delegating agent named. */
  readonly file: string | undefined;
  /** Text of all system messages. */
  readonly instructions: string;
  /** True when the answer goes to another agent, not to a person. */
  readonly isDelegated: boolean;
  /** Finished calls since the question, in order. */
  readonly results: readonly ToolResult[];
  /** All messages before the question, oldest first. */
  readonly earlier: readonly Message[];
}

const questionFields = ["question", "query", "task", "input", "prompt", "request", "message", "text"];
const fileFields = ["file", "path", "document", "source", "filename"];
const delegationWords =
  /\byou(?:'re| are) an? (?:sub-?agent|reader)\b|\bfor (?:another|the lead|the parent|the calling) agent\b|\b(?:to|for) the lead\b|\bdelegated to you\b/i;

/** Reads a request: the user's last question, and the calls made for it so far. */
export function assignmentOf(request: ModelRequest): Assignment {
  const { messages } = request;
  const asked = messages.findLastIndex((message) => message.role === "user" && message.origin === "user");
  const at = asked >= 0 ? asked : messages.findLastIndex((message) => message.role === "user");
  const prompt = at < 0 ? "" : textOf(messages[at]?.content ?? "");
  const earlier = messages.slice(0, Math.max(0, at));
  const instructions = messages
    .flatMap((message) => (message.role === "system" ? [textOf(message.content)] : []))
    .join("\n\n");
  const previous = earlier.findLast((message) => message.role === "user");
  const delegated = readDelegated(prompt);
  return {
    question: delegated.question,
    previousQuestion: previous === undefined ? undefined : readDelegated(textOf(previous.content)).question,
    file: delegated.file,
    instructions,
    isDelegated: delegated.isObject || delegationWords.test(instructions),
    results: resultsOf(messages.slice(at + 1)),
    earlier,
  };
}

/** A delegated task comes as a JSON object, as `File: …` and `Question: …` lines, or as a plain question. */
function readDelegated(prompt: string): { question: string; file: string | undefined; isObject: boolean } {
  const object = parseObject(prompt);
  if (object !== undefined) {
    const question = stringField(object, questionFields);
    if (question !== undefined) return { question, file: stringField(object, fileFields), isObject: true };
  }
  const file = labelled(prompt, "file|path|document|source");
  const question = labelled(prompt, "question|task|query");
  return { question: question ?? prompt.trim(), file, isObject: false };
}

function labelled(prompt: string, labels: string): string | undefined {
  return new RegExp(`^[ \\t]*(?:${labels})[ \\t]*:[ \\t]*(\\S[^\\n]*)$`, "im")
    .exec(prompt)?.[1]
    ?.trim()
    .replace(/^[`"'](.*)[`"']$/, "$1");
}

function stringField(object: JsonObject, names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = Object.hasOwn(object, name) ? object[name] : undefined;
    if (typeof value === "string" && value.trim() !== "") return value.trim();
  }
  return undefined;
}

function resultsOf(messages: readonly Message[]): ToolResult[] {
  const calls = new Map<string, { name: string; arguments: JsonObject }>();
  const results: ToolResult[] = [];
  for (const message of messages) {
    if (message.role === "assistant") {
      for (const call of message.toolCalls ?? [])
        calls.set(call.callId, { name: call.name, arguments: parseObject(call.arguments) ?? {} });
    }
    if (message.role !== "tool") continue;
    const call = calls.get(message.callId) ?? { name: "", arguments: {} };
    results.push({ ...call, text: plainText(textOf(message.content)), isError: message.isError === true });
  }
  return results;
}

/** The words of a result that may be wrapped in an object, as an agent's `{ status, text }`. */
function plainText(text: string): string {
  const object = parseObject(text);
  if (object === undefined) return text;
  return stringField(object, ["text", "result", "answer", "output", "content"]) ?? text;
}

export function parseObject(text: string): JsonObject | undefined {
  if (!text.trimStart().startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
  } catch {
    return undefined;
  }
}

/** Paths written in a text: they have a slash or end in a short extension. */
export function pathsIn(text: string): string[] {
  const found = text.match(/[\w@.-]+(?:\/[\w@.-]+)+|[\w@-]+(?:\.[\w-]+)*\.[a-z][a-z0-9]{0,7}\b/gi) ?? [];
  return [...new Set(found.map((path) => path.replace(/\.$/, "")))].filter((path) => wordsOf(path).length > 0);
}

export function oneLine(text: string): string {
  return text.replace(/\s+/gu, " ").trim();
}
