import type { Json } from "../../state/index.ts";

/** Times that lie after the entry that contains them. */
const laterFields: ReadonlySet<string> = new Set(["expiresAt", "retryAt", "until", "deadlineAt"]);
/** Data of models, tools and people. */
const otherFields: ReadonlySet<string> = new Set([
  "arguments",
  "structured",
  "note",
  "value",
  "result",
  "patch",
  "response",
]);

/** Copies a stored value with its deadlines, expiries and waits `byMs` later, so that a fork has the time that its origin had. */
export function withLaterTimes<T>(value: T, byMs: number): T {
  return moved(value as Json, byMs) as T;
}

function moved(value: Json, byMs: number): Json {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((member) => moved(member, byMs));
  const copy: Record<string, Json> = {};
  for (const [name, member] of Object.entries(value)) {
    const isLater = laterFields.has(name) && typeof member === "number";
    copy[name] = isLater ? member + byMs : otherFields.has(name) ? member : moved(member, byMs);
  }
  return copy;
}
