import type { Json, JsonObject, ModelTool } from "../state/index.ts";
import { oneLine, type ToolResult } from "./offline-request.ts";
import { stemsIn, termsOf } from "./offline-search.ts";

export interface PlannedCall {
  readonly name: string;
  readonly arguments: { readonly [name: string]: Json };
}

const operators = new Map(Object.entries({ "+": "add sum", "-": "subtract", "*": "multiply", "/": "divide" }));
const freeText = /^(?:query|q|text|question|input|prompt|message|content|task|body|note|expression|request|what)$/i;
/** Numbers; quotations; addresses and paths; names (capitalized words that do not begin a sentence). */
const values =
  /(?<![\w.])(-?\d[\d,]*(?:\.\d+)?)(?!\w)|["“]([^"“”\n]+)["”]|(?<![\w.+-])([\w.+-]+@[\w-]+(?:\.[\w-]+)+|https?:\/\/[^\s"'<>]+|[\w-]+(?:\/[\w.-]+)+)|(?=\p{Lu})(?<![.!?]\s*|^\s*)(?!I\b)(\p{Lu}[\p{L}\p{N}'’-]*(?:\s\p{Lu}[\p{L}\p{N}'’-]*)*)/gu;
const subagentWords = /\b(?:sub-?agents?|delegat(?:e|es|ing|ion)|another agent|an? (?:\w+ )?agent)\b/i;
const mostCalls = 8;

/**
 * Calls of the tools that a message names, else of the one whose name and description fit it best, else of all subagents with the
 * complete message. If arguments are missing, the result is a text that lists them; it is empty if no tool fits.
 */
export function callsFor(tools: readonly ModelTool[], message: string): readonly PlannedCall[] | string {
  const spoken = message.replaceAll(/(?<=\d )[-+*/](?= \d)/g, (sign) => operators.get(sign) ?? sign);
  const words = message.toLowerCase().split(/[^\w-]+/);
  const named = tools.filter(({ name }) => words.includes(name.toLowerCase()));
  const stems = new Set(stemsIn([...termsOf(spoken).values()].join(" ")));
  const subagents = tools.filter(({ description }) => subagentWords.test(description));
  const fitting = tools.filter((tool) => !subagents.includes(tool)).map((tool) => ({ tool, fit: fitOf(tool, stems) }));
  const [best] = fitting.filter(({ fit }) => fit > 0).sort((one, other) => other.fit - one.fit);
  const others = stems.size > 0 ? subagents : [];
  const chosen = named.length > 0 ? named : best === undefined ? others : [best.tool];
  const plans = chosen.map((tool) => callsOf(tool, message));
  const calls = plans.flatMap((plan) => (typeof plan === "string" ? [] : plan));
  return calls.length > 0 ? calls : plans.filter((plan) => typeof plan === "string").join("\n");
}

/** 0 if the tool does not fit: the message must contain a word of its name, or two of its description. */
function fitOf({ name, description }: ModelTool, stems: ReadonlySet<string>): number {
  const countIn = (text: string): number => [...termsOf(text).keys()].filter((stem) => stems.has(stem)).length;
  const byName = countIn(name.replaceAll(/[_-]|(?<=[a-z])(?=[A-Z])/g, " "));
  const byDescription = countIn(description);
  return byName === 0 && byDescription < 2 ? 0 : 3 * byName + byDescription;
}

/**
 * Fills the required parameters of a tool with values from the message by type and order. A second name for the only parameter ("in Oslo
 * and in Rome") makes a second call.
 */
function callsOf(tool: ModelTool, message: string): readonly PlannedCall[] | string {
  const found = [...message.replaceAll(tool.name, "").matchAll(values)];
  const numbers = found.flatMap(([, number]) => (number === undefined ? [] : [Number(number.replaceAll(",", ""))]));
  const texts = found.flatMap(([, , ...forms]) => forms.find((text) => text !== undefined) ?? []);
  const [first] = texts;
  const said = new Set(stemsIn(message));
  const required = new Set([tool.parameters["required"]].flat());
  const valueOf = (name: string, { enum: choices, type }: JsonObject): Json | undefined => {
    if (Array.isArray(choices)) return choices.find((choice) => stemsIn(`${choice}`).every((stem) => said.has(stem)));
    if (!required.has(name)) return undefined;
    if (type === "array") return texts.length > 0 ? texts.splice(0) : numbers.splice(0);
    if (type === "boolean") return !/\b(?:false|no|not|off)\b/i.test(message);
    if (type === "number" || type === "integer") return numbers.shift();
    if (freeText.test(name) && required.size === 1 && !/["“]/.test(message)) return message;
    const [, phrase] = /\b(?:in|for|of|to|about|named|from|at|with) (?:the )?([^?.!,;]+)/i.exec(message) ?? [];
    return texts.shift() ?? phrase?.trim();
  };
  const parameters = Object.entries((tool.parameters["properties"] ?? {}) as { [name: string]: JsonObject });
  const given = parameters.map(([name, schema]) => [name, valueOf(name, schema), schema] as const);
  const missing = given.filter(([name, value]) => value === undefined && required.has(name));
  if (missing.length > 0) {
    const wanted = missing.map(([name, , { enum: choices, type }]) => `${name} (${JSON.stringify(choices ?? type)})`);
    return `To call ${tool.name} I need ${wanted.join(", ").replaceAll('"', "")}.`;
  }
  const used = given.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  const others = required.size === 1 && used.some(([, value]) => value === first) ? texts : [];
  return [undefined, ...others].slice(0, mostCalls).map((other) => ({
    name: tool.name,
    arguments: Object.fromEntries(used.map(([name, value]) => [name, required.has(name) ? (other ?? value) : value])),
  }));
}

/** An answer that contains the tools' results. */
export function answerFromTools(results: readonly ToolResult[]): string {
  const [{ name, isError, text }, ...others] = results as [ToolResult, ...ToolResult[]];
  if (others.length === 0 && isError) return `The tool ${name} failed: ${oneLine(text)}`;
  if (others.length === 0) return /\s\S+\s/.test(text) ? text : `${name}: ${text}`;
  return results.map((one) => `- ${one.name} ${one.arguments}: ${one.isError ? "failed: " : ""}${one.text}`).join("\n");
}
