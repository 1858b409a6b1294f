import { expect, test } from "vitest";
import type { McpTokenKey, McpTokenStore } from "../../src/mcp/index.ts";

/** What every token store does. `open` opens the same store again, as another process would. */
export function mcpTokensContract(open: () => { readonly store: McpTokenStore; readonly again: McpTokenStore }): void {
  const key: McpTokenKey = { server: "https://desk.example.com/mcp", actorId: "ann", item: "tokens" };

  test("returns what was set last, also in another process, until it is deleted", async () => {
    const { store, again } = open();
    expect(await store.get(key)).toBe(undefined);
    await store.set(key, "first");
    await store.set(key, "second é 🎭");
    expect([await store.get(key), await again.get(key)]).toEqual(["second é 🎭", "second é 🎭"]);
    await again.delete(key);
    await again.delete(key);
    expect(await store.get(key)).toBe(undefined);
  });

  test("keeps apart servers, actors and items, with any names", async () => {
    const { store } = open();
    const keys: McpTokenKey[] = [
      key,
      { ...key, item: "flow" },
      { ...key, actorId: null },
      { ...key, actorId: "null" },
      { ...key, actorId: "../ann" },
      { ...key, actorId: 'ann","tokens' },
      { ...key, actorId: "Ann" },
      { ...key, server: "https://desk.example.com/mcp2" },
    ];
    for (const [index, one] of keys.entries()) await store.set(one, `${index}`);
    expect(await Promise.all(keys.map(async (one) => await store.get(one)))).toEqual(
      keys.map((_, index) => `${index}`),
    );
  });

  test("many writes at the same time leave one of the values", async () => {
    const { store } = open();
    const values = Array.from({ length: 20 }, (_, index) => `${index}`.repeat(10_000));
    await Promise.all(values.map(async (value) => await store.set(key, value)));
    expect(values).toContain(await store.get(key));
  });
}
