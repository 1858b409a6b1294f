import { z } from "zod";
import type { JsonObject } from "../state/index.ts";
import { parseArguments, readParameters } from "./parameters.ts";
import { type ParsedArguments } from "./parsed-arguments.ts";

export type InternalToolName = "load_history" | "list_tool_calls" | "load_tool_results" | "read_artifact";

/** A tool on the agent's own context, which the runtime executes. If an agent has these tools, no other tool may have their names. */
export interface InternalTool {
  readonly kind: "internal";
  readonly name: InternalToolName;
  readonly description: string;
  readonly effect: "none";
  readonly jsonSchema: JsonObject;
  /** Reads and checks the model's arguments. Synchronous; never throws. */
  parse(argumentsText: string): Promise<ParsedArguments>;
}

const listToolCallsSchema = z.object({
  limit: z.number().int().min(1).max(100).default(20).describe("How many calls to list, the newest ones."),
  name: z.string().min(1).optional().describe("Only calls of the tool with this name."),
});
/** Checked arguments of `list_tool_calls`. */
export type ListToolCallsArguments = z.output<typeof listToolCallsSchema>;

const loadToolResultsSchema = z.object({
  callIds: z.array(z.string().min(1)).min(1).max(20).describe("Ids of calls, as list_tool_calls gives them."),
});
/** Checked arguments of `load_tool_results`. */
export type LoadToolResultsArguments = z.output<typeof loadToolResultsSchema>;

const readArtifactSchema = z.object({
  id: z.string().min(1).max(200).describe("Id of the artifact, as it stands in the result that was cut."),
  from: z.number().int().min(0).default(0).describe("The character to begin at, counted from 0."),
  length: z.number().int().min(1).max(32_000).default(8_000).describe("How many characters to show at most."),
  pattern: z
    .string()
    .min(1)
    .max(1_000)
    .optional()
    .describe("A regular expression: shows the places where it matches in place of all the text."),
});
/** Checked arguments of `read_artifact`. */
export type ReadArtifactArguments = z.output<typeof readArtifactSchema>;

/** The parameters are computed on first access, because most programs never use the tool. */
function runtimeTool<Kind extends string, Name extends string>(
  kind: Kind,
  name: Name,
  description: string,
  schema: z.ZodObject,
) {
  let read: ReturnType<typeof readParameters> | undefined;
  const parameters = () => (read ??= readParameters(schema));
  return Object.freeze({
    kind,
    name,
    description,
    effect: "none",
    get jsonSchema() {
      return parameters().jsonSchema;
    },
    parse: (text: string) => parseArguments(parameters(), text, { toolName: name }),
  } as const);
}

/** Reads results that were cut; every agent with tools gets it with its first such result. */
export const artifactTool: InternalTool = runtimeTool(
  "internal",
  "read_artifact",
  "Reads from a result of yours that was too long to be shown whole and is stored as an artifact.",
  readArtifactSchema,
);

/** The three tools on the conversation, in the order in which a model sees them. */
export const internalTools: readonly InternalTool[] = Object.freeze([
  runtimeTool(
    "internal",
    "load_history",
    "Shows you older messages of this conversation, from before those that you see. Use it when the user refers to something that is not there.",
    z.object({}),
  ),
  runtimeTool(
    "internal",
    "list_tool_calls",
    "Lists earlier tool calls of this conversation, whose results you may no longer see: id, tool, arguments and outcome.",
    listToolCallsSchema,
  ),
  runtimeTool(
    "internal",
    "load_tool_results",
    "Brings the results of earlier tool calls back before you. Use list_tool_calls to find their ids.",
    loadToolResultsSchema,
  ),
]);

export type ControlToolName = "subagent_status" | "subagent_wait" | "subagent_cancel";

/**
 * A tool on the agent's own background subagents, which the runtime executes. An agent with such subagents has these tools, and their
 * names are reserved. Unlike internal tools they are recorded and counted like any tool call.
 */
export interface ControlTool {
  readonly kind: "control";
  readonly name: ControlToolName;
  readonly description: string;
  readonly effect: "none";
  readonly jsonSchema: JsonObject;
  /** Reads and checks the model's arguments. Synchronous; never throws. */
  parse(argumentsText: string): Promise<ParsedArguments>;
}

const agentId = z.string().min(1).describe("Id of a subagent, as it was given when it was started.");

export const statusArgumentsSchema = z.object({
  agentId: agentId.optional().describe("Id of one subagent; leave it out for all of them."),
});

export const waitArgumentsSchema = z.object({
  agentIds: z
    .array(agentId)
    .min(1)
    .max(100)
    .optional()
    .describe("Waits until all of these have ended; leave it out to wait for whichever ends first."),
  timeoutSeconds: z.number().positive().max(604_800).optional().describe("The longest time to wait, in seconds."),
});

export const cancelArgumentsSchema = z.object({
  agentId,
  reason: z.string().max(500).optional().describe("Why, in a few words."),
});

/** The three control tools, in the order in which a model sees them. */
export const controlTools: readonly ControlTool[] = Object.freeze([
  runtimeTool(
    "control",
    "subagent_status",
    "Tells how far the subagents are that you have started in the background: state, step, usage, time.",
    statusArgumentsSchema,
  ),
  runtimeTool(
    "control",
    "subagent_wait",
    "Waits for subagents that you have started in the background, and gives their answers. Use it when you can do nothing else before you have them.",
    waitArgumentsSchema,
  ),
  runtimeTool(
    "control",
    "subagent_cancel",
    "Ends a subagent that you have started in the background, and all that it has started itself.",
    cancelArgumentsSchema,
  ),
]);
