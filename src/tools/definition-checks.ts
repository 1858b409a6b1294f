import { assertId, describeValue, reading } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";

/** Creates the error for an invalid field of a tool. `what` states what is wrong and what is expected; the tool's name is added. */
export type Refuse = (what: string, cause?: unknown) => InvalidInputError;

const namePattern = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * The beginning of error messages: the tool with its name, if it has one. Throws `InvalidInputError` if `definition` is not an object.
 */
export function toolNameIn(definition: unknown, of: string): string {
  const isObject = reading(
    of,
    () => typeof definition === "object" && definition !== null && !Array.isArray(definition),
  );
  if (!isObject) {
    throw new InvalidInputError(`${of} takes a definition { name, description, … }, not ${describeValue(definition)}`);
  }
  const { name } = reading(of, () => ({ name: (definition as { readonly name?: unknown }).name }));
  return typeof name === "string" && namePattern.test(name) ? `Tool "${name}"` : of;
}

/**
 * Checks the fields that every kind of tool has. Returns the function that creates errors for other fields. Throws `InvalidInputError`.
 */
export function checkIdentity(name: unknown, description: unknown): Refuse {
  if (typeof name !== "string" || !namePattern.test(name)) {
    const shown = typeof name === "string" ? JSON.stringify(name.slice(0, 80)) : describeValue(name);
    throw new InvalidInputError(`A tool cannot be named ${shown}: use 1 to 64 letters, digits, "_" and "-".`);
  }
  const refuse: Refuse = (what, cause) =>
    new InvalidInputError(`Tool "${name}": ${what}`, { details: { tool: name }, cause });
  if (typeof description !== "string" || description.trim() === "") {
    const is = typeof description === "string" ? "empty" : describeValue(description);
    throw refuse(`description is ${is}; say in a sentence what the tool does and when to use it.`);
  }
  return refuse;
}

/** 31,000 years: even such a distant time is stored exactly. */
const maxExpiryMs = 1e15;

/** Checks how long a request may stay open, in whole milliseconds; `undefined` means forever. */
export function checkExpiry(field: string, milliseconds: number | undefined, refuse: Refuse): void {
  if (milliseconds === undefined) return;
  if (Number.isSafeInteger(milliseconds) && milliseconds >= 1 && milliseconds <= maxExpiryMs) return;
  throw refuse(
    `${field} is ${describeValue(milliseconds)}; use a whole number of milliseconds of at least 1, or leave it out for never.`,
  );
}

export function checkOptionalFunction(field: string, value: unknown, refuse: Refuse): void {
  if (value === undefined || typeof value === "function") return;
  throw refuse(`${field} must be a function, not ${value === null ? "null" : typeof value}.`);
}

/** Options that make a call wait for a person or for credentials, unchecked. */
interface WaitOptions {
  readonly needsApproval?: unknown;
  readonly approvalExpiresAfterMs?: number | undefined;
  readonly describeCall?: unknown;
  readonly auth?: unknown;
}

export function checkWaits(options: WaitOptions, refuse: Refuse): void {
  const { needsApproval, approvalExpiresAfterMs, describeCall, auth } = options;
  if (!["undefined", "boolean", "function"].includes(typeof needsApproval)) {
    throw refuse(`needsApproval must be true, false or a function, not ${describeValue(needsApproval)}.`);
  }
  checkExpiry("approvalExpiresAfterMs", approvalExpiresAfterMs, refuse);
  if (approvalExpiresAfterMs !== undefined && needsApproval === undefined) {
    throw refuse("approvalExpiresAfterMs is set, but no call needs approval; set needsApproval as well.");
  }
  checkOptionalFunction("describeCall", describeCall, refuse);
  if (auth !== undefined && auth !== "required") {
    throw refuse(`auth is ${describeValue(auth)}; use "required", or leave it out.`);
  }
}

/** Options of tools whose calls run in a queue's workers, unchecked. */
interface QueueChoice {
  readonly queue?: unknown;
  readonly priority?: number | undefined;
  readonly concurrency?: number | undefined;
}

/** The queue of wake jobs, which activate agents. */
const QUEUE_OF_AGENTS = "wake";
const HIGHEST_PRIORITY = 1_000_000;

export function checkQueue({ queue, priority, concurrency }: QueueChoice, refuse: Refuse): void {
  if (queue === undefined) {
    if (priority === undefined) return;
    throw refuse("priority is set without a queue; set queue as well.");
  }
  try {
    assertId("queue", queue);
  } catch (error) {
    throw refuse(error instanceof Error ? `${error.message}.` : "queue is not valid.", error);
  }
  if (queue === QUEUE_OF_AGENTS) {
    throw refuse(`queue is "${QUEUE_OF_AGENTS}", which is reserved for agents; give the tool's queue another name.`);
  }
  if (concurrency !== undefined) {
    throw refuse(
      `concurrency and queue are both set; set the concurrency of the queue on its workers: createRuntime({ work: { queues: { "${queue}": { concurrency: ${describeValue(concurrency)} } } } }).`,
    );
  }
  if (priority === undefined) return;
  if (typeof priority === "number" && Number.isSafeInteger(priority) && priority >= 0 && priority <= HIGHEST_PRIORITY)
    return;
  throw refuse(
    `priority is ${describeValue(priority)}; use a whole number from 0 to 1,000,000, the lowest runs first.`,
  );
}
