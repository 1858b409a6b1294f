import { z } from "zod";
import { anyRule, type OptionsSchema, optionsOf, reading } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Json, JsonObject, ModelTool } from "../state/index.ts";
import type { CheckedArguments } from "./define-tool.ts";
import { checkExpiry, checkIdentity, checkOptionalFunction, toolNameIn } from "./definition-checks.ts";
import { type RenderedOutput, renderOutput } from "./output.ts";
import { describer, parseArguments, readParameters, type ToolParameters, uncheckedOf } from "./parameters.ts";
import { type ParsedArguments } from "./parsed-arguments.ts";
import { createToolRegistry } from "./registry.ts";
import { nothingToRedact } from "./secrets.ts";

/**
 * A tool that the agent's caller executes: the turn waits with a request until a caller answers it.
 * Made by `clientTool` or `askUser`; frozen.
 */
export interface ClientTool {
  readonly kind: "client";
  readonly requestKind: "client" | "question";
  readonly name: string;
  readonly description: string;
  /** The runtime cannot repeat the caller's action. */
  readonly effect: "once";
  readonly jsonSchema: JsonObject;
  /** Fragments of a JSON Schema that are not checked. */
  readonly unchecked?: readonly string[];
  /** Milliseconds after which an unanswered request expires. Default: never. */
  readonly expiresAfterMs?: number;
  /** Reads and checks the model's arguments. Synchronous; never throws. */
  parse(argumentsText: string): Promise<ParsedArguments>;
  /** The text of the request's question. Never throws. */
  describeCall(args: Json): string;
}

export interface ClientToolDefinition<Schema extends ToolParameters> {
  /** Letters, digits, `_` and `-`; 1 to 64 characters. */
  readonly name: string;
  /** For the model: what the tool does and when to use it. */
  readonly description: string;
  /** A schema of an object (zod 4, arktype, valibot, any Standard JSON Schema), or the text of a JSON Schema. */
  readonly parameters: Schema;
  /** The text of the question to the caller. Default: `<name>(<arguments as JSON, cut at 500 characters>)`. */
  readonly describeCall?: ((args: CheckedArguments<Schema>) => string) | undefined;
  /** Whole milliseconds after which an unanswered request expires. Default: never. */
  readonly expiresAfterMs?: number | undefined;
}

/** Declares a tool that the caller executes. Throws `InvalidInputError` that names the invalid field. */
export function clientTool<const Schema extends ToolParameters>(definition: ClientToolDefinition<Schema>): ClientTool {
  const of = toolNameIn(definition, "clientTool()");
  if (reading(of, () => "execute" in definition)) {
    throw new InvalidInputError(
      `${of}: a client tool has no execute, because its caller executes it; use defineTool for a tool that runs here.`,
    );
  }
  const options = optionsOf<ClientToolDefinition<Schema>>(definition, of, clientToolOptionsSchema);
  return reading(of, () => waitingTool("client", options, definition));
}

/**
 * The client tools that a turn's caller declares, in order. Throws `InvalidInputError` for an invalid name, description or schema, and
 * for duplicate names.
 */
export function clientToolsOf(given: readonly ModelTool[]): readonly ClientTool[] {
  const tools = given.map(({ name, description, parameters }) =>
    waitingTool("client", { name, description, parameters: JSON.stringify(parameters) }),
  );
  return createToolRegistry(tools).tools;
}

/** The fields of a definition; each value is checked when it is read. */
const clientToolOptionsSchema: OptionsSchema<ClientToolDefinition<ToolParameters>> = {
  rules: {
    name: anyRule,
    description: anyRule,
    parameters: anyRule,
    describeCall: anyRule,
    expiresAfterMs: anyRule,
  },
  instead: { inputSchema: "parameters", timeoutMs: "expiresAfterMs", timeout: "expiresAfterMs" },
  takesOwnFields: true,
};

function waitingTool<const Schema extends ToolParameters>(
  requestKind: ClientTool["requestKind"],
  definition: ClientToolDefinition<Schema>,
  self: object = definition,
): ClientTool {
  const { name, description, expiresAfterMs } = definition;
  const refuse = checkIdentity(name, description);
  checkExpiry("expiresAfterMs", expiresAfterMs, refuse);
  checkOptionalFunction("describeCall", definition.describeCall, refuse);
  const parameters = reading(`Tool "${name}": parameters`, () => readParameters(definition.parameters, refuse));
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
    describeCall: describer(name, definition.describeCall?.bind(self)),
  };
  return Object.freeze(tool);
}

/** The caller's answer as shown to the model, like a tool's result. Never throws. */
export function renderAnswer(tool: Pick<ClientTool, "name">, value: unknown): RenderedOutput {
  return renderOutput(value, nothingToRedact, `The answer to "${tool.name}" cannot be shown`);
}

export interface AskUserOptions {
  /** Default `ask_user`. */
  readonly name?: string | undefined;
  /** For the model: when to ask. Default: when only the user knows or may decide. */
  readonly description?: string | undefined;
  /** Whole milliseconds after which an unanswered question expires. Default: never. */
  readonly expiresAfterMs?: number | undefined;
}

const questionSchema = z.object({
  question: z.string().regex(/\S/, "must not be empty").describe("What the user is asked, in plain words."),
  options: z.array(z.string().min(1)).optional().describe("Answers to choose from, where there are such."),
});

/** A question of the model: the arguments of `askUser()`. */
export type UserQuestion = z.output<typeof questionSchema>;

const defaultDescription =
  "Asks the user a question and waits for the answer. Use it when you need something that only the user knows or may decide.";

/**
 * A tool with which the model asks the user: the turn waits with a request of kind `question`. Throws `InvalidInputError` for an invalid
 * name, description or expiry.
 */
export function askUser(options?: AskUserOptions): ClientTool {
  const checked = optionsOf<AskUserOptions>(options, "askUser()", askUserOptionsSchema);
  const { name = "ask_user", description = defaultDescription, expiresAfterMs } = checked;
  return waitingTool("question", {
    name,
    description,
    parameters: questionSchema,
    describeCall: inWords,
    expiresAfterMs,
  });
}

const askUserOptionsSchema: OptionsSchema<AskUserOptions> = {
  rules: { name: anyRule, description: anyRule, expiresAfterMs: anyRule },
  instead: { timeoutMs: "expiresAfterMs", timeout: "expiresAfterMs" },
};

function inWords({ question, options = [] }: UserQuestion): string {
  return [question, ...options.map((option) => `- ${option}`)].join("\n");
}
