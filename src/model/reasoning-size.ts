import type { JsonObject } from "../state/index.ts";

/** Fields with reasoning that only its provider can read. Counted as text, they have many times the tokens that they stand for. */
const opaqueFields: ReadonlySet<string> = new Set(["encrypted_content", "reasoningEncryptedContent", "redactedData"]);

/** The size of stored reasoning in a prompt. */
export interface ReasoningSize {
  /** What is counted as text. */
  readonly text: string;
  /** The tokens of the fields that the text leaves out. */
  readonly opaqueTokens: number;
}

/**
 * If an adapter stores reasoning with `opaqueTokens`, the tokens that its provider has reported for it, this number is counted in place
 * of the opaque fields, but never more than their bytes. All other reasoning is counted as text.
 */
export function reasoningSize(reasoning: JsonObject): ReasoningSize {
  const { opaqueTokens, ...fields } = reasoning;
  if (typeof opaqueTokens !== "number") return { text: JSON.stringify(reasoning), opaqueTokens: 0 };
  let bytes = 0;
  const text = JSON.stringify(fields, (name, value: unknown) => {
    if (!opaqueFields.has(name) || typeof value !== "string") return value;
    bytes += Buffer.byteLength(value);
    return undefined;
  });
  return { text, opaqueTokens: Math.min(opaqueTokens, bytes) };
}

/** The reasoning with the tokens that its provider has reported for it; unchanged if nothing in it is opaque. */
export function withOpaqueTokens(reasoning: JsonObject, tokens: number | undefined): JsonObject {
  if (tokens === undefined || tokens === 0 || !isOpaque(reasoning)) return reasoning;
  return { ...reasoning, opaqueTokens: tokens };
}

/** Providers nest their fields less deeply than this; items of hosted tools may have any depth. */
const DEEPEST_FIELD = 16;

function isOpaque(value: unknown, depth = 0): boolean {
  if (typeof value !== "object" || value === null || depth > DEEPEST_FIELD) return false;
  return Object.entries(value).some(([name, field]) => opaqueFields.has(name) || isOpaque(field, depth + 1));
}
