import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { createRuntime, defineAgent, LeaseLostError, localQueues, type Queues, type RuntimeOptions } from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { createFakeClock, scriptedModel } from "../../src/testing/index.ts";
import { elapse, loopTurns } from "../support/journal-probes.ts";

const key = { tenant: "default", agentId: "a" };

it("an agent whose handle was shut down after another process had taken it is not kept here when it comes back", async () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-held-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const clock = createFakeClock();
  const agents = [defineAgent({ name: "one", model: scriptedModel(() => "hello") })];
  const shared: Queues = { ...localQueues(), kind: "shared" };
  const open = async (options: Partial<RuntimeOptions>) => {
    const stores = sqliteStores(join(folder, "t.db"));
    const runtime = await createRuntime({ agents, clock, stores, ...options });
    onTestFinished(async () => void (await runtime.shutdown()));
    return { runtime, stores };
  };
  const { runtime: here, stores } = await open({ queues: shared });
  const agent = await here.agent("one", { agentId: "a" });
  await agent.start();
  // Another process takes it, as after a long silence of this one.
  const { runtime: other } = await open({});
  await stores.release(key, (await stores.holder(key))?.epoch ?? 0, { as: "leaving" });
  const theirs = await other.find("a");
  await theirs.start();
  await expect(agent.clear()).rejects.toThrow(LeaseLostError);
  await agent.shutdown();
  await other.shutdown();

  const { runtime: client } = await open({ role: "client", queues: { ...shared, close: async () => undefined } });
  const again = await client.find("a");
  await again.start();
  expect(await elapse(clock, again.executeTurn("go").result)).toMatchObject({ text: "hello" });
  const left = (async () => {
    while (await stores.holder(key)) await loopTurns(5);
  })();
  await elapse(clock, left);
});
