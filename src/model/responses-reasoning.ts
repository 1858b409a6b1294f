import type { Json, JsonObject } from "../state/index.ts";
import { withOpaqueTokens } from "./reasoning-size.ts";

/*
 * An answer of the Responses API is a list of items. The message that is stored has its text and its calls; the rest of the list is
 * stored in `reasoning`, in the order of the items, so that the list can be sent back. No text is stored twice.
 */

/** An item as it is stored. */
export type StoredItem =
  | {
      readonly type: "reasoning";
      readonly id?: string;
      /** The parts of the summary. */
      readonly summary?: readonly string[];
      /** The thoughts themselves, of servers that do not encrypt them. */
      readonly content?: readonly string[];
      readonly encrypted_content?: string;
    }
  /** The next characters of the message's text, or a text that is not part of it. */
  | { readonly type: "message"; readonly length: number; readonly phase?: string }
  | { readonly type: "message"; readonly text: string; readonly phase?: string }
  /** A call of the message, by the id that its server gave it. */
  | { readonly type: "call"; readonly id: string }
  /** A call of a tool that the server has executed, as the server wrote it. */
  | { readonly type: "hosted"; readonly item: JsonObject };

/** Stands in the message's text between the texts of two items. */
export const textSeparator = "\n\n";

export function storedReasoning(
  items: readonly StoredItem[],
  reasoningTokens: number | undefined,
): JsonObject | undefined {
  if (items.every((item) => item.type === "call" || (item.type === "message" && isPlain(item)))) return undefined;
  return withOpaqueTokens({ items: items as unknown as Json }, reasoningTokens);
}

function isPlain(item: Extract<StoredItem, { type: "message" }>): boolean {
  return "length" in item && item.phase === undefined;
}
