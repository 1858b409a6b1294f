import type { JournalRow } from "../../state/index.ts";
import { Answers } from "./redis-answers.ts";
import type { TreeKeys } from "./redis-keys.ts";
import type { RedisReader } from "./redis-reader.ts";
import { type RowKind, valueOf } from "./redis-rows.ts";
import { readWholeTree, type WholeTree } from "./redis-whole-tree.ts";

/** What a piece of work may read of a tree, whether or not it also writes. */
export interface RowsOfTree {
  get<T>(kind: RowKind<T>): T | undefined;
  /** Those that are there, in the order of `kinds`. */
  all<T>(kinds: readonly RowKind<T>[]): T[];
  newestRow(agentId: string, reader: RedisReader): JournalRow | undefined;
}

/** Over what work runs that only reads: everything is read anew, and nothing is kept. */
export class ReadSession {
  readonly answers: Answers;

  constructor(answers: Answers = new Answers()) {
    this.answers = answers;
  }

  of(tree: TreeKeys, reader: RedisReader): RowsOfTree {
    const whole = this.whole(tree);
    const get = <T>(kind: RowKind<T>): T | undefined => {
      const row = whole?.rows.get(kind.field);
      if (whole) return row && valueOf(row, kind, tree.rows);
      return this.answers.ask(`row|${tree.rows}|${kind.field}`, () => reader.row(tree, kind));
    };
    return {
      get,
      all: (kinds) => kinds.flatMap((kind) => get(kind) ?? []),
      newestRow: (agentId) => {
        if (whole) return whole.journal.findLast((row) => row.agentId === agentId);
        const index = tree.ofAgent("index", agentId);
        return this.answers.ask(`newest|${index}`, () => reader.newestRow(tree, index));
      },
    };
  }

  /** The tree, where all of it was read. */
  whole(tree: TreeKeys): WholeTree | undefined {
    return this.answers.get(`whole|${tree.tag}`) as WholeTree | undefined;
  }

  readWhole(tree: TreeKeys, reader: RedisReader): WholeTree {
    return this.answers.ask(`whole|${tree.tag}`, () => readWholeTree(reader, tree));
  }
}
