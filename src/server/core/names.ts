import { createHash } from "node:crypto";
import { stableStringify } from "../../base/index.ts";

/** The namespace of one caller's names. */
export interface NameScope {
  /** Tenant of the runtime. */
  readonly tenant: string;
  /** The caller who chose the name. */
  readonly ownerId: string;
  /** Name of the agent's definition. */
  readonly definition: string;
}

/**
 * The agent id for a client's name of a conversation, thread or context. One name is the same conversation on all
 * surfaces; the same name of another caller is another agent.
 */
export function agentIdOfName({ tenant, ownerId, definition }: NameScope, name: string): string {
  return hashOf([tenant, ownerId, definition, name]);
}

/** The id of the agent that a request with an idempotency key and without an agent name creates. */
export function agentIdOfKey({ tenant, ownerId }: Omit<NameScope, "definition">, { route, value }: RequestKey): string {
  return hashOf([tenant, ownerId, { route, key: value }]);
}

/** The id of the schedule that a caller names. */
export function scheduleIdOfName({ tenant, ownerId }: Omit<NameScope, "definition">, name: string): string {
  return hashOf([tenant, ownerId, { schedule: name }]);
}

/** The id of the schedule that a request with an idempotency key and without a name creates. */
export function scheduleIdOfKey({ tenant, ownerId }: Omit<NameScope, "definition">, key: RequestKey): string {
  return hashOf([tenant, ownerId, { schedule: { route: key.route, key: key.value } }]);
}

/** An idempotency key, scoped to one route. */
export interface RequestKey {
  /** Name of the surface and of its route: `api.startTurn`. */
  readonly route: string;
  /** The key as the client sent it. */
  readonly value: string;
}

const LONGEST_TURN_KEY = 255;

/** The key of the turn that a request starts. Long keys are hashed. */
export function turnKeyOf({ route, value }: RequestKey): string {
  const key = `${route}/${value}`;
  return key.length <= LONGEST_TURN_KEY ? key : `${route}/sha256:${createHash("sha256").update(value).digest("hex")}`;
}

/** SHA-256 of a value's JSON content as 64 hex digits, independent of the order of members. */
export function contentHash(value: unknown): string {
  return createHash("sha256").update(stableStringify(value)).digest("hex");
}

function hashOf(parts: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32);
}
