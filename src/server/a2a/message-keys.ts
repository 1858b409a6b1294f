import type { RequestKey } from "../core/names.ts";

const ROUTE = "a2a.send";

/** The extension that tells clients: a message that names a context or a task, and is sent again, finds the task as it is. */
export const MESSAGE_KEYS = "urn:troupe:a2a:message-keys:v1";

/**
 * The idempotency key of a message. A message may decide several requests; then each decision has a key of its own.
 */
export function keyOfMessage(messageId: string, requestId?: string): RequestKey {
  const value = encodeURIComponent(messageId.toWellFormed());
  return { route: ROUTE, value: requestId === undefined ? value : `${value}#${encodeURIComponent(requestId)}` };
}

/** The id of the message that a stored key stands for; undefined for keys of other surfaces, and hashed ones. */
export function messageIdOfKey(key: string | null): string | undefined {
  const [, encoded] = /^a2a\.send\/((?:[\w.!~*'()-]|%[0-9A-F]{2})+)(?:#|$)/.exec(key ?? "") ?? [];
  return encoded === undefined ? undefined : decodeURIComponent(encoded);
}
