import type { Json, JsonObject, ModelTool } from "../state/index.ts";
import { oneLine, type ToolResult } from "./offline-request.ts";
import { stemsIn, termsOf } from "./offline-words.ts";

export interface PlannedCall {
  readonly name: string;
  readonly arguments: { readonly [name: string]: Json };
}

const operators = new Map(Object.entries({ "+": "add sum", "-": "subtract", "*": "multiply", "/": "divide" }));
const freeText = /^(?:query|q|text|question|input|prompt|message|content|task|body|note|expression|request|what)$/i;
/** Quotations, addresses and paths, numbers, and names: capitals that do not just begin a sentence. */
const values =
  /["“]([^"“”\n]+)["”]|([\w.+-]+@[\w-]+(?:\.[\w-]+)+|https?:\/\/[^\s"'<>]+|[\w-]+(?:\/[\w.-]+)+)|(?<![\w.])(-?\d[\d,]*(?:\.\d+)?)(?!\w)|(?<![.!?]\s*|^\s*)(?!I\b)(\p{Lu}[\p{L}\p{N}'’-]*(?:\s\p{Lu}[\p{L}\p{N}'’-]*)*)/gu;
const mostCalls = 8;

/**
 * Calls of the tools that a message names, or else of the one whose name and description fit it best, or else of all
 * subagents with the whole message. A text says which arguments the message lacks; it is empty if no tool fits.
 */
export function callsFor(tools: readonly ModelTool[], message: string): readonly PlannedCall[] | string {
  const spoken = message.replaceAll(/(?<=\d )[-+*/](?= \d)/g, (sign) => operators.get(sign) ?? sign);
  const words = message.toLowerCase().split(/[^\w-]+/);
  const named = tools.filter(({ name }) => words.includes(name.toLowerCase()));
  const stems = new Set(stemsIn([...termsOf(spoken).values()].join(" ")));
  const fitting = tools.filter((tool) => !isSubagent(tool)).map((tool) => ({ tool, fit: fitOf(tool, stems) }));
  const [best] = fitting.filter(({ fit }) => fit > 0).sort((one, other) => other.fit - one.fit);
  const others = stems.size > 0 ? tools.filter(isSubagent) : [];
  const chosen = named.length > 0 ? named : best === undefined ? others : [best.tool];
  const plans = chosen.map((tool) => callsOf(tool, message));
  const calls = plans.flatMap((plan) => (typeof plan === "string" ? [] : plan));
  return calls.length > 0 ? calls : plans.join("\n");
}

function isSubagent({ description }: ModelTool): boolean {
  return /\b(?:sub-?agents?|delegat(?:e|es|ing|ion)|another agent|an? (?:\w+ )?agent)\b/i.test(description);
}

/** 0 when the tool does not fit: at least a word of its name, or two of its description, must be in the message. */
function fitOf({ name, description }: ModelTool, stems: ReadonlySet<string>): number {
  const countIn = (text: string): number => [...termsOf(text).keys()].filter((stem) => stems.has(stem)).length;
  const byName = countIn(name.replaceAll(/[_-]|(?<=[a-z])(?=[A-Z])/g, " "));
  const byDescription = countIn(description);
  return byName === 0 && byDescription < 2 ? 0 : 3 * byName + byDescription;
}

/**
 * Gives the required parameters of a tool the values of the message that have their types, in the order of both. A second
 * name for the only parameter ("in Oslo and in Rome") makes a second call.
 */
function callsOf(tool: ModelTool, message: string): readonly PlannedCall[] | string {
  const material = Array.from(
    message.replaceAll(tool.name, "").matchAll(values),
    ([, quoted, address, number, name]) =>
      number === undefined ? (quoted ?? address ?? name ?? "") : Number(number.replaceAll(",", "")),
  );
  const take = (type: string): Json | undefined => {
    const at = material.findIndex((value) => typeof value === type);
    return at < 0 ? undefined : material.splice(at, 1)[0];
  };
  const required = [tool.parameters["required"] ?? []].flat();
  const given: Record<string, Json> = {};
  const missing: string[] = [];
  for (const [name, schema] of Object.entries(tool.parameters["properties"] ?? {}) as [string, JsonObject][]) {
    const type = String([schema["type"] ?? "string"].flat()[0]).replace("integer", "number");
    const choices = schema["enum"];
    const valueOf = (): Json | undefined => {
      if (Array.isArray(choices)) return choices.find((choice) => message.toLowerCase().includes(String(choice)));
      if (!required.includes(name)) return undefined;
      if (type === "array") return material.splice(0);
      if (type === "boolean") return !/\b(?:false|no|not|off)\b/i.test(message);
      const whole = freeText.test(name) && required.length === 1 && !/["“]/.test(message) ? message : undefined;
      const phrase = /\b(?:in|for|of|to|about|named|from|at|with)\s+(?:the\s+)?([^?.!,;]+)/i.exec(message)?.[1]?.trim();
      return type === "string" ? (whole ?? take(type) ?? phrase) : take(type);
    };
    const value = valueOf();
    if (value !== undefined) given[name] = value;
    else if (required.includes(name)) missing.push(`${name} (${[choices ?? type].flat().join(" or ")})`);
  }
  if (missing.length > 0) return `To call ${tool.name} I need ${missing.join(", ")}.`;
  const [only] = required.length === 1 ? required : [];
  const more =
    typeof only === "string" && typeof given[only] === "string" && given[only] !== message
      ? material.filter((value) => typeof value === "string")
      : [];
  const sets = [given, ...more.map((value) => ({ ...given, [String(only)]: value }))];
  return sets.slice(0, mostCalls).map((set) => ({ name: tool.name, arguments: set }));
}

/** An answer that passes on the tools' results. */
export function answerFromTools(results: readonly ToolResult[]): string {
  const [{ name, isError, text }, ...others] = results as [ToolResult, ...ToolResult[]];
  if (others.length === 0 && isError) return `The tool ${name} failed: ${oneLine(text)}`;
  if (others.length === 0) return /\s\S+\s/.test(text) ? text : `${name}: ${text || "done"}`;
  const lines = results.map(
    (one) => `- ${one.name} ${one.arguments}: ${one.isError ? "failed: " : ""}${one.text || "done"}`,
  );
  return lines.join("\n");
}
