import { assert, asyncProperty, constantFrom, oneof, string, tuple } from "fast-check";
import { expect, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { amount } from "../support/full.ts";
import { messageOf, note } from "./entry-fixtures.ts";
import { NOW, ROOT } from "./names.ts";
import { identityOf, agentKey, openAgent } from "./stores-fixtures.ts";

/** Parts that would be ambiguous if keys were concatenated. */
const risky = constantFrom(
  "a",
  "a/b",
  "b",
  "/",
  ":",
  "a:",
  "#1",
  "~",
  "*",
  "{a}",
  "a\0",
  "\0",
  "__proto__",
  "constructor",
  "%00",
  " a",
  "A",
  "ä",
  "a\u0308",
);
const id = oneof(risky, string({ unit: "binary", minLength: 1, maxLength: 6 }));

export function keysContract(subject: () => Stores): void {
  test("the same agent id in two tenants is two agents", async () => {
    for (const tenant of ["red", "blue"]) {
      const owner = await openAgent(subject(), { tenant });
      await owner.commit({ entries: [note(tenant)], messages: [messageOf("m1", tenant)] });
    }
    await subject().pause(agentKey(ROOT, "red"), "ann", NOW);
    expect(await subject().readAgent(agentKey(ROOT, "blue"))).toMatchObject({ tenant: "blue", pause: null });
    expect(await subject().messages(agentKey(ROOT, "blue"))).toEqual([messageOf("m1", "blue")]);
    expect(await subject().inbox(agentKey(ROOT, "blue"))).toEqual([]);
    expect(await subject().readTree("blue", ROOT, 0, 10)).toHaveLength(2);
    expect(await subject().accounts("blue", ROOT)).toHaveLength(2);
    expect(await subject().listAgents({ tenant: "blue" })).toMatchObject([{ tenant: "blue" }]);
    expect(await subject().listAgents({ tenant: "green" })).toEqual([]);
  });

  test("distinct keys are kept apart, with any characters in them", async () => {
    const seen = new Map<string, string>();
    await assert(
      asyncProperty(tuple(id, id), async ([tenant, agentId]) => {
        const name = JSON.stringify([tenant, agentId]);
        const known = await subject().readAgent({ tenant, agentId });
        expect(known?.metadata["name"]).toBe(seen.get(name));
        if (seen.has(name)) return;
        await subject().createAgent(identityOf(agentId, { tenant, metadata: { name } }), null);
        seen.set(name, name);
        const stored = await subject().readAgent({ tenant, agentId });
        expect(stored).toMatchObject({ tenant, agentId, metadata: { name } });
      }),
      { numRuns: amount(2000, 200) },
    );
    expect(seen.size).toBeGreaterThan(amount(500, 50));
  });

  test("similar message ids and inbox keys are kept apart", async () => {
    const owner = await openAgent(subject());
    const ids = ["a", "A", "a\0", "a\0b", "ä", "a\u0308", "", " ", "__proto__", "constructor"];
    const posts = ids.map((key) => ({ agentId: ROOT, item: { kind: "budget.freed", key, at: NOW } as const }));
    await owner.commit({ entries: [note("all")], messages: ids.map((one) => messageOf(one)), posts });
    for (const one of ids) expect(await subject().messagesById(agentKey(), [one])).toEqual([messageOf(one)]);
    expect((await subject().inbox(agentKey())).map((item) => item.key)).toEqual(ids);
  });
}
