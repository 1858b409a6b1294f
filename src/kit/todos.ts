import { z } from "zod";
import { optionsOf } from "../base/index.ts";
import type { Plugin } from "../hooks/index.ts";
import { defineTool, type RunContext } from "../tools/index.ts";
import { prefixRule } from "./prefix-rule.ts";

/** Options of `todos()`. */
export interface TodosOptions {
  /** Text before the names of the tools: letters, digits, `_` and `-`. Default: none. */
  readonly prefix?: string | undefined;
}

const statuses = ["pending", "in_progress", "completed"] as const;
const MOST_TODOS = 100;

const todosSchema = z.array(
  z.object({
    content: z.string().trim().min(1).max(1_000).describe("What is to be done, in one line."),
    status: z.enum(statuses),
  }),
);
type Todos = z.infer<typeof todosSchema>;

const marks: Readonly<Record<Todos[number]["status"], string>> = {
  pending: "[ ]",
  in_progress: "[>]",
  completed: "[x]",
};

/**
 * A to-do list of the agent, which the model writes as a whole with `write_todos` and reads with `read_todos`. Each version is an artifact
 * of the agent, so the list survives restarts and compactions. The list is never part of the system prompt, so prompt caches keep their
 * prefix.
 */
export function todos(given?: TodosOptions): Plugin {
  const { prefix = "" } = optionsOf<TodosOptions>(given, "todos()", { rules: { prefix: prefixRule } });
  const artifactName = `${prefix}todos.json`;
  const write = defineTool({
    name: `${prefix}write_todos`,
    description:
      "Writes the to-do list of the task as a whole; it replaces the earlier one. Use it for tasks with three or more steps: write all steps at the beginning, have one in_progress at a time, and mark each as completed at once when it is done.",
    parameters: z.object({ todos: todosSchema.max(MOST_TODOS) }),
    // Only an artifact of the agent changes, and the same list again is the same list.
    effect: "none",
    execute: async ({ todos: list }, run) => {
      await run.saveArtifact({ name: artifactName, contentType: "application/json", content: JSON.stringify(list) });
      return shown(list);
    },
  });
  const read = defineTool({
    name: `${prefix}read_todos`,
    description: "Shows the to-do list as it was written last.",
    parameters: z.object({}),
    effect: "none",
    execute: async (_args, run) => shown(await writtenLast(artifactName, run)),
  });
  return { name: `${prefix}todos`, tools: [write, read] };
}

async function writtenLast(artifactName: string, run: RunContext): Promise<Todos> {
  const artifact = await run.artifact(artifactName);
  return artifact ? todosSchema.parse(JSON.parse(artifact.content)) : [];
}

function shown(list: Todos): string {
  if (list.length === 0) return "The list is empty.";
  const done = list.filter(({ status }) => status === "completed").length;
  const lines = list.map(({ content, status }) => `${marks[status]} ${content.replaceAll(/\s+/g, " ")}`);
  return `${lines.join("\n")}\n\n${done} of ${list.length} completed.`;
}
