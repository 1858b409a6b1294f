import { type Message, type ModelRequest, type ModelTool, textOf } from "../state/index.ts";
import { passagesOf } from "./offline-passages.ts";
import { termsOf } from "./offline-search.ts";

/** A tool call of the open turn and its result; the arguments are JSON text. */
export interface ToolResult {
  readonly name: string;
  readonly arguments: string;
  readonly text: string;
  readonly isError: boolean;
}

/** A request in the form that the engine plans from. */
export interface Assignment {
  /** The last message of the user; in another agent's task the text after `Question:`. */
  readonly prompt: string;
  /** The text after `File:` in another agent's task. */
  readonly file: string | undefined;
  /** The questions in the prompt, with their significant words by stem. */
  readonly questions: readonly { readonly text: string; readonly terms: ReadonlyMap<string, string> }[];
  /** Earlier messages, oldest first. */
  readonly earlier: readonly { readonly role: Exclude<Message["role"], "tool">; readonly text: string }[];
  /** Finished calls since the question, in order. */
  readonly results: readonly ToolResult[];
  /** The tools that the engine may call. */
  readonly tools: readonly ModelTool[];
}

const unknownCall = { name: "", arguments: "{}" };
const asking =
  /^(?:who|what|when|where|why|which|how|is|are|am|do|does|did|can|could|will|would|should|tell me|list|name|explain|describe|find|show)\b/i;
const nextQuestion = /[,;]?\s+and\s+(?=(?:who|what|when|where|why|which|how|does|is|are|can)\b)/i;

function choosable(tools: readonly ModelTool[], choice: ModelRequest["toolChoice"]): readonly ModelTool[] {
  if (choice === "none") return [];
  return typeof choice === "object" ? tools.filter(({ name }) => name === choice.tool) : tools;
}

/** Converts a request; removes `closingLine` from earlier answers. */
export function assignmentOf({ messages, tools = [], toolChoice }: ModelRequest, closingLine: string): Assignment {
  const byPerson = messages.findLastIndex(({ role, origin }) => role === "user" && origin === "user");
  const at = byPerson >= 0 ? byPerson : messages.findLastIndex(({ role }) => role === "user");
  const before = messages.slice(0, Math.max(0, at)).filter((message) => message.role !== "tool");
  const after = messages.slice(at + 1).filter((message) => message.role === "tool");
  const said = (message: Message | undefined): string => textOf(message?.content ?? "").replaceAll(closingLine, "");
  const task = said(messages[at]);
  const prompt = (/^question: *(\S.*)$/im.exec(task)?.[1] ?? task).trim();
  const sentences = sentencesIn(prompt);
  const marked = sentences.filter((sentence) => sentence.endsWith("?"));
  const asked = marked.length > 0 ? marked : sentences.filter((sentence) => asking.test(sentence));
  const calls = messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []));
  return {
    prompt,
    file: /^file: *(\S.*)$/im.exec(task)?.[1]?.trim(),
    questions: asked.flatMap((text) => text.split(nextQuestion)).map((text) => ({ text, terms: termsOf(text) })),
    earlier: before.map((message) => ({ role: message.role, text: said(message) })),
    results: after.map((message) => {
      const { name, arguments: given } = calls.find(({ callId }) => callId === message.callId) ?? unknownCall;
      return { name, arguments: given, text: said(message).trim() || "done", isError: message.isError === true };
    }),
    tools: choosable(tools, toolChoice),
  };
}

export function sentencesIn(text: string): string[] {
  return passagesOf("message.md", text.split("\n")).map((passage) => passage.text);
}

export function oneLine(text: string): string {
  return text.replace(/\s+/gu, " ").trim();
}
