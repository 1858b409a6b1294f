import { promptChange, type PromptChange } from "../context/index.ts";
import type { HookPatch, ModelRequest, ModelResponse } from "../state/index.ts";

/** A model call whose share of cached input is judged. */
export interface WatchedCall {
  readonly request: ModelRequest;
  readonly response: Pick<ModelResponse, "usage" | "model">;
  /** The changes that `beforeLlm` hooks made for this call. */
  readonly edits: readonly HookEdit[];
}

/** What makes an agent's prompts. */
export interface PromptMakers {
  readonly hasInstructionsFunction: boolean;
  /** Name of the history compiler. */
  readonly history: string;
  /** Whether the message belongs to the conversation since its last compaction. */
  isInHistory(messageId: string): boolean;
}

export interface HookEdit {
  readonly plugin: string;
  readonly patch: HookPatch;
}

/** Providers cache no shorter prompts. */
const SHORTEST_CACHED = 1_024;
/** Calls in a row with a low share before the warning. */
const MOST_LOW = 3;

/**
 * Watches how much of an agent's prompts the provider reads from its cache. Owns: the last answered call of a live agent, in memory.
 * 1. A call counts as low if the provider read less than half of what it could have cached: the shorter of its prompt and the one
 *    before it.
 * 2. Calls of unknown or short prompts, and of providers that report no cached tokens, do not count.
 * 3. It warns once.
 */
export class CacheWatch {
  #last: WatchedCall | undefined;
  #low = 0;
  #hasWarned = false;

  /** The warning about this call; `undefined` if there is none. */
  noteAnswered(call: WatchedCall, makers: PromptMakers): { code: string; message: string } | undefined {
    if (this.#hasWarned) return undefined;
    const before = this.#last;
    this.#last = call;
    const { inputTokens, cachedInputTokens, estimated } = call.response.usage;
    const most = Math.min(inputTokens, before?.response.usage.inputTokens ?? 0);
    const isKnown = cachedInputTokens !== undefined && estimated !== true && most >= SHORTEST_CACHED;
    if (!isKnown || before === undefined || cachedInputTokens * 2 >= most) {
      this.#low = 0;
      return undefined;
    }
    this.#low += 1;
    if (this.#low < MOST_LOW) return undefined;
    this.#hasWarned = true;
    this.#last = undefined;
    const found = `the provider read ${cachedInputTokens} of ${inputTokens} input tokens from its cache, and less than half in ${MOST_LOW} calls in a row`;
    return { code: "prompt_cache_lost", message: `${found}: ${reasonOf(before, call, makers)}` };
  }
}

function reasonOf(before: WatchedCall, call: WatchedCall, makers: PromptMakers): string {
  const { model } = before.response;
  if (model !== call.response.model) {
    return `the last two calls were answered by different models, "${model}" and "${call.response.model}", and each has its own cache`;
  }
  const change = promptChange(before.request, call.request);
  if (change === undefined) {
    return "the last prompt begins with the whole prompt before it, so the provider did not keep it; it may need cache marks or a key, or calls in quicker succession";
  }
  const { from, to } = change;
  const cause = causeOf(change, [...before.edits, ...call.edits], makers);
  return `the last prompt differs from the one before it in bytes ${from} to ${to}, because of ${cause}; nothing after them can be read from the cache`;
}

function causeOf({ what }: PromptChange, edits: readonly HookEdit[], makers: PromptMakers): string {
  if (what.type === "tools") return `the list of tools${listed("with", what.added)}${listed("without", what.removed)}`;
  const { before, now } = what;
  if (before.role === "system" && before.id === "instructions") {
    return makers.hasInstructionsFunction ? "the function instructions()" : "other instructions";
  }
  const edit = edits.find(({ patch }) => [before.id, now?.id].some((id) => id !== undefined && touches(patch, id)));
  if (edit !== undefined) {
    return edit.plugin === "agent"
      ? "a beforeLlm hook of the agent"
      : `a beforeLlm hook of the plugin "${edit.plugin}"`;
  }
  return makers.isInHistory(before.id)
    ? `the history compiler "${makers.history}"`
    : "a compaction of the conversation";
}

function touches({ edited, removedMessageIds }: HookPatch, id: string): boolean {
  return removedMessageIds.includes(id) || edited.some(({ messageId }) => messageId === id);
}

function listed(word: string, names: readonly string[]): string {
  return names.length === 0 ? "" : `, ${word} ${names.join(", ")}`;
}
