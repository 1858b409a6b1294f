import { redactedText } from "../base/index.ts";
import { type Message, type ModelRequest, textOf } from "../state/index.ts";
import { lineDiff } from "./line-diff.ts";

/** The part of a request that differs. */
export type RequestPart = "model" | "system prompt" | "messages" | "tools" | "settings" | "response format";

/** A request and the model that it is for. */
export interface AskedRequest {
  readonly model: { readonly provider: string; readonly name: string };
  readonly request: ModelRequest;
}

/** One difference between a recorded value and the value of now. */
export interface Difference<Part extends string = string> {
  readonly part: Part;
  readonly expected: unknown;
  readonly got: unknown;
  /** A unified diff of the lines that differ. */
  readonly diff: string;
}

/** All differences of two requests, in the order in which a person wants to read them. */
export function requestDifferences(expected: AskedRequest, got: AskedRequest): Difference<RequestPart>[] {
  const [one, other] = [partsOf(expected), partsOf(got)];
  return (Object.keys(one) as RequestPart[]).flatMap((part) => differenceOf(part, one[part], other[part]));
}

/** None or one difference of two values. */
export function differenceOf<Part extends string>(part: Part, expected: unknown, got: unknown): Difference<Part>[] {
  if (isSameValue(expected, got)) return [];
  const diff = lineDiff(linesOf(expected), linesOf(got), isSameText);
  return [{ part, expected, got, diff }];
}

function partsOf({ model, request }: AskedRequest): Record<RequestPart, unknown> {
  const { messages, tools = [], responseFormat = null, ...settings } = request;
  const [first] = messages;
  const system = first?.role === "system" ? first : undefined;
  return {
    model: `${model.provider}/${model.name}`,
    "system prompt": textOf(system?.content ?? ""),
    messages: (system ? messages.slice(1) : messages).map(sentForm),
    tools,
    settings,
    "response format": responseFormat,
  };
}

/** The fields of a message that a model sees. */
export function sentForm(message: Message): Record<string, unknown> {
  const { role, content } = message;
  if (role === "assistant") {
    const { toolCalls, reasoning } = message;
    return { role, content, ...(toolCalls ? { toolCalls } : {}), ...(reasoning ? { reasoning } : {}) };
  }
  if (role !== "tool") return { role, content };
  const { callId, isError } = message;
  return { role, callId, content, ...(isError ? { isError } : {}) };
}

/** Whether two JSON values are equal; a redacted text of the recording equals any text that fits around it. */
export function isSameValue(expected: unknown, got: unknown): boolean {
  if (expected === got) return true;
  if (typeof expected === "string") {
    return expected === redactedText || (typeof got === "string" && isSameText(expected, got));
  }
  if (typeof expected !== "object" || typeof got !== "object" || expected === null || got === null) return false;
  if (Array.isArray(expected) !== Array.isArray(got)) return false;
  const names = new Set([...Object.keys(expected), ...Object.keys(got)]);
  for (const name of names) {
    if (!isSameValue(Reflect.get(expected, name), Reflect.get(got, name))) return false;
  }
  return true;
}

function isSameText(expected: string, got: string): boolean {
  if (expected === got) return true;
  const [first = "", ...others] = expected.split(redactedText);
  const last = others.pop();
  if (last === undefined || got.length < first.length + last.length) return false;
  if (!got.startsWith(first) || !got.endsWith(last)) return false;
  let from = first.length;
  for (const part of others) {
    const at = got.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  return from + last.length <= got.length;
}

function linesOf(value: unknown): string[] {
  if (value === undefined) return [];
  if (typeof value === "string") return value.split("\n");
  if (Array.isArray(value) && value.every(isSentForm)) return value.flatMap(messageLines);
  return JSON.stringify(value, null, 2).split("\n");
}

function isSentForm(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && "role" in value;
}

function messageLines({ role, content, ...more }: Record<string, unknown>): string[] {
  const text = typeof content === "string" ? content.split("\n") : JSON.stringify(content, null, 2).split("\n");
  const others = Object.keys(more).length === 0 ? [] : JSON.stringify(more, null, 2).split("\n");
  return [`[${String(role)}]`, ...text, ...others];
}
