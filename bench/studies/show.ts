import { join } from "node:path";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { troupe } from "../../test/cli/support/in-process.ts";
import { largeTurn } from "../ours/large-team.ts";
import { type Pair, type Side, type Study, timed } from "../study.ts";
import { temporaryFolder } from "../temporary-folder.ts";

/** `troupe show` of a large stored tree, against only reading its journal. Storing it takes minutes and is not measured. */
export const show: Study = {
  name: "show",
  title: "`troupe show` of a lead with 2,000 children of 11 steps each, against reading its journal",
  unit: "ms",
  plan: (quick) => ({ warmUps: 1, rounds: quick ? 3 : 9 }),
  pairs: async (quick) => showPairs(quick ? 200 : 2_000),
};

export function showPairs(children: number): readonly Pair[] {
  const tree = storedTree(children);
  const ours = sideOf("show", tree, async (file) => {
    const { code, out } = await troupe(["show", "desk", "--store", file]);
    if (code !== 0 || !out.some((line) => line.startsWith("total"))) throw new Error(`show: ended with ${code}.`);
  });
  const bare = sideOf("journal", tree, async (file) => {
    const stores = sqliteStores(file);
    for (let after = 0, isMore = true; isMore; ) {
      const rows = await stores.readTree("default", "desk", after, 500);
      after = rows.at(-1)?.cursor ?? after;
      isMore = rows.length > 0;
    }
    await stores.close();
  });
  return [{ stores: "sqlite", ours, bare }];
}

interface StoredTree {
  /** Writes the file on the first call. */
  file(): Promise<string>;
  /** Each side must call it; the last call removes the file. */
  release(): void;
}

function storedTree(children: number): StoredTree {
  const { folder, remove } = temporaryFolder();
  const path = join(folder, "tree.db");
  let written: Promise<void> | undefined;
  let sides = 0;
  return {
    async file() {
      sides += 1;
      written ??= largeTurn({ stores: sqliteStores(path) }, { children, steps: 11 });
      await written;
      return path;
    },
    release() {
      sides -= 1;
      if (sides === 0) remove();
    },
  };
}

function sideOf(name: string, tree: StoredTree, work: (file: string) => Promise<void>): Side {
  return {
    name,
    prepare: async () => {
      const file = await tree.file();
      return {
        sample: async () => {
          const { elapsedMs, processorMs } = await timed(() => work(file));
          return { value: elapsedMs, processorMs };
        },
        close: async () => tree.release(),
      };
    },
  };
}
