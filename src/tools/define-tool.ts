import type { z } from "zod";
import { InvalidInputError } from "../errors/index.ts";
import { type EffectClass, effectClassSchema, type JsonObject } from "../state/index.ts";
import { parseArguments, readParameters, type ToolParameters } from "./parameters.ts";
import type { RunContext } from "./run-context.ts";
import type { Reconciliation, Tool } from "./tool.ts";

/** What `execute` is called with: the output of the zod schema, or any JSON object with a JSON Schema text. */
export type ToolArguments<Schema extends ToolParameters> = Schema extends z.ZodType ? z.output<Schema> : JsonObject;

export interface ToolDefinition<Schema extends ToolParameters> {
  /** Letters, digits, `_` and `-`; 1 to 64 characters (row L13). */
  readonly name: string;
  /** For the model: what the tool does and when to use it. */
  readonly description: string;
  /**
   * A zod 4 object schema, or the text of a JSON Schema. Transforms must give JSON values: their result is journalled,
   * and after a restart `execute` gets it from there.
   */
  readonly parameters: Schema;
  /** What may be done with a call whose outcome is not known. Default `once`: it is never repeated. */
  readonly effect?: EffectClass | undefined;
  execute(args: ToolArguments<Schema>, run: RunContext): unknown;
  /** Asked after a crash whether a `once` call took effect. */
  reconcile?(args: ToolArguments<Schema>, run: RunContext): Promise<Reconciliation>;
  /** Milliseconds per attempt. Default 60,000. */
  readonly timeoutMs?: number | undefined;
  /** Calls that may run at a time in one process. Default: unlimited. */
  readonly concurrency?: number | undefined;
  /** Attempts in all. Default 1; more than 1 only with effect `none` or `keyed`. */
  readonly maxAttempts?: number | undefined;
  /** Characters of output shown to the model. Default 32,000. */
  readonly maxOutputCharacters?: number | undefined;
  /** Bytes of arguments that are accepted. Default 1,000,000. */
  readonly maxArgumentBytes?: number | undefined;
}

const namePattern = /^[a-zA-Z0-9_-]{1,64}$/;

/** Declares a tool. Throws `InvalidInputError` that says which field is wrong and what would be right. */
export function defineTool<const Schema extends ToolParameters>(
  definition: ToolDefinition<Schema>,
): Tool<ToolArguments<Schema>> {
  const { name, description, concurrency, maxArgumentBytes } = definition;
  if (typeof name !== "string" || !namePattern.test(name)) {
    const shown = JSON.stringify(typeof name === "string" ? name.slice(0, 80) : typeof name);
    throw new InvalidInputError(`A tool cannot be named ${shown}: use 1 to 64 letters, digits, "_" and "-".`);
  }
  const refuse = (what: string, cause?: unknown) =>
    new InvalidInputError(`Tool "${name}": ${what}`, { details: { tool: name }, cause });
  if (typeof description !== "string" || description.trim() === "") {
    throw refuse("description is empty; say in a sentence what the tool does and when to use it.");
  }
  const effect = effectClassSchema.safeParse(definition.effect ?? "once");
  if (!effect.success) {
    throw refuse(`effect is ${JSON.stringify(definition.effect)}; use "none", "keyed" or "once".`);
  }
  for (const method of ["execute", "reconcile"] as const) {
    const given = definition[method];
    if (typeof given === "function" || (method === "reconcile" && given === undefined)) continue;
    throw refuse(`${method} must be a function, not ${typeof given}.`);
  }
  const timeoutMs = definition.timeoutMs ?? 60_000;
  if (!Number.isFinite(timeoutMs) || timeoutMs <= 0) {
    throw refuse(`timeoutMs is ${timeoutMs}; use a positive, finite number of milliseconds.`);
  }
  const maxAttempts = definition.maxAttempts ?? 1;
  const maxOutputCharacters = definition.maxOutputCharacters ?? 32_000;
  for (const [field, count] of Object.entries({ concurrency, maxAttempts, maxOutputCharacters, maxArgumentBytes })) {
    if (count === undefined || (Number.isSafeInteger(count) && count >= 1)) continue;
    throw refuse(`${field} is ${String(count)}; use a whole number of at least 1.`);
  }
  if (effect.data === "once" && maxAttempts > 1) {
    throw refuse(
      `maxAttempts is ${maxAttempts}, but a tool with effect "once" is never repeated; use maxAttempts 1, or effect "none" or "keyed" if a repeat does no harm.`,
    );
  }
  const parameters = parametersOf(definition.parameters, refuse);
  const tool: Tool<ToolArguments<Schema>> = {
    kind: "function",
    name,
    description,
    effect: effect.data,
    timeoutMs,
    ...(concurrency === undefined ? {} : { concurrency }),
    maxAttempts,
    maxOutputCharacters,
    jsonSchema: parameters.jsonSchema,
    parse: (text) => parseArguments(parameters, text, { toolName: name, maxBytes: maxArgumentBytes }),
    fromJournal: (json) => json,
    execute: (args, run) => definition.execute(args, run),
    ...(definition.reconcile === undefined
      ? {}
      : { reconcile: async (args, run) => definition.reconcile?.(args, run) ?? { unknown: true } }),
  };
  return Object.freeze(tool);
}

function parametersOf(parameters: ToolParameters, refuse: (what: string, cause?: unknown) => InvalidInputError) {
  try {
    return readParameters(parameters);
  } catch (error) {
    if (error instanceof InvalidInputError) throw refuse(error.message, error);
    throw error;
  }
}
