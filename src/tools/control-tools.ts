import { z } from "zod";
import type { JsonObject } from "../state/index.ts";
import { parseArguments, readParameters } from "./parameters.ts";
import type { ParsedArguments } from "./parsed-arguments.ts";

export type ControlToolName = "subagent_status" | "subagent_wait" | "subagent_cancel";

/**
 * A tool on the agent's own subagents in the background. The runtime carries it out; where an agent has such subagents it
 * has these tools, and their names are taken. Unlike internal tools they are recorded and counted as any tool call.
 */
export interface ControlTool {
  readonly kind: "control";
  readonly name: ControlToolName;
  readonly description: string;
  readonly effect: "none";
  readonly jsonSchema: JsonObject;
  /** Reads and checks the model's arguments. Synchronous; never throws. */
  parse(argumentsText: string): ParsedArguments;
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

function controlTool(name: ControlToolName, description: string, schema: z.ZodObject): ControlTool {
  const parameters = readParameters(schema);
  return Object.freeze({
    kind: "control",
    name,
    description,
    effect: "none",
    jsonSchema: parameters.jsonSchema,
    parse: (text: string) => parseArguments(parameters, text, { toolName: name }),
  } satisfies ControlTool);
}

/** The three of them, in the order in which a model sees them. */
export const controlTools: readonly ControlTool[] = Object.freeze([
  controlTool(
    "subagent_status",
    "Tells how far the subagents are that you have started in the background: state, step, usage, time.",
    statusArgumentsSchema,
  ),
  controlTool(
    "subagent_wait",
    "Waits for subagents that you have started in the background, and gives their answers. Use it when you can do nothing else before you have them.",
    waitArgumentsSchema,
  ),
  controlTool(
    "subagent_cancel",
    "Ends a subagent that you have started in the background, and all that it has started itself.",
    cancelArgumentsSchema,
  ),
]);
