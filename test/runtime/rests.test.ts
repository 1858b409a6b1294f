import { describe, expect, it, onTestFinished } from "vitest";
import {
  type AgentDefinition,
  createRuntime,
  defineAgent,
  memoryStores,
  type Runtime,
  type Stores,
  subagent,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { openTill, payment, requestOf, startAgent } from "../support/deciding.ts";
import { loopTurns, toolTexts } from "../support/journal-probes.ts";
import { calling, createGate, nextEvent } from "../support/turn-probes.ts";

async function open(stores: Stores, agents: AgentDefinition[]): Promise<Runtime> {
  const runtime = await createRuntime({ agents, stores });
  onTestFinished(() => runtime.shutdown());
  return runtime;
}

const asks = (amount: number, ...more: Parameters<typeof calling>) =>
  scriptedModel(({ messages }) =>
    messages.at(-1)?.role === "user" ? calling(payment(amount), ...more) : toolTexts(messages).join(" | "),
  );

describe("settled of a waiting turn", () => {
  it("does not resolve before a subagent's turn has started, however long its activation takes", async () => {
    const stores = memoryStores();
    const gate = createGate();
    const acquire: Stores["acquire"] = async (key, ...how) => {
      if (key.agentId !== "l") await gate.pass();
      return await stores.acquire(key, ...how);
    };
    const till = openTill();
    const aide = defineAgent({ name: "aide", model: asks(2), tools: [till.tool] });
    const model = asks(1, { name: "aide", arguments: { input: "go" } });
    const lead = defineAgent({ name: "lead", model, tools: [till.tool, subagent(aide)] });
    const runtime = await open({ ...stores, acquire }, [lead]);
    onTestFinished(() => gate.open());
    const agent = await startAgent(runtime, "lead", "l");
    const asked = nextEvent(runtime, ({ type, agentId }) => type === "turn.waiting" && agentId === "l");
    let isAtRest = false;
    const rest = agent.executeTurn("go").settled.finally(() => {
      isAtRest = true;
    });
    await Promise.all([asked, gate.reached()]);
    await loopTurns(20);
    expect(isAtRest).toBe(false);
    gate.open();
    expect(await rest).toMatchObject({ status: "waiting", requests: [{ agentName: "lead" }, { agentName: "aide" }] });
  });

  it("does not return a request decided before the call, even if an earlier read still shows it", async () => {
    const stores = memoryStores();
    const gate = createGate();
    let isSlow = false;
    const treeActivity: Stores["treeActivity"] = async (...of) => {
      const found = await stores.treeActivity(...of);
      if (isSlow) await gate.pass();
      return found;
    };
    const till = openTill();
    const model = scriptedModel(({ messages }) => (messages.at(-1)?.role === "user" ? calling(payment(1)) : "done"));
    const clerk = defineAgent({ name: "clerk", model, tools: [till.tool] });
    const runtime = await open({ ...stores, treeActivity }, [clerk]);
    onTestFinished(() => gate.open());
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = agent.executeTurn("go");
    const { requestId } = await requestOf(turn);
    isSlow = true;
    const early = agent.turn("c#1").settled;
    await gate.reached();
    isSlow = false;
    await runtime.decide(requestId, { verdict: "approved" });
    const late = agent.turn("c#1").settled;
    gate.open();
    expect(await late).toMatchObject({ status: "completed", text: "done" });
    expect((await early).status).toMatch(/waiting|completed/);
    expect(await turn.settled).toMatchObject({ status: "completed" });
  });
});
