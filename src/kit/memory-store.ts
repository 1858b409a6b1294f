import { createHash } from "node:crypto";
import { hasMethods, type OptionRule, ruleOf } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { wordsOf } from "./words.ts";

/** One remembered text. */
export interface Memory {
  /** The same for the same text, so that a text is remembered once. */
  readonly id: string;
  /** The text, up to 4,000 characters. It may have been written by a model. */
  readonly text: string;
  /** When it was remembered, in milliseconds since the epoch. */
  readonly createdAt: number;
}

/** Whose memories they are. Memories of different keys must never mix. */
export interface MemoryKey {
  /** The tenant of the runtime. */
  readonly tenant: string;
  /** `agent`: memories of one agent. `owner`: memories of all agents of an owner. */
  readonly scope: "agent" | "owner";
  /** Id of the agent or of the owner; never empty. */
  readonly id: string;
}

/** Where memories are kept. The methods may be called by several processes at once. */
export interface MemoryStore {
  /** Adds a memory. The same id again changes nothing. */
  remember(key: MemoryKey, memory: Memory): Promise<void>;
  /**
   * Up to `limit` memories of a key, those that fit the query best first. The query is any text, for instance what a user wrote; nothing in
   * it may count as syntax. With an empty query: the newest first.
   */
  recall(key: MemoryKey, search: { readonly query: string; readonly limit: number }): Promise<readonly Memory[]>;
  /** Removes the memory of an id, or with `"all"` every memory of a key, with their texts. What does not exist changes nothing. */
  forget(key: MemoryKey, which: { readonly id: string } | "all"): Promise<void>;
}

export const memoryStoreRule: OptionRule = ruleOf(
  'a store of memories: sqliteMemory({ file: "./memory.db" }), processMemory(), or an object with remember(), recall() and forget()',
  (value) => hasMethods(value, ["remember", "recall", "forget"]),
);

/** How many characters one memory may have, in UTF-16 units. */
export const LONGEST_MEMORY = 4_000;
/** How many memories a key may have in the stores that come with the package. */
export const MOST_MEMORIES = 10_000;

export function tooManyMemories(): InvalidInputError {
  return new InvalidInputError(
    `There are ${MOST_MEMORIES} memories already; forget some that are no longer needed first.`,
  );
}

/** The memory of a text; the same text gives the same id. */
export function memoryOf(text: string, createdAt: number): Memory {
  const kept = text.trim().toWellFormed();
  return { id: createHash("sha256").update(kept).digest("hex").slice(0, 20), text: kept, createdAt };
}

/** The order of memories without a query: the newest first. */
export function newestFirst(one: Memory, other: Memory): number {
  return other.createdAt - one.createdAt || (one.id < other.id ? -1 : Number(one.id > other.id));
}

/**
 * Keeps memories in this process, for tests; they end with it. Memories that share more words with the query, and rarer ones, come first.
 */
export function processMemory(): MemoryStore {
  const all = new Map<string, Map<string, Memory>>();
  const of = (key: MemoryKey): readonly Memory[] => [...(all.get(nameOf(key))?.values() ?? [])];
  return {
    async remember(key, { id, text, createdAt }) {
      const kept = all.get(nameOf(key)) ?? new Map<string, Memory>();
      if (kept.has(id)) return;
      if (kept.size >= MOST_MEMORIES) throw tooManyMemories();
      all.set(nameOf(key), kept.set(id, { id, text, createdAt }));
    },
    recall: async (key, { query, limit }) => bestOf(of(key), query).slice(0, limit),
    async forget(key, which) {
      if (which === "all") all.delete(nameOf(key));
      else all.get(nameOf(key))?.delete(which.id);
    },
  };
}

const nameOf = ({ tenant, scope, id }: MemoryKey): string => JSON.stringify([tenant, scope, id]);

function bestOf(memories: readonly Memory[], query: string): readonly Memory[] {
  const newest = memories.toSorted(newestFirst);
  if (query.trim() === "") return newest;
  const words = new Set(wordsOf(query));
  const found = newest.map((memory) => ({
    memory,
    shared: new Set(wordsOf(memory.text).filter((word) => words.has(word))),
  }));
  const occurrences = (word: string): number => found.filter(({ shared }) => shared.has(word)).length;
  const weights = new Map([...words].map((word) => [word, 1 / Math.max(1, occurrences(word))]));
  const scoreOf = (shared: ReadonlySet<string>): number =>
    [...shared].reduce((sum, word) => sum + (weights.get(word) ?? 0), 0);
  return found
    .filter(({ shared }) => shared.size > 0)
    .map(({ memory, shared }) => ({ memory, score: scoreOf(shared) }))
    .sort((one, other) => other.score - one.score)
    .map(({ memory }) => memory);
}
