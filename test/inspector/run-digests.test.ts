import { expect, onTestFinished, test } from "vitest";
import { createRuntime, defineAgent, memoryStores } from "../../src/index.ts";
import { Feed } from "../../src/inspector/index.ts";
import { createRedactor } from "../../src/telemetry/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { watchedTeam } from "./team.ts";

test("a run in a list is read again only if it has new rows (1)", async () => {
  const stores = memoryStores();
  let reads = 0;
  const counted = {
    ...stores,
    treeHead: (tenant: string, runId: string) => {
      reads += 1;
      return stores.treeHead(tenant, runId);
    },
  };
  const runtime = await createRuntime({ agents: [watchedTeam()], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  const feed = new Feed();
  feed.add({ stores: counted, tenant: runtime.tenant, runtime });
  const row = async () => (await feed.runs({})).items[0];
  expect(await row()).toMatchObject({ task: "", agents: 1, failedAgents: 0 });
  await agent.executeTurn("Look  at\nit.").result;
  await expect.poll(row).toMatchObject({ task: "Look at it.", agents: 2, failedAgents: 0 });
  const before = reads;
  for (let times = 0; times < 20; times += 1) await row();
  expect(reads).toBe(before);
});

test("a secret that crosses the cut of a task is removed completely", async () => {
  const secret = "sk-9f3a-a-secret-that-is-long-enough";
  const runtime = await createRuntime({ agents: [watchedTeam()] });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  await agent.executeTurn(`${"word ".repeat(30)}${secret}`).result;
  const feed = new Feed({ redactor: createRedactor({ secrets: [secret] }) });
  feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
  const seen = JSON.stringify(await feed.runs({}));
  expect(seen).toContain("word word");
  expect(seen).not.toContain("sk-9f3a");
});

test("with names only the task of a run is hidden", async () => {
  const runtime = await createRuntime({ agents: [watchedTeam()] });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  await agent.executeTurn("Look at it.").result;
  const feed = new Feed({ namesOnly: true });
  feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
  expect((await feed.runs({})).items).toMatchObject([{ runId: "desk", task: "", agents: 2 }]);
});

test("a list of runs is filtered by their spending and by their start", async () => {
  const runtime = await createRuntime({
    agents: [watchedTeam(), defineAgent({ name: "clerk", model: scriptedModel("Noted.", { name: "small-1" }) })],
  });
  onTestFinished(() => runtime.shutdown());
  for (const [name, agentId] of [
    ["lead", "one"],
    ["clerk", "two"],
  ] as const) {
    const agent = await runtime.agent(name, { agentId });
    await agent.start();
    await agent.executeTurn("Look at it.").result;
  }
  const feed = new Feed();
  feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
  const ids = async (query: Parameters<Feed["runs"]>[0]) => (await feed.runs(query)).items.map(({ runId }) => runId);
  const [newest, oldest] = (await feed.runs({})).items;
  expect(newest?.spending).toMatchObject([{ name: "clerk", model: "small-1", use: { calls: 1 } }]);
  expect(oldest?.spending.map(({ name, use }) => [name, use.calls])).toEqual([
    ["lead", 2],
    ["reader", 1],
  ]);
  expect(await ids({ agent: "reader" })).toEqual(["one"]);
  expect(await ids({ model: "small-1" })).toEqual(["two"]);
  expect(await ids({ model: "small-1", agent: "reader" })).toEqual([]);
  expect(await ids({ since: newest?.createdAt })).toContain("two");
  expect(await ids({ since: (newest?.createdAt ?? 0) + 1 })).toEqual([]);
  expect(await ids({ until: oldest?.createdAt })).toEqual([]);
  expect(await ids({ since: oldest?.createdAt, until: (newest?.createdAt ?? 0) + 1 })).toEqual(["two", "one"]);
});
