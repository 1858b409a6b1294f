import {
  createRedactor,
  isRefusedChange,
  readableThrown,
  type Redactor,
  toJson,
  wordsOfThrown,
} from "../base/index.ts";
import { limitNameSchema } from "../budget/index.ts";
import { AgentStopError, ModelError, TroupeError } from "../errors/index.ts";
import {
  accountHolderSchema,
  type Json,
  type LimitFigures,
  REFUSAL_CODE,
  type Refusal,
  signalOfLimit,
  signalOfRefusal,
  type StopSignal,
  type StoredError,
} from "../state/index.ts";

/** An error for the journal: code and message, without stack and cause. Never throws, for any thrown value. */
export function storedErrorOf(thrown: unknown): StoredError {
  const error = readableThrown(thrown);
  const message = shown(withAdvice(error, wordsOfThrown(error)));
  if (error instanceof TroupeError) {
    const kind = (error.details as Partial<TroupeError["details"]> | undefined)?.["kind"];
    // Compaction depends on the code of a prompt that is too long, the reason for the turn's end on that of a refusal.
    const isOwn = error instanceof ModelError && (kind === "context_length" || kind === REFUSAL_CODE);
    return { code: isOwn ? kind : codeOf(error.code), message, retryable: isTrue(error.retryable) };
  }
  return { code: error instanceof Error ? codeOf(error.name) : "thrown", message, retryable: false };
}

function isTrue(value: unknown): boolean {
  return value === true;
}

/** Maximum length of a journalled code, in UTF-16 units. */
const CODE_CHARACTERS = 200;

/** A user's error class may set any value. */
function codeOf(code: unknown): string {
  return typeof code === "string" && code !== "" ? code.slice(0, CODE_CHARACTERS) : "Error";
}

/** Maximum length of an error message that is journalled and shown to a model, in UTF-16 units. */
const MESSAGE_CHARACTERS = 8_000;

let redactor: Redactor | undefined;

/** Error messages often contain secrets by accident: headers, addresses, values of the environment. */
function shown(message: string): string {
  redactor ??= createRedactor();
  return redactor.text(bounded(message));
}

function bounded(message: string): string {
  if (message.length <= MESSAGE_CHARACTERS) return message;
  return `${message.slice(0, MESSAGE_CHARACTERS)}… [${message.length - MESSAGE_CHARACTERS} characters were cut]`;
}

/** JavaScript's message names the read-only property; this adds the alternative. */
function withAdvice(error: unknown, words: string): string {
  if (!isRefusedChange(error)) return words;
  return (
    `${words}. Values that the runtime passes to your code are read-only: change a copy, for instance  ` +
    "{ ...message, content: … }; in a hook change the conversation with draft.add(…), draft.edit(id, …) or draft.remove(id)"
  );
}

/** The error for user code whose call was finally refused. It carries the limit and account for `stopSignalOf`. */
export function refusedCall(what: string, refusal: Refusal): AgentStopError {
  const signal = signalOfRefusal(refusal);
  const { limit, accountId, used, max, holder } = refusal;
  const details = { isRefusal: true, limit, accountId, used, max, holder: holder?.name, kinship: holder?.kinship };
  return new AgentStopError(`${what} was refused: ${signal?.message ?? refusal.reason}`, { details });
}

/**
 * The stop that an `AgentStopError` causes: `stop_requested`, or the limit for which a call was refused. User code also creates
 * such errors, with arbitrary details.
 */
export function stopSignalOf(error: AgentStopError, source: string): StopSignal {
  const { message } = storedErrorOf(error);
  const { isRefusal, limit, accountId, ...figures } = detailsOf(error);
  if (isRefusal !== true) return { reason: "stop_requested", message, source };
  const known = limitNameSchema.safeParse(limit);
  if (known.success && typeof accountId === "string") return signalOfLimit(known.data, accountId, figuresOf(figures));
  return { reason: "user_requested", message, source: "user" };
}

/** Whether the error was created by `refusedCall`. */
export function isRefusedCall(error: AgentStopError): boolean {
  return detailsOf(error)["isRefusal"] === true;
}

function detailsOf({ details }: { readonly details?: unknown }): AgentStopError["details"] {
  const json = toJson(details);
  return json.ok && isRecord(json.json) ? (json.json as AgentStopError["details"]) : {};
}

function isRecord(json: Json): boolean {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

/** The figures that `refusedCall` stored with limit and account. */
function figuresOf({ used, max, holder: name, kinship }: AgentStopError["details"]): LimitFigures {
  const holder = accountHolderSchema.safeParse({ name, kinship });
  return {
    ...(typeof used === "number" ? { used } : {}),
    ...(typeof max === "number" ? { max } : {}),
    ...(holder.success ? { holder: holder.data } : {}),
  };
}
