import { z } from "zod";
import { listRule, nearestNames, optionsOf, ruleOf, textRule } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { defineTool, type Tool } from "../tools/index.ts";
import { wordsOf } from "./words.ts";

/** Options of `deferredTools()`. */
export interface DeferredToolsOptions {
  /** Names of tools that stay in the prompt. Default: none. */
  readonly keep?: readonly string[] | undefined;
}

const MOST_FOUND = 5;
/** The most characters of a result, in UTF-16 units; a single schema may be longer. */
const MOST_SHOWN = 24_000;

/**
 * Keeps many tools out of the prompt: the model gets `search_tools` and `call_tool` instead, and the prompt's prefix stays the same. A call
 * through `call_tool` is a call of the tool that it names: its schema, approval, effect class, queue, limits, guards and hooks apply, under
 * its own name. Returns all tools for an agent's `tools`. Throws `InvalidInputError` for invalid options.
 * @param given Tools made by `defineTool()` or `mcp()`.
 */
export function deferredTools(
  given: readonly Tool<never>[],
  options: DeferredToolsOptions = {},
): readonly Tool<never>[] {
  const { keep = [] } = optionsOf<DeferredToolsOptions>(options, "deferredTools()", {
    rules: { keep: listRule("a list of names of tools", textRule) },
    instead: { always: "keep", except: "keep" },
  });
  const tools = toolsIn(given);
  const names = new Set(tools.map(({ name }) => name));
  for (const name of keep) {
    if (names.has(name)) continue;
    const [nearest] = nearestNames(name, [...names]);
    const hint = nearest === undefined ? "" : `; the nearest name is ${JSON.stringify(nearest.name)}`;
    throw new InvalidInputError(
      `deferredTools(): keep has ${JSON.stringify(name)}, which is not the name of a tool${hint}`,
    );
  }
  const kept = tools.filter(({ name }) => keep.includes(name));
  const deferred = tools
    .filter(({ name }) => !keep.includes(name))
    .map((tool): Tool<never> => Object.freeze({ ...tool, deferred: true as const }));
  return Object.freeze([...kept, searchTool(deferred), callTool(deferred), ...deferred]);
}

const functionTool = ruleOf(
  "a tool made by defineTool() or mcp(); give others, such as subagents and client tools, to the agent itself",
  (value) => typeof value === "object" && value !== null && "kind" in value && value.kind === "function",
);

function toolsIn(given: readonly Tool<never>[]): readonly Tool<never>[] {
  const tools = listRule("a list of tools", functionTool)(given, "deferredTools(): tools") as readonly Tool<never>[];
  return [...tools];
}

function searchTool(deferred: readonly Tool<never>[]): Tool<never> {
  const search = searchOf(deferred);
  return defineTool({
    name: "search_tools",
    description:
      "Finds further tools by what they do. Returns their names, descriptions and parameters; use them with call_tool. Search before you decide that something cannot be done.",
    parameters: z.object({ query: z.string().max(1_000).describe("What you want to do, or the name of a tool.") }),
    effect: "none",
    maxOutputCharacters: 1_000_000,
    execute: ({ query }) => {
      const lines: string[] = [];
      let room = MOST_SHOWN;
      for (const { name, description, jsonSchema } of search(query).slice(0, MOST_FOUND)) {
        const line = JSON.stringify({ name, description, parameters: jsonSchema });
        room -= line.length;
        if (room < 0 && lines.length > 0) break;
        lines.push(line);
      }
      return lines.length === 0 ? "No tool fits. Search with other words." : lines.join("\n");
    },
  }) as Tool<never>;
}

/** Runs only for names that are none of the deferred tools: all other calls are calls of those. */
function callTool(deferred: readonly Tool<never>[]): Tool<never> {
  const names = new Set(deferred.map(({ name }) => name));
  const tool = defineTool({
    name: "call_tool",
    description: "Calls a tool that search_tools has found.",
    parameters: z.object({
      name: z.string().describe("Its name."),
      arguments: z.record(z.string(), z.unknown()).describe("Its arguments, as its parameters declare them."),
    }),
    effect: "none",
    execute: ({ name }) => {
      const closest = nearestNames(name.slice(0, 64), [...names]).slice(0, 3);
      const hint = closest.length === 0 ? "" : ` The closest names are: ${closest.map((one) => one.name).join(", ")}.`;
      throw new InvalidInputError(
        `call_tool has no tool named ${JSON.stringify(name.slice(0, 64))}.${hint} Find tools with search_tools, and call those of your prompt directly.`,
      );
    },
  });
  return Object.freeze({ ...tool, forwards: (name: string) => names.has(name) }) as Tool<never>;
}

/** Words of names count most, and rare words more than common ones; equal ones keep the order of the tools. */
function searchOf(tools: readonly Tool<never>[]): (query: string) => readonly Tool<never>[] {
  const indexed = tools.map((tool) => ({
    tool,
    name: new Set(wordsOf(separated(tool.name))),
    text: new Set(
      wordsOf(`${tool.description} ${separated(Object.keys(Object(tool.jsonSchema["properties"])).join(" "))}`),
    ),
  }));
  return (query) => {
    const words = [...new Set(wordsOf(separated(query)))];
    const scores = new Map<Tool<never>, number>();
    for (const word of words) {
      const weights = indexed.map(({ tool, name, text }) => ({
        tool,
        weight: has(name, word) ? 3 : Number(has(text, word)),
      }));
      const found = weights.filter(({ weight }) => weight > 0);
      const rarity = Math.log(1 + tools.length / Math.max(1, found.length));
      for (const { tool, weight } of found) scores.set(tool, (scores.get(tool) ?? 0) + weight * rarity);
    }
    for (const tool of tools) if (tool.name === query.trim()) scores.set(tool, Infinity);
    return [...scores].sort(([, one], [, other]) => other - one).map(([tool]) => tool);
  };
}

/** "createIssue" and "create_issue" are two words each. */
function separated(name: string): string {
  return name.replaceAll(/([\p{Ll}\d])(\p{Lu})/gu, "$1 $2").replaceAll(/[_\-.]/g, " ");
}

/** "issues" and "issue" count as one word. */
function has(words: ReadonlySet<string>, word: string): boolean {
  if (words.has(word)) return true;
  if (word.length < 4) return false;
  return [...words].some((one) => one.length >= 4 && (one.startsWith(word) || word.startsWith(one)));
}
