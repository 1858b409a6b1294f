import type { Json, ModelTool } from "../state/index.ts";
import { choiceText, fillArguments, type Parameter, parametersOf } from "./offline-arguments.ts";
import { oneLine, parseObject, type ToolResult } from "./offline-request.ts";
import { isStopWord, stemOf, wordsOf } from "./offline-words.ts";

export interface PlannedCall {
  readonly name: string;
  readonly arguments: { readonly [name: string]: Json };
}

/** The tools that a message asks for: with their arguments, or with the missing ones. */
interface ToolChoice {
  readonly calls: readonly PlannedCall[];
  readonly incomplete: readonly { readonly tool: ModelTool; readonly missing: readonly Parameter[] }[];
}

const operatorWords: readonly (readonly [RegExp, string])[] = [
  [/\d\s*\+\s*\d|\bplus\b/i, "add plus sum"],
  [/\d\s+-\s+\d|\bminus\b/i, "subtract minus difference"],
  [/\d\s*[*×]\s*\d|\btimes\b/iu, "multiply times product"],
  [/\d\s*[/÷]\s*\d|\bdivided by\b/iu, "divide quotient"],
];

/**
 * Chooses the tools that a message names, or else the one whose name and description fit it best. If none can be
 * called, the whole message goes to the subagents that it names, or else to all.
 */
export function chooseTools(tools: readonly ModelTool[], message: string): ToolChoice {
  const delegates = tools.filter(isDelegate);
  const plain = tools.filter((tool) => !delegates.includes(tool));
  const choice = choosePlain(plain, message);
  if (choice.calls.length > 0 || delegates.length === 0 || contentStems(message).size === 0) return choice;
  const named = delegates.filter((tool) => message.toLowerCase().includes(tool.name.toLowerCase()));
  return { calls: (named.length > 0 ? named : delegates).map((tool) => delegation(tool, message)), incomplete: [] };
}

const questionParameter = /^(?:question|task|input|prompt|request|instructions?|message|goal|query)$/i;

function isDelegate(tool: ModelTool): boolean {
  return (
    parametersOf(tool).some(({ name, type }) => questionParameter.test(name) && type === "string") &&
    /\b(?:sub-?agents?|delegat(?:e|es|ing|ion)|another agent|an? (?:\w+ )?agent)\b/i.test(
      `${tool.name.replaceAll(/[_-]/g, " ")}. ${tool.description.replaceAll(/\s+/g, " ")}`,
    )
  );
}

function delegation(tool: ModelTool, message: string): PlannedCall {
  const parameters = parametersOf(tool);
  const question = parameters.find(({ name }) => questionParameter.test(name))?.name ?? "input";
  const others = parameters.filter(
    ({ name, type, isRequired }) => isRequired && type === "string" && name !== question,
  );
  return {
    name: tool.name,
    arguments: {
      [question]: message,
      ...Object.fromEntries(others.map(({ name, choices }) => [name, choices[0] ?? message])),
    },
  };
}

function choosePlain(tools: readonly ModelTool[], message: string): ToolChoice {
  const operators = operatorWords.flatMap(([pattern, words]) => (pattern.test(message) ? [words] : [])).join(" ");
  const stems = contentStems(`${message} ${operators}`);
  const named = tools.filter((tool) => isNamed(tool, message));
  const fitting = tools.map((tool) => ({ tool, fit: fitOf(tool, stems) })).filter(({ fit }) => fit > 0);
  const best = fitting.sort((left, right) => right.fit - left.fit)[0]?.tool;
  const chosen = named.length > 0 ? named : best === undefined ? [] : [best];
  const calls: PlannedCall[] = [];
  const incomplete: { tool: ModelTool; missing: readonly Parameter[] }[] = [];
  for (const tool of chosen) {
    const filled = fillArguments(tool, withoutName(tool, message));
    if (filled.ok) calls.push(...filled.sets.map((set) => ({ name: tool.name, arguments: set })));
    else incomplete.push({ tool, missing: filled.missing });
  }
  return { calls, incomplete };
}

function isNamed(tool: ModelTool, message: string): boolean {
  return wordsOf(message).some((word) => word.text.toLowerCase() === tool.name.toLowerCase());
}

/** Removes the tool's name, which is not an argument for it. */
function withoutName(tool: ModelTool, message: string): string {
  return message.replaceAll(new RegExp(`\\b${tool.name.replaceAll("-", "\\-")}\\b(?!\\s*[:=])`, "gi"), " ");
}

/** 0 when the tool does not fit: at least a word of its name, or two of its description, must be in the message. */
function fitOf(tool: ModelTool, stems: ReadonlySet<string>): number {
  const name = contentStems(tool.name.replaceAll(/[_-]/g, " ").replaceAll(/(?<=[a-z])(?=[A-Z])/g, " "));
  const about = contentStems(tool.description.replaceAll(/\be\.g\..*|\bfor example\b.*/gi, " "));
  const byName = [...name].filter((stem) => stems.has(stem)).length;
  const byDescription = [...about].filter((stem) => stems.has(stem)).length;
  return byName === 0 && byDescription < 2 ? 0 : 3 * byName + byDescription;
}

function contentStems(text: string): ReadonlySet<string> {
  const words = wordsOf(text).filter((word) => !isStopWord(word.text.toLowerCase()) && !/^\d+$/.test(word.text));
  return new Set(words.flatMap((word) => [stemOf(word.text), ...word.parts]));
}

/** An answer that passes on the tools' results. */
export function answerFromTools(results: readonly ToolResult[]): string {
  const [only] = results;
  if (results.length === 1 && only !== undefined) {
    if (only.isError) return `The tool ${only.name} failed: ${oneLine(only.text)}`;
    return /\s\S+\s/.test(only.text.trim()) && parseObject(only.text) === undefined
      ? only.text.trim()
      : `${only.name}: ${readable(only.text)}`;
  }
  return results
    .map(
      (result) =>
        `- ${result.name}${argumentList(result)}: ${result.isError ? "failed: " : ""}${readable(result.text)}`,
    )
    .join("\n");
}

function argumentList(result: ToolResult): string {
  const pairs = Object.entries(result.arguments).map(
    ([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return pairs.length === 0 ? "" : ` (${pairs.join(", ")})`;
}

function readable(text: string): string {
  const object = parseObject(text);
  if (object === undefined) return text.trim() === "" ? "done" : text.trim();
  return Object.entries(object)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
}

/** Asks for the arguments that a tool call still needs. */
export function missingText(choice: ToolChoice): string {
  return choice.incomplete
    .map(
      ({ tool, missing }) =>
        `To call ${tool.name} I need ${missing.map((parameter) => `${parameter.name} (${parameter.choices.length > 0 ? parameter.choices.map(choiceText).join(" or ") : parameter.type})`).join(", ")}.`,
    )
    .join("\n");
}
