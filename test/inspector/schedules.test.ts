import { expect, test } from "vitest";
import { createRuntime, defineAgent } from "../../src/index.ts";
import { Feed } from "../../src/inspector/feed/feed.ts";
import { scriptedModel } from "../../src/testing/index.ts";

test("the list of schedules has their times and last runs, and not their inputs", async () => {
  const runtime = await createRuntime({ agents: [defineAgent({ name: "desk", model: scriptedModel("done") })] });
  const feed = new Feed();
  feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
  const input = "canary-input-41";
  await runtime.schedule("report", { agent: "desk", input, cron: "0 9 * * *", timezone: "Europe/Berlin" });
  await runtime.schedule("tick", { agent: "desk", input, every: "15m", agentId: "bot" });
  await runtime.schedules.runNow("tick");
  await runtime.schedules.pause("tick");
  const schedules = await feed.schedules();
  expect(JSON.stringify(schedules)).not.toContain("canary");
  expect(schedules).toMatchObject([
    { key: "tick", name: "desk", agentId: "bot", times: "every 900 s", isPaused: true, runs: [{ runId: "bot" }] },
    { key: "report", agentId: null, times: "0 9 * * * (Europe/Berlin)", isPaused: false, runs: [] },
  ]);
  await runtime.shutdown();
});
