import type { Json, JsonObject } from "../state/index.ts";
import type { CheckedArguments } from "./define-tool.ts";
import { checkExpiry, checkIdentity, checkOptionalFunction } from "./definition-checks.ts";
import { describer } from "./describe-call.ts";
import { type RenderedOutput, textOf } from "./output.ts";
import { parseArguments, readParameters, type ToolParameters, uncheckedOf } from "./parameters.ts";
import type { ParsedArguments } from "./parsed-arguments.ts";

/**
 * A tool that whoever called the agent executes: the turn waits with a request of its kind until somebody answers it.
 * Made by `clientTool` or `askUser`; frozen.
 */
export interface ClientTool {
  readonly kind: "client";
  readonly requestKind: "client" | "question";
  readonly name: string;
  readonly description: string;
  /** What happens at the caller's is not ours to repeat. */
  readonly effect: "once";
  readonly jsonSchema: JsonObject;
  /** Parts of a JSON Schema that nobody checks, as `defineTool` tells them. */
  readonly unchecked?: readonly string[];
  /** Milliseconds until a request that nobody answered expires; absent: never. */
  readonly expiresAfterMs?: number;
  /** Reads and checks the model's arguments. Synchronous; never throws. */
  parse(argumentsText: string): ParsedArguments;
  /** What the request asks, in words. Never throws. */
  describeCall(args: Json): string;
}

export interface ClientToolDefinition<Schema extends ToolParameters> {
  /** Letters, digits, `_` and `-`; 1 to 64 characters. */
  readonly name: string;
  /** For the model: what the tool does and when to use it. */
  readonly description: string;
  /** A zod 4 object schema, or the text of a JSON Schema. */
  readonly parameters: Schema;
  /** What the caller is asked, in words. Default: `<name>(<arguments as JSON, cut at 500 characters>)`. */
  readonly describeCall?: ((args: CheckedArguments<Schema>) => string) | undefined;
  /** Whole milliseconds until a request that nobody answered expires. Default: never. */
  readonly expiresAfterMs?: number | undefined;
}

/** Declares a tool that the caller executes. Throws `InvalidInputError` that says which field is wrong. */
export function clientTool<const Schema extends ToolParameters>(definition: ClientToolDefinition<Schema>): ClientTool {
  return waitingTool("client", definition);
}

export function waitingTool<const Schema extends ToolParameters>(
  requestKind: ClientTool["requestKind"],
  definition: ClientToolDefinition<Schema>,
): ClientTool {
  const { name, description, expiresAfterMs } = definition;
  const refuse = checkIdentity(name, description);
  if ("execute" in definition) {
    throw refuse("a client tool has no execute, its caller executes it; use defineTool for one that runs here.");
  }
  checkExpiry("expiresAfterMs", expiresAfterMs, refuse);
  checkOptionalFunction("describeCall", definition.describeCall, refuse);
  const parameters = readParameters(definition.parameters, refuse);
  const tool: ClientTool = {
    kind: "client",
    requestKind,
    name,
    description,
    effect: "once",
    jsonSchema: parameters.jsonSchema,
    ...uncheckedOf(parameters),
    ...(expiresAfterMs === undefined ? {} : { expiresAfterMs }),
    parse: (text) => parseArguments(parameters, text, { toolName: name }),
    describeCall: describer(name, definition.describeCall?.bind(definition)),
  };
  return Object.freeze(tool);
}

/** What the model sees of the caller's answer: texts as they are, other values as JSON text. Never throws. */
export function answerText(tool: Pick<ClientTool, "name">, value: unknown): RenderedOutput {
  const answer = textOf(value);
  if (answer.ok) return { text: answer.text, isError: false };
  return { text: `The answer to "${tool.name}" cannot be shown: ${answer.reason}.`, isError: true };
}
