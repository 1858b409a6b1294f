import { anyRule, copyOfJson, describeValue, flagRule, type OptionsSchema, optionsOf, reading } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type EffectClass, effectClassSchema, type JsonObject } from "../state/index.ts";
import { checkIdentity, checkQueue, checkWaits, toolNameIn } from "./definition-checks.ts";
import { describer, parseArguments, readParameters, type ToolParameters, uncheckedOf } from "./parameters.ts";
import type { RunContext } from "./run-context.ts";
import { checkSecrets, nothingToRedact, resolveArguments, type SecretResolver } from "./secrets.ts";
import type { ValueOf, ValueSchema } from "./standard-schema.ts";
import type { Reconciliation, Tool } from "./tool.ts";

/** A model's arguments after the check: the output of the schema, or any JSON object with a JSON Schema text. */
export type CheckedArguments<Schema extends ToolParameters> = Schema extends ValueSchema ? ValueOf<Schema> : JsonObject;

/** The arguments of `execute`: the checked ones, plus the secrets by name. */
export type ToolArguments<Schema extends ToolParameters, SecretName extends string = never> = [SecretName] extends [
  never,
]
  ? CheckedArguments<Schema>
  : CheckedArguments<Schema> & { readonly [Name in SecretName]: string };

/** Options of `defineTool()`. */
export interface ToolDefinition<Schema extends ToolParameters, SecretName extends string = never> {
  /** Letters, digits, `_` and `-`; 1 to 64 characters. */
  readonly name: string;
  /** For the model: the tool's purpose and when to use it. */
  readonly description: string;
  /**
   * A schema of an object, by zod 4, zod/mini, arktype, valibot (`toStandardJsonSchema()`) or another library with Standard JSON Schema; or
   * the text of a JSON Schema. Asynchronous checks run for at most 60 seconds. Transforms must
   * return JSON values: their result is journalled, and `execute` gets it from the journal after a restart.
   */
  readonly parameters: Schema;
  /** Decides whether a call with an unknown outcome may be repeated. Default `once`: never. */
  readonly effect?: EffectClass | undefined;
  /**
   * Does the work. Its result becomes text for the model: a string unchanged, other values as JSON. If it throws, the model gets the
   * error message.
   */
  execute(args: ToolArguments<Schema, SecretName>, run: RunContext): unknown;
  /** Called after a crash to find out whether a `once` call took effect. Default: the call ends as `outcome_unknown`. */
  reconcile?(args: ToolArguments<Schema, SecretName>, run: RunContext): Promise<Reconciliation>;
  /**
   * Stops work that a call has started elsewhere. Called when the turn ends (by an abort, a limit, a failure) while a call that has noted
   * something (`run.note`) is open, whether its code runs, waits for an answer, or was lost with its process. The turn ends when `cancel`
   * has returned or thrown, or after 5 seconds. Not for tools with a `queue`. Default: nothing is called.
   */
  cancel?(args: ToolArguments<Schema, SecretName>, run: RunContext): unknown;
  /**
   * Whether a person has to approve a call before it runs: always, or if this function of the checked arguments returns true. An approval
   * applies to exactly these arguments. Default false. If the function throws, the call fails.
   */
  readonly needsApproval?:
    | boolean
    | ((args: CheckedArguments<Schema>, run: RunContext) => boolean | Promise<boolean>)
    | undefined;
  /** Whole milliseconds after which an undecided call is refused. Default: never. */
  readonly approvalExpiresAfterMs?: number | undefined;
  /** The text of the question to a person. Default: `<name>(<arguments as JSON, cut at 500 characters>)`. */
  readonly describeCall?: ((args: CheckedArguments<Schema>) => string) | undefined;
  /** `required`: a call runs only if `run.auth` has credentials; until then the turn waits. Default: it runs without. */
  readonly auth?: "required" | undefined;
  /**
   * A successful call ends the turn: its result is the answer, and the model is not called again. The other calls of the round finish
   * first; of several such results the first in the order of the calls is the answer. The model continues after a call that failed or was
   * denied, if the result does not fit the agent's `output`, or if an input arrived meanwhile. Default false.
   */
  readonly endsTurn?: boolean | undefined;
  /**
   * Parameters that the model neither sees nor sets, and that are never stored: each is resolved right before every attempt and passed to
   * `execute` with the arguments. Default: none.
   */
  readonly secrets?: { readonly [Name in SecretName]: SecretResolver } | undefined;
  /**
   * Name of the queue whose workers run the calls, in any process: 1 to 128 characters of A-Z a-z 0-9 . _ @ -, and not `wake`. The
   * agent's turn waits for the call as for a child. None of the tool's code runs in the agent's process, and `execute` gets only values
   * that are available in any process (see `RunContext`). Default: calls run in the agent's process.
   */
  readonly queue?: string | undefined;
  /** Only with `queue`: whole number from 0 to 1,000,000; the lowest runs first. Default 0. */
  readonly priority?: number | undefined;
  /** Milliseconds per attempt; time spent in a queue does not count. Default 60,000. */
  readonly timeoutMs?: number | undefined;
  /** Calls that may run at a time in one process; for a `queue` its workers set the limit. Default: unlimited. */
  readonly concurrency?: number | undefined;
  /** Maximum number of attempts. Default 1; more than 1 only with effect `none` or `keyed`. */
  readonly maxAttempts?: number | undefined;
  /** Characters of output shown to the model. Default 32,000. */
  readonly maxOutputCharacters?: number | undefined;
  /** Maximum size of the arguments, in bytes. Default 1,000,000. */
  readonly maxArgumentBytes?: number | undefined;
}

/** Declares a tool. Throws `InvalidInputError` that names the invalid field and the expected value. */
export function defineTool<const Schema extends ToolParameters, const SecretName extends string = never>(
  definition: ToolDefinition<Schema, SecretName>,
): Tool<ToolArguments<Schema, SecretName>> {
  const of = toolNameIn(definition, "defineTool()");
  const options = optionsOf<ToolDefinition<Schema, SecretName>>(definition, of, toolOptionsSchema);
  return reading(of, () => made(options, definition));
}

/** The fields of a definition; each value is checked when it is read. */
const toolOptionsSchema: OptionsSchema<ToolDefinition<ToolParameters>> = {
  rules: {
    name: anyRule,
    description: anyRule,
    parameters: anyRule,
    effect: anyRule,
    execute: anyRule,
    reconcile: anyRule,
    cancel: anyRule,
    needsApproval: anyRule,
    approvalExpiresAfterMs: anyRule,
    describeCall: anyRule,
    auth: anyRule,
    endsTurn: flagRule,
    secrets: anyRule,
    queue: anyRule,
    priority: anyRule,
    timeoutMs: anyRule,
    concurrency: anyRule,
    maxAttempts: anyRule,
    maxOutputCharacters: anyRule,
    maxArgumentBytes: anyRule,
  },
  instead: {
    inputSchema: "parameters",
    input_schema: "parameters",
    timeout: "timeoutMs",
    retries: "maxAttempts",
    maxRetries: "maxAttempts",
    approval: "needsApproval",
    requiresApproval: "needsApproval",
    maxConcurrent: "concurrency",
    returnDirect: "endsTurn",
  },
  takesOwnFields: true,
};

/** `self` is the author's object; its functions are called as methods of it. */
function made<Schema extends ToolParameters, SecretName extends string>(
  definition: ToolDefinition<Schema, SecretName>,
  self: ToolDefinition<Schema, SecretName>,
): Tool<ToolArguments<Schema, SecretName>> {
  const { name, description, concurrency, maxArgumentBytes, approvalExpiresAfterMs, auth } = definition;
  const refuse = checkIdentity(name, description);
  const effect = effectClassSchema.safeParse(definition.effect ?? "once");
  if (!effect.success) {
    throw refuse(`effect is ${describeValue(definition.effect)}; use "none", "keyed" or "once".`);
  }
  for (const method of ["execute", "reconcile", "cancel"] as const) {
    const given = definition[method];
    if (typeof given === "function" || (method !== "execute" && given === undefined)) continue;
    throw refuse(`${method} must be a function, not ${typeof given}.`);
  }
  const timeoutMs = definition.timeoutMs ?? 60_000;
  if (!Number.isFinite(timeoutMs) || timeoutMs <= 0) {
    throw refuse(`timeoutMs is ${describeValue(timeoutMs)}; use a positive, finite number of milliseconds.`);
  }
  const maxAttempts = definition.maxAttempts ?? 1;
  const maxOutputCharacters = definition.maxOutputCharacters ?? 32_000;
  for (const [field, count] of Object.entries({ concurrency, maxAttempts, maxOutputCharacters, maxArgumentBytes })) {
    if (count === undefined || (Number.isSafeInteger(count) && count >= 1)) continue;
    throw refuse(`${field} is ${describeValue(count)}; use a whole number of at least 1.`);
  }
  if (effect.data === "once" && maxAttempts > 1) {
    throw refuse(
      `maxAttempts is ${maxAttempts}, but a tool with effect "once" is never repeated; use maxAttempts 1, or effect "none" or "keyed" if a call can be repeated safely.`,
    );
  }
  checkWaits(definition, refuse);
  checkQueue(definition, refuse);
  if (definition.cancel !== undefined && definition.queue !== undefined) {
    throw refuse("cancel and queue are both set, but a queued tool cannot note what it has begun; leave one out.");
  }
  const parameters = reading(`Tool "${name}": parameters`, () => readParameters(definition.parameters, refuse));
  const secrets = reading(`Tool "${name}": secrets`, () =>
    checkSecrets(definition.secrets, parameters.jsonSchema, refuse),
  );
  const tool: Tool<ToolArguments<Schema, SecretName>> = {
    kind: "function",
    name,
    description,
    effect: effect.data,
    timeoutMs,
    ...(definition.queue === undefined ? {} : { queue: definition.queue }),
    ...(definition.priority === undefined ? {} : { priority: definition.priority }),
    ...(concurrency === undefined ? {} : { concurrency }),
    maxAttempts,
    maxOutputCharacters,
    needsApproval: approvalRule({ name, needsApproval: boundTo(self, definition.needsApproval) }),
    ...(approvalExpiresAfterMs === undefined ? {} : { approvalExpiresAfterMs }),
    ...(auth === undefined ? {} : { auth }),
    ...(definition.endsTurn ? { endsTurn: true } : {}),
    jsonSchema: parameters.jsonSchema,
    ...uncheckedOf(parameters),
    parse: (text) => parseArguments(parameters, text, { toolName: name, maxBytes: maxArgumentBytes, secrets }),
    describeCall: describer(name, definition.describeCall?.bind(self)),
    resolveArguments: (json, run) =>
      secrets ? resolveArguments(json, run, { name, secrets }) : { args: copyOfJson(json), redact: nothingToRedact },
    execute: (args, run) => definition.execute.call(self, args, run),
    ...(definition.reconcile === undefined
      ? {}
      : { reconcile: async (args, run) => definition.reconcile?.call(self, args, run) ?? { unknown: true } }),
    ...(definition.cancel === undefined
      ? {}
      : { cancel: async (args, run) => void (await definition.cancel?.call(self, args, run)) }),
  };
  return Object.freeze(tool);
}

function boundTo<Value>(self: object, value: Value): Value {
  return typeof value === "function" ? (value.bind(self) as Value) : value;
}

/** The option as the author declares it: always, never, or by a function of the checked arguments. */
interface ApprovalDefinition {
  readonly name: string;
  readonly needsApproval?: boolean | ((args: never, run: RunContext) => boolean | Promise<boolean>) | undefined;
}

/** If the function returns anything but true or false, the call fails: a mistake of the author must not let it run without approval. */
function approvalRule(definition: ApprovalDefinition): Tool["needsApproval"] {
  const { name, needsApproval = false } = definition;
  if (typeof needsApproval === "boolean") return needsApproval;
  return async (args, run) => {
    const answer: unknown = await needsApproval.call(definition, copyOfJson(args) as never, run);
    if (typeof answer === "boolean") return answer;
    throw new InvalidInputError(
      `Tool "${name}": needsApproval returned ${answer === null ? "null" : typeof answer}, not true or false.`,
      { details: { tool: name } },
    );
  };
}
