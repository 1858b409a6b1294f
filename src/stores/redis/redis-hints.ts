import type { RedisConnection } from "./redis-connection.ts";
import type { HintKeys } from "./redis-keys.ts";
import { textsOf } from "./redis-replies.ts";
import { correctHintScript, forgetHintScript, HINTS_LAST_MS, hintScript } from "./redis-scripts.ts";
import type { HintWrite } from "./redis-session.ts";

export interface ToldHints {
  /** By the clock of Redis, in ms; empty where nothing was told. */
  readonly at: string;
  /** For each "look", in order: when its member was told of last. */
  readonly stamps: readonly string[];
}

/**
 * The lists over trees.
 * Owns: how they are written. Does not own: the truth, which is in the trees.
 *
 * Invariants
 * 1. A list may name what is not there (any more); it never lacks what is: it is written before the tree is changed.
 * 2. A member is corrected only after its tree was changed, so that whoever told of it before has to tell again.
 */
export class RedisHints {
  readonly #connection: RedisConnection;

  constructor(connection: RedisConnection) {
    this.#connection = connection;
  }

  /** All of one tree. */
  async tell(hints: readonly HintWrite[]): Promise<ToldHints> {
    if (hints.length === 0) return { at: "", stamps: [] };
    const keys: string[] = [];
    const numberOf = (key: string): number => {
      const known = keys.indexOf(key);
      return known < 0 ? keys.push(key) : known + 1;
    };
    const args = hints.flatMap(({ kind, keys: { list, stamps }, member, score }) => [
      kind,
      numberOf(list),
      numberOf(stamps),
      member,
      score ?? "",
    ]);
    const [at = "", ...stamps] = textsOf(await this.#connection.script(hintScript, keys, args));
    return { at, stamps };
  }

  /** When a member was told of last; empty where it was not. To be asked before its tree is changed. */
  async lastTold({ stamps }: HintKeys, member: string): Promise<string> {
    return (await this.#connection.run((client) => client.hget(stamps, member))) ?? "";
  }

  /** For a member of which nothing is stored: it goes when nobody can be about to store it. */
  async forget({ list, stamps }: HintKeys, member: string): Promise<void> {
    await this.#connection.script(forgetHintScript, [list, stamps], [member, 2 * HINTS_LAST_MS]);
  }

  /** `score` undefined: takes the member out. */
  async correct({ list, stamps }: HintKeys, member: string, seen: string, score?: number): Promise<void> {
    await this.#connection.script(correctHintScript, [list, stamps], [member, seen, score ?? ""]);
  }
}
