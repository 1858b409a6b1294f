import { afterEach, expect, it, onTestFinished, vi } from "vitest";
import {
  createRuntime,
  defineAgent,
  memoryStores,
  type Stores,
  StoreUnavailableError,
  subagent,
} from "../../src/index.ts";
import { createFakeClock, scriptedModel } from "../../src/testing/index.ts";
import { elapse, loopTurns } from "../support/journal-probes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** Stores in memory whose `method` fails for the matching agents while `failure` is set. */
function failing(method: "release" | "inbox", isMeant: (agentId: string) => boolean) {
  const stores = memoryStores();
  const state: { failure: Error | undefined; failed: number } = { failure: undefined, failed: 0 };
  const call = (async (...given: unknown[]) => {
    const [{ agentId }] = given as [{ agentId: string }];
    if (!state.failure || !isMeant(agentId)) return await Reflect.apply(stores[method], stores, given);
    state.failed += 1;
    throw state.failure;
  }) as Stores["release"] & Stores["inbox"];
  return { state, stores: { ...stores, [method]: call } };
}

const isChild = (agentId: string): boolean => agentId.includes("~");

/** A turn that has its child's result and waits at the gate for its own answer. */
async function afterChild(failure: Error) {
  const { state, stores } = failing("release", isChild);
  state.failure = failure;
  const clock = createFakeClock();
  const gate = createGate<string>();
  const helper = defineAgent({ name: "helper", model: scriptedModel("helped") });
  const lead = defineAgent({
    name: "lead",
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool" ? gate.pass() : calling({ name: "helper", arguments: { input: "Help." } }),
    ),
    tools: [subagent(helper)],
  });
  const runtime = await createRuntime({ agents: [lead], stores, clock });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("lead", { agentId: "a" });
  await agent.start();
  const turn = agent.executeTurn("Go.");
  await gate.reached();
  while (state.failed === 0) await loopTurns(1);
  return { runtime, clock, gate, state, turn, stores };
}

it("a child whose lease the stores cannot release fails no turn, and is released once they answer", async () => {
  const { runtime, clock, gate, state, turn, stores } = await afterChild(new StoreUnavailableError("away"));
  gate.open("the end");
  expect(await turn.result).toMatchObject({ status: "completed", text: "the end" });
  const child = (await stores.listAgents({ tenant: "default" })).find(({ agentId }) => isChild(agentId));
  if (!child) throw new Error("expected a child");
  expect(await stores.holder(child)).toBeDefined();
  state.failure = undefined;
  const given = (async () => {
    while (await stores.holder(child)) await loopTurns(1);
  })();
  await elapse(clock, given, 5_000);
  expect((await runtime.metrics()).liveAgents).toBe(1);
});

it("a warning names the failed release", async () => {
  const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
  const { turn, state } = await afterChild(new Error("no such lease"));
  await expect(turn.result).rejects.toThrow("no such lease");
  state.failure = undefined;
  expect(warned.mock.calls).toEqual([
    [expect.stringMatching(/^agent a~\w+ could not be released: Error: no such lease$/)],
  ]);
});

it("a queued turn waits for stores that did not answer when the turn before it ended", async () => {
  const { state, stores } = failing("inbox", (agentId) => agentId === "a");
  const clock = createFakeClock();
  const gate = createGate<string>();
  const agents = [defineAgent({ name: "one", model: scriptedModel(() => gate.pass()) })];
  const runtime = await createRuntime({ agents, stores, clock });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("one", { agentId: "a" });
  await agent.start();
  const turns = [agent.executeTurn("first"), agent.executeTurn("second", { ifBusy: "queue" })] as const;
  await turns[1].id;
  await gate.reached();
  await loopTurns(5);
  state.failure = new StoreUnavailableError("away");
  gate.open("done");
  expect(await turns[0].result).toMatchObject({ text: "done" });
  while (state.failed === 0) await loopTurns(1);
  state.failure = undefined;
  expect(await elapse(clock, turns[1].result, 5_000)).toMatchObject({ status: "completed", text: "done" });
});
