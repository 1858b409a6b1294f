import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import {
  AlreadyOwnedError,
  createRuntime,
  defineAgent,
  LeaseLostError,
  localQueues,
  type Queues,
  type RuntimeOptions,
} from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { createFakeClock, scriptedModel } from "../../src/testing/index.ts";
import { elapse, loopTurns } from "../support/journal-probes.ts";

const key = { tenant: "default", agentId: "a" };

/** A process with a queue, one without, and a check that the first releases its lease after the agent's next turn. */
async function twoProcesses() {
  const folder = mkdtempSync(join(tmpdir(), "troupe-held-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const clock = createFakeClock();
  const agents = [defineAgent({ name: "one", model: scriptedModel(() => "hello") })];
  const shared: Queues = { ...localQueues(), kind: "shared" };
  const open = async (options: Partial<RuntimeOptions>) => {
    const stores = sqliteStores(join(folder, "t.db"));
    const runtime = await createRuntime({ agents, clock, stores, ...options });
    onTestFinished(async () => {
      await runtime.shutdown();
    });
    return { runtime, stores };
  };
  const { runtime: here, stores } = await open({ queues: shared });
  const { runtime: other } = await open({});
  const expectToLeave = async (): Promise<void> => {
    const { runtime: client } = await open({ role: "client", queues: { ...shared, close: async () => undefined } });
    const again = await client.find("a");
    await again.start();
    expect(await elapse(clock, again.executeTurn("go").result)).toMatchObject({ text: "hello" });
    const left = (async () => {
      while (await stores.holder(key)) await loopTurns(5);
    })();
    await elapse(clock, left);
  };
  return { here, other, stores, expectToLeave };
}

it("an agent that another process took before its handle was shut down is not kept here when it comes back", async () => {
  const { here, other, stores, expectToLeave } = await twoProcesses();
  const agent = await here.agent("one", { agentId: "a" });
  await agent.start();
  // Another process takes it, as if this one had been silent for long.
  await stores.release(key, (await stores.holder(key))?.epoch ?? 0, { as: "leaving" });
  await (await other.find("a")).start();
  await expect(agent.clear()).rejects.toThrow(LeaseLostError);
  await agent.shutdown();
  await other.shutdown();
  await expectToLeave();
});

it("an agent that a handle could not start, because another process had it, is not kept when it comes here", async () => {
  const { here, other, expectToLeave } = await twoProcesses();
  await (await other.agent("one", { agentId: "a" })).start();
  await expect((await here.find("a")).start()).rejects.toThrow(AlreadyOwnedError);
  await other.shutdown();
  await expectToLeave();
});
