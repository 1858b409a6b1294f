import { afterEach, describe, expect, test } from "vitest";
import type { Memory, MemoryKey, MemoryStore } from "../../src/kit/index.ts";

const memory = (id: string, text: string, createdAt = 1): Memory => ({ id, text, createdAt });

const idsOf = (found: readonly Memory[]): readonly string[] => found.map(({ id }) => id);

const all = async (store: MemoryStore, key: MemoryKey): Promise<readonly string[]> =>
  idsOf(await store.recall(key, { query: "", limit: 100 }));

/** Rules that every `MemoryStore` keeps. */
export function memoryStoreContract(kind: string, create: () => MemoryStore & { close?: () => Promise<void> }): void {
  describe(`${kind} as a MemoryStore`, () => {
    const opened: { close?: () => Promise<void> }[] = [];
    const open = (): MemoryStore => {
      const store = create();
      opened.push(store);
      return store;
    };
    afterEach(async () => {
      for (const store of opened.splice(0)) await store.close?.();
    });
    const ada: MemoryKey = { tenant: "t", scope: "owner", id: "ada" };

    test("finds what shares words with the query, the best first, in any case and with any accents", async () => {
      const store = open();
      await store.remember(ada, memory("tea", "Ada drinks green tea in the morning."));
      await store.remember(ada, memory("cafe", "The CAFÉ near Ada's office is called Zürich."));
      await store.remember(ada, memory("train", "Ada takes the train."));
      const search = async (query: string, limit = 10): Promise<readonly string[]> =>
        idsOf(await store.recall(ada, { query, limit }));
      expect(await search("Which GREEN tea does Ada drink?")).toContain("train");
      expect((await search("Which GREEN tea does Ada drink?"))[0]).toBe("tea");
      expect(await search("cafe zurich")).toEqual(["cafe"]);
      expect(await search("Ada", 2)).toHaveLength(2);
      expect(await search("nothing fits")).toEqual([]);
      expect(await store.recall(ada, { query: "green", limit: 1 })).toEqual([
        { id: "tea", text: "Ada drinks green tea in the morning.", createdAt: 1 },
      ]);
    });

    test("an empty query gives the newest first", async () => {
      const store = open();
      for (const [index, id] of ["a", "b", "c"].entries()) await store.remember(ada, memory(id, "x", index));
      expect(idsOf(await store.recall(ada, { query: " ", limit: 2 }))).toEqual(["c", "b"]);
    });

    test("the same id again changes nothing", async () => {
      const store = open();
      await Promise.all([store.remember(ada, memory("1", "first")), store.remember(ada, memory("1", "first"))]);
      await store.remember(ada, memory("1", "second", 9));
      expect(await store.recall(ada, { query: "", limit: 9 })).toEqual([memory("1", "first")]);
      expect(await store.recall(ada, { query: "second", limit: 9 })).toEqual([]);
    });

    test("keys never mix: tenants, scopes, ids that look alike (S14)", async () => {
      const store = open();
      await store.remember(ada, memory("1", "canary"));
      const strangers: MemoryKey[] = [
        { ...ada, tenant: "u" },
        { ...ada, scope: "agent" },
        ...["Ada", "ada ", "ada%", "*", '" OR 1=1', "null", "ad", "adá"].map((id) => ({ ...ada, id })),
        { tenant: 't","owner', scope: "owner", id: "ada" },
      ];
      for (const key of strangers) {
        expect(await store.recall(key, { query: "canary", limit: 9 })).toEqual([]);
        expect(await all(store, key)).toEqual([]);
        await store.forget(key, { id: "1" });
        await store.forget(key, "all");
      }
      expect(await all(store, ada)).toEqual(["1"]);
    });

    test("nothing in a query is syntax", async () => {
      const store = open();
      await store.remember(ada, memory("1", "A note about tea AND NOT coffee."));
      await store.remember({ ...ada, id: "ben" }, memory("2", "The tea of Ben."));
      const hostile = [
        'tea"',
        '"tea',
        "tea*",
        "tea OR",
        "NEAR(tea)",
        "terms : tea",
        "-tea",
        "^tea",
        "(tea",
        "tea)",
        "{terms}: tea",
        "tea + ",
        `tea') OR 1=1 --`,
        'owner : "x" OR terms : tea',
        "tea\0null",
        "tea \ud800",
        "NOT tea",
        `${"word ".repeat(5_000)}tea`,
      ]; // prettier-ignore
      for (const query of hostile) {
        const found = idsOf(await store.recall(ada, { query, limit: 9 }));
        expect([[], ["1"]]).toContainEqual(found);
      }
      for (const query of ["!?*", "\0", "()", '""', "🙂"]) {
        expect(await store.recall(ada, { query, limit: 9 })).toEqual([]);
      }
      expect(idsOf(await store.recall(ada, { query: "tea*) OR (x", limit: 9 }))).toEqual(["1"]);
    });

    test("what is forgotten is found no more, and can be remembered again", async () => {
      const store = open();
      for (const id of ["1", "2", "3"]) await store.remember(ada, memory(id, `tea ${id}`));
      await store.forget(ada, { id: "1" });
      await store.forget(ada, { id: "unknown" });
      expect([...(await all(store, ada))].sort()).toEqual(["2", "3"]);
      expect(idsOf(await store.recall(ada, { query: "1", limit: 9 }))).toEqual([]);
      await store.remember(ada, memory("1", "tea again"));
      expect(idsOf(await store.recall(ada, { query: "again", limit: 9 }))).toEqual(["1"]);
      await store.forget(ada, "all");
      expect(await all(store, ada)).toEqual([]);
      expect(await store.recall(ada, { query: "tea", limit: 9 })).toEqual([]);
    });
  });
}
