// The inspector marks runs with stubs, and an audit does not count their calls as effects.
import { createRuntime, memoryStores } from "troupe";
import { auditRun, Feed, verifyAudit, withoutContent } from "troupe/inspector";
import { expect, onTestFinished, test } from "vitest";
import { look, pay, rounds, stubbedDesk, stubs } from "../support/stubbed-desk.ts";

test("a run with stubs is marked, and its audit has no effect that ran", async () => {
  const stores = memoryStores();
  const { desk } = stubbedDesk({ needsApproval: true });
  const runtime = await createRuntime({ agents: [desk], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("desk", { agentId: "shop", stubs });
  await agent.start();
  const turn = agent.executeTurn(rounds([...look("7"), ...pay("1")], look("9")));
  await turn.settled;
  const [request] = await runtime.requests({ status: "open" });
  await runtime.decide(request?.requestId ?? "", { verdict: "approved" });
  expect((await turn.result).error?.code).toBe("stub_mismatch");
  const plain = await runtime.agent("desk", { agentId: "plain" });
  await plain.start();

  const feed = new Feed();
  feed.add({ stores, tenant: "default" });
  const { items } = await feed.runs({});
  expect(Object.fromEntries(items.map(({ runId, isStubbed }) => [runId, isStubbed]))).toEqual({
    plain: undefined,
    shop: true,
  });
  expect((await feed.head("shop")).agents).toMatchObject([{ isStubbed: true }]);

  const audit = await auditRun({ stores, agentId: "shop" });
  for (const file of [audit, withoutContent(audit)]) {
    const { verdict, effects } = verifyAudit(file, { head: audit.head ?? "" });
    expect(verdict).toBe("verified");
    expect(effects.map(({ name, outcome, attempts }) => `${name} ${outcome} ${attempts}`).toSorted()).toEqual([
      "look refused 0",
      "look stubbed 0",
      "pay stubbed 0",
    ]);
  }
});
