import { ModelError } from "../errors/index.ts";
import type { JsonObject, ModelRequest } from "../state/index.ts";
import type { WireWriter } from "./wire-calls.ts";

/** Fields of a body that `providerOptions` may not set. */
export interface ReservedFields {
  /** Fields that carry `maxOutputTokens`. */
  readonly limits: readonly string[];
  readonly own: readonly string[];
}

/**
 * The `providerOptions` of the request for this model's provider.
 * @throws ModelError of kind `configuration` for a field that the runtime sets itself.
 */
export function fieldsOfProvider(
  { providerOptions }: Pick<ModelRequest, "providerOptions">,
  { provider }: Pick<WireWriter, "provider">,
  reserved: ReservedFields,
): JsonObject {
  const given = providerOptions?.[provider] ?? {};
  const limit = reserved.limits.find((name) => name in given);
  if (limit !== undefined) throw reservedField(provider, limit, "set maxOutputTokens instead");
  const field = reserved.own.find((name) => name in given);
  if (field !== undefined) throw reservedField(provider, field, "troupe sets it itself; leave it out");
  return given;
}

function reservedField(provider: string, field: string, advice: string): ModelError {
  return new ModelError(`The model call was not sent: providerOptions.${provider} has ${field}; ${advice}.`, {
    retryable: false,
    mayHaveBeenSent: false,
    details: { kind: "configuration" },
  });
}

/** Fields such as `parallel_tool_calls` and `tool_choice`: servers refuse them in a request without tools, such as one for a summary. */
const aboutTools = /tool|function/i;

/** The fields that can be sent in a request with or without tools. */
export function fittingFields(extraBody: JsonObject, hasTools: boolean): JsonObject {
  if (hasTools || "tools" in extraBody || "functions" in extraBody) return extraBody;
  return Object.fromEntries(Object.entries(extraBody).filter(([name]) => !aboutTools.test(name)));
}
