// `troupe forecast`, and `troupe budget` for accounts above the agents.
import { expect, test } from "vitest";
import { createRuntime, defineAgent } from "../../../src/index.ts";
import { sqliteStores } from "../../../src/stores/sqlite.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { temporaryFile } from "../../stores/temporary-file.ts";
import { troupe } from "../support/in-process.ts";

const usage = { inputTokens: 50, outputTokens: 50 };
const clerk = defineAgent({ name: "clerk", model: scriptedModel(() => ({ text: "done", usage })) });

async function planted() {
  const path = temporaryFile();
  const accounts = { owner: { perDay: { maxTokens: 70_000 } }, tenant: { total: { maxSteps: 5 } } };
  const runtime = await createRuntime({ agents: [clerk], stores: sqliteStores(path), accounts });
  for (const ownerId of ["ada", "bob"]) {
    const agent = await runtime.agent("clerk", { agentId: `desk-${ownerId}`, ownerId, budget: { maxTokens: 9_000 } });
    await agent.start();
    await agent.executeTurn("go").result;
  }
  await runtime.shutdown();
  return (...words: readonly string[]) => troupe([...words, "--store", path]);
}

test("lists each limit with its use, its renewal and its forecast", async () => {
  const command = await planted();
  const { code, out } = await command("forecast");
  expect(code).toBe(0);
  expect(out[0]).toMatch(/^ACCOUNT +LIMIT +USED +RESERVED/);
  expect(out[1]).toMatch(/^owner ada, per day +70,000 tokens +100 +-/);
  expect(out[2]).toMatch(/^owner bob, per day/);
  expect(out[3]).toMatch(/^the tenant, in total +5 steps +2 +- .* never/);
  expect((await command("forecast", "--owner", "ada")).out).toHaveLength(3);
  expect((await command("forecast", "desk-ada")).out[1]).toMatch(/^desk-ada, its whole life +9,000 tokens +100/);
  const [first = "{}"] = (await command("forecast", "--json")).out;
  expect(JSON.parse(first)).toMatchObject({
    accountId: "owner:perDay:ada",
    limit: "maxTokens",
    used: 100,
    max: 70_000,
  });
  expect((await command("forecast", "desk-ada", "--owner", "ada")).code).toBe(2);
});

test("budget adds to an account above the agents", async () => {
  const command = await planted();
  expect((await command("budget", "owner:perDay:ada", "--max-tokens", "5000")).out).toEqual([
    "Until it renews: owner ada, per day: 70,000 tokens → 75,000 tokens",
  ]);
  expect((await command("budget", "tenant:total", "--max-steps", "3")).out).toEqual([
    "Until it renews: the tenant, in total: 5 steps → 8 steps",
  ]);
  for (const words of [
    ["owner:perDay:ada", "--max-tokens", "none"],
    ["owner:perDay:ada", "--max-seconds", "5"],
    ["owner:perDay:zoe", "--max-cost", "5"],
  ]) {
    expect((await command("budget", ...words)).code, words.join(" ")).toBe(2);
  }
});

test("budget without an agent lists the accounts, page by page", async () => {
  const command = await planted();
  const { code, out } = await command("budget");
  expect(code).toBe(0);
  expect(out).toHaveLength(4);
  expect(out[0]).toMatch(/^ACCOUNT +LIMIT +USED +RESERVED +LEFT +RENEWS +ID$/);
  expect(out[1]).toMatch(/^owner ada, per day +70,000 tokens +100 +- +69,900 .* owner:perDay:ada$/);
  expect(out[3]).toMatch(/^the tenant, in total +5 steps +2 +- +3 +never +tenant:total$/);
  expect((await command("budget", "--owner", "bob")).out.slice(1).map((line) => line.split(" ").at(-1))).toEqual([
    "owner:perDay:bob",
    "tenant:total",
  ]);
  const seen: string[] = [];
  for (let after: string | undefined; ; ) {
    const page = await command("budget", "--json", "--limit", "1", ...(after === undefined ? [] : ["--after", after]));
    const [row] = page.out.map((line) => JSON.parse(line) as { accountId: string });
    if (!row) break;
    seen.push(row.accountId);
    after = row.accountId;
  }
  expect(seen).toEqual(["owner:perDay:ada", "owner:perDay:bob", "tenant:total"]);
  const first = await command("budget", "--limit", "2");
  expect(first.out.at(-1)).toMatch(/^More: .*budget --limit 2 --after owner:perDay:bob/);
  const [line = ""] = (await command("budget", "--json", "--owner", "ada")).out;
  expect(JSON.parse(line)).toMatchObject({
    accountId: "owner:perDay:ada",
    scope: "owner",
    name: "ada",
    window: "perDay",
    limits: { maxTokens: 70_000 },
    used: { tokens: 100 },
    reserved: { tokens: 0 },
    renewsAt: expect.any(Number),
  });
  for (const words of [
    ["--max-cost", "5"],
    ["desk-ada", "--json"],
    ["owner:perDay:ada", "--limit", "3"],
    ["--owner", "ada", "--after", "x"],
  ]) {
    expect((await command("budget", ...words)).code, words.join(" ")).toBe(2);
  }
});

test("budget adds nothing to a limit that the account does not have", async () => {
  const command = await planted();
  const { code, notes } = await command("budget", "owner:perDay:ada", "--max-cost", "5");
  expect(code).toBe(2);
  expect(notes.join(" ")).toContain('account "owner:perDay:ada" cannot get $5.00 more, because it does not limit them');
});
