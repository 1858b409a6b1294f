import type { Message, ModelRequest, ModelTool } from "../state/index.ts";
import { digestOf, LAST_CALL_ID } from "./prompt.ts";

/** The first position at which a prompt differs from the one before it: from there on a provider cannot read it from its cache. */
export interface PromptChange {
  /** Bytes of the earlier prompt that have changed, counted over tools and messages in the order in which they are sent. */
  readonly from: number;
  readonly to: number;
  readonly what:
    | { readonly type: "tools"; readonly added: readonly string[]; readonly removed: readonly string[] }
    | {
        readonly type: "message";
        /** The message of the earlier prompt at this position. */
        readonly before: Message;
        /** The message that is now at this position; `undefined` if the prompt ends there. */
        readonly now: Message | undefined;
      };
}

/** `undefined` if the prompt begins with all of the earlier one. */
export function promptChange(before: ModelRequest, now: ModelRequest): PromptChange | undefined {
  const tools = before.tools ?? [];
  const toolsNow = now.tools ?? [];
  const changedTool = firstDifference(tools, toolsNow, toolText);
  if (changedTool !== undefined) {
    const from = bytesOf(tools.slice(0, changedTool), toolText);
    const what = { type: "tools", added: namesOnlyIn(toolsNow, tools), removed: namesOnlyIn(tools, toolsNow) } as const;
    return { from, to: bytesOf(tools, toolText), what };
  }
  // The note of a last call is at the end, and no later prompt contains it.
  const messages = before.messages.filter(({ id }) => id !== LAST_CALL_ID);
  const index = messages.findIndex((message, at) => !isSame(message, now.messages[at]));
  const changed = messages[index];
  if (changed === undefined) return undefined;
  const start = bytesOf(tools, toolText) + bytesOf(messages.slice(0, index), messageText);
  const next = now.messages[index];
  // Where messages were left out, the next one that is still sent ends the change.
  const kept = next === undefined ? -1 : messages.findIndex((message, at) => at > index && isSame(message, next));
  const end = kept < 0 ? index + 1 : kept;
  const from = kept < 0 ? start + commonBytes(messageText(changed), next ? messageText(next) : "") : start;
  const to = start + bytesOf(messages.slice(index, end), messageText);
  return { from, to, what: { type: "message", before: changed, now: next } };
}

function firstDifference<Item>(
  before: readonly Item[],
  now: readonly Item[],
  textOfItem: (item: Item) => string,
): number | undefined {
  for (let index = 0; index < Math.max(before.length, now.length); index += 1) {
    const [one, other] = [before[index], now[index]];
    if (one === other) continue;
    if (one === undefined || other === undefined || textOfItem(one) !== textOfItem(other)) return index;
  }
  return undefined;
}

function isSame(one: Message, other: Message | undefined): boolean {
  return one === other || (other !== undefined && digestOf(one) === digestOf(other));
}

function namesOnlyIn(tools: readonly ModelTool[], others: readonly ModelTool[]): readonly string[] {
  return tools.flatMap(({ name }) => (others.some((other) => other.name === name) ? [] : [name]));
}

function toolText({ name, description, parameters }: ModelTool): string {
  return JSON.stringify({ name, description, parameters });
}

function messageText(message: Message): string {
  const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
  const text = typeof message.content === "string" ? message.content : JSON.stringify(message.content);
  return text + calls.map(({ name, arguments: given }) => name + given).join("");
}

function bytesOf<Item>(items: readonly Item[], textOfItem: (item: Item) => string): number {
  return items.reduce((sum, item) => sum + Buffer.byteLength(textOfItem(item)), 0);
}

/** Bytes with which both texts begin. */
function commonBytes(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return Buffer.byteLength(one.slice(0, length));
}
