// Accounts above the roots at the edges of their windows, and with ids that look like something else.
import { expect, it } from "vitest";
import { type Account, defineAgent, InvalidInputError, type Runtime } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

const usage = { inputTokens: 20, outputTokens: 180 };
const clerk = defineAgent({
  name: "clerk",
  model: scriptedModel(() => ({ text: "Done.", usage })),
  maxOutputTokens: 400,
});
/** Texts that some part could take for a separator, a key, a path or markup. */
const oddIds = [
  "a:b",
  "perDay:ada",
  "tenant:total",
  "__proto__",
  "ann@example.com",
  "ö 日本 🙂",
  "{x}",
  "../x",
  "%2F",
  "a".repeat(200),
];

async function account(runtime: Runtime, id: string): Promise<Account | undefined> {
  return (await runtime.accountsAbove()).find((one) => one.id === id);
}

async function turnOf(runtime: Runtime, ownerId: string) {
  const agent = await runtime.agent("clerk", { ownerId });
  await agent.start();
  return await agent.executeTurn("Sort the post.").result;
}

describeRuntimes("accounts above the roots at their edges", (stage) => {
  it("a call that is reserved before midnight and settled after it is used in the second day, and nothing stays reserved", async () => {
    const gate = createGate<{ text: string; usage: typeof usage }>();
    const slow = defineAgent({
      name: "clerk",
      model: scriptedModel((_request, { signal }) => gate.pass(signal)),
      maxOutputTokens: 400,
    });
    const { clock } = stage();
    // In Berlin this day has 23 hours, and ends at 22:00 UTC.
    clock.jump(Date.parse("2026-03-29T21:59:59Z") - clock.now());
    const accounts = { owner: { perDay: { maxTokens: 900 } }, timeZone: "Europe/Berlin" };
    const runtime = await stage().open({ agents: [slow], accounts });
    const turn = turnOf(runtime, "ada");
    await gate.reached();
    const before = await account(runtime, "owner:perDay:ada");
    expect(before).toMatchObject({
      used: { tokens: 0, treeSteps: 1 },
      outer: { endsAt: Date.parse("2026-03-29T22:00:00Z") },
    });
    expect(before?.reserved.tokens).toBeGreaterThan(400);
    clock.jump(2_000);
    gate.open({ text: "Done.", usage });
    expect((await turn).status).toBe("completed");
    expect(await account(runtime, "owner:perDay:ada")).toMatchObject({
      used: { tokens: 200, treeSteps: 0 },
      reserved: { tokens: 0 },
      outer: { startsAt: Date.parse("2026-03-29T22:00:00Z"), endsAt: Date.parse("2026-03-30T22:00:00Z") },
    });
  });

  it("owners with odd ids have accounts of their own, which can be listed and added to", async () => {
    const runtime = await stage().open({ agents: [clerk], accounts: { owner: { total: { maxTokens: 640 } } } });
    for (const ownerId of oddIds) expect((await turnOf(runtime, ownerId)).status, ownerId).toBe("completed");
    const listed = await runtime.accountsAbove();
    expect(new Set(listed.map(({ outer }) => outer?.name))).toEqual(new Set(oddIds));
    expect(listed).toHaveLength(oddIds.length);
    for (const ownerId of oddIds) {
      const [own, ...others] = await runtime.accountsAbove({ ownerId });
      expect(others).toEqual([]);
      expect(own).toMatchObject({ id: `owner:total:${ownerId}`, used: { tokens: 200 }, reserved: { tokens: 0 } });
      const raised = await runtime.addToAccount(`owner:total:${ownerId}`, { maxTokens: 10 });
      expect(raised.limits.maxTokens).toBe(650);
    }
  });

  it("nothing is added to a limit that the account does not have", async () => {
    const runtime = await stage().open({ agents: [clerk], accounts: { owner: { total: { maxTokens: 640 } } } });
    await turnOf(runtime, "ada");
    const more = runtime.addToAccount("owner:total:ada", { maxTokens: 5, maxCost: 5 });
    await expect(more).rejects.toThrow(InvalidInputError);
    await expect(more).rejects.toThrow("it limits 640 tokens");
    expect(await account(runtime, "owner:total:ada")).toMatchObject({ limits: { maxTokens: 640 } });
  });
});
