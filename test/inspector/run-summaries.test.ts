import { expect, onTestFinished, test } from "vitest";
import { createRuntime, memoryStores } from "../../src/index.ts";
import { Feed } from "../../src/inspector/index.ts";
import { createRedactor } from "../../src/telemetry/index.ts";
import { watchedTeam } from "./team.ts";

test("a run in a list is read whole only when it has got rows since (1)", async () => {
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

test("a secret that crosses the cut of a task is taken out whole", async () => {
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
