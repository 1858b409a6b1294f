import { type Json, stableStringify } from "./plain-values.ts";

export const AUDIT_FORMAT = "troupe.audit/1";

/** SHA-256 of a text in UTF-8, as 64 hexadecimal digits. The page and Node have different implementations. */
export type Sha256 = (text: string) => string;

/** An object of which each text, list and object can be removed: its hash stays, so that the hash of the whole does not change. */
export interface Sealed {
  /** The fields that are there. */
  readonly fields: Readonly<Record<string, Json>>;
  /** The hashes of removed fields; `undefined` if there are none. */
  readonly removed?: Readonly<Record<string, string>> | undefined;
}

/** A message that an entry adds. Without `message` only its hash is left; the hash is `null` if the message was deleted before any audit. */
export interface AuditMessage {
  /** Its id. */
  readonly id: string;
  /** The hash of the message; `null` if it is unknown. */
  readonly hash: string | null;
  /** Absent if the content was removed or deleted. */
  readonly message?: Sealed | undefined;
}

/** An entry in the chain of its agent. */
export interface AuditLink {
  /** The agent of the entry. */
  readonly agentId: string;
  /** The entry. */
  readonly entry: Sealed;
  /** The messages that the entry adds to the conversation. */
  readonly messages: readonly AuditMessage[];
  /** Hash of the previous link of the agent, the entry and its messages; `null` from the first message without a hash on. */
  readonly hash: string | null;
}

/** Seals an object of plain values. Members that are `undefined` are left out, as in JSON. */
export function seal(value: object): Sealed {
  return { fields: Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) };
}

/** The hash of a value: the SHA-256 of its canonical JSON (RFC 8785). */
export function hashOfJson(value: unknown, sha256: Sha256): string {
  return sha256(stableStringify(value));
}

/** The same hash with and without the removable fields: texts, lists and objects enter it by their hashes. */
export function hashOfSealed({ fields, removed = {} }: Sealed, sha256: Sha256): string {
  const parts = Object.entries(fields).map(([name, value]) => [
    name,
    isHashed(value) ? hashOfJson(value, sha256) : value,
  ]);
  return hashOfJson(Object.fromEntries([...parts, ...Object.entries(removed)]), sha256);
}

/** Whether a field enters the hash of its object by its own hash, so that it can be removed. */
export function isHashed(value: Json | undefined): boolean {
  return typeof value === "string" || (typeof value === "object" && value !== null);
}

/** The hash of a message, whether or not it is there; `null` if it is unknown. */
export function hashOfMessage({ hash, message }: AuditMessage, sha256: Sha256): string | null {
  return message ? hashOfSealed(message, sha256) : hash;
}

/** The hash of a link after `previous` of the same agent; `null` if either has none. */
export function hashOfLink(
  { agentId, entry, messages }: Omit<AuditLink, "hash">,
  previous: string | null,
  sha256: Sha256,
): string | null {
  const added = messages.map((message) => [message.id, hashOfMessage(message, sha256)] as const);
  if (previous === null || added.some(([, hash]) => hash === null)) return null;
  return hashOfJson([agentId, previous, hashOfSealed(entry, sha256), added], sha256);
}

/** The chain over all agents. Each link continues the head, so that a head stays verifiable while the run goes on. */
export function headAfter(head: string | null, link: string | null, sha256: Sha256): string | null {
  return head === null || link === null ? null : hashOfJson([head, link], sha256);
}

/** The head of a run without entries. */
export function firstHead(rootAgentId: string, sha256: Sha256): string {
  return hashOfJson([AUDIT_FORMAT, rootAgentId], sha256);
}
