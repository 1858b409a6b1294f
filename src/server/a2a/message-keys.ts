import type { RequestKey } from "../core/names.ts";

const ROUTE = "a2a.send";

/** The extension that announces: a repeated message with a task or context id returns its existing task. */
export const MESSAGE_KEYS = "urn:troupe:a2a:message-keys:v1";

/** The idempotency key of a message. A message can decide several requests; then each decision has its own key. */
export function keyOfMessage(messageId: string, requestId?: string): RequestKey {
  const value = encodeURIComponent(messageId.toWellFormed());
  return { route: ROUTE, value: requestId === undefined ? value : `${value}#${encodeURIComponent(requestId)}` };
}

/** The message id in a stored key; `undefined` for hashed keys and for keys of other surfaces. */
export function messageIdOfKey(key: string | null): string | undefined {
  const [, encoded] = /^a2a\.send\/((?:[\w.!~*'()-]|%[0-9A-F]{2})+)(?:#|$)/.exec(key ?? "") ?? [];
  return encoded === undefined ? undefined : decodeURIComponent(encoded);
}
