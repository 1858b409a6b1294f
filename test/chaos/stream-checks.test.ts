// A check must be seen to find a planted fault before an empty result means anything.
import { beforeAll, expect, it } from "vitest";
import { type ClientRecord, clientViolations, eventsOf, type TreeEvent } from "../../chaos/checks/stream-checks.ts";
import { type TreeEvidence, treesIn } from "../../src/testing/simulation/evidence.ts";
import { taskPrefix } from "../../chaos/model/script.ts";
import type { AskedTurn } from "../../chaos/serving/client.ts";
import { createRuntime, defineAgent, memoryStores, subagent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { calling } from "../support/turn-probes.ts";

let tree: TreeEvidence;
let events: readonly TreeEvent[];
/** A client that received everything, on the tree and on the stream of its second turn. */
let calm: ClientRecord;

beforeAll(async () => {
  const hand = defineAgent({ name: "hand", model: scriptedModel("handed") });
  const model = scriptedModel(["one", calling({ name: "hand", arguments: { input: "help" } }), "two"]);
  const stores = memoryStores();
  const runtime = await createRuntime({
    agents: [defineAgent({ name: "desk", model, tools: [subagent(hand)] })],
    stores,
  });
  const agent = await runtime.agent("desk", { agentId: "a" });
  await agent.start();
  for (const number of [1, 2]) await agent.executeTurn(`${taskPrefix}a/t${number}`).result;
  [tree] = (await treesIn(stores)) as [TreeEvidence];
  events = await eventsOf(tree, { reader: runtime, least: 0 });
  await runtime.shutdown();
  const begin = events.findIndex(({ turnId }) => turnId === "a#2");
  const own = events.slice(begin).filter(({ turnId, agentId }) => turnId === "a#2" || agentId !== "a");
  calm = { agentId: "a", faults: [], seen: events, turns: [turnOf(1), { ...turnOf(2), seen: own }] };
});

function turnOf(number: number): AskedTurn {
  const turnId = `a#${number}`;
  return {
    key: `turn-${number}`,
    task: `a/t${number}`,
    turnIds: [turnId, turnId],
    seen: undefined,
    end: "turn.completed",
  };
}

function found(changes: Partial<ClientRecord>): string {
  return clientViolations({ ...calm, ...changes }, tree, events).join("\n");
}

it("finds nothing if each event came once and each key is one turn", () => {
  expect(found({})).toBe("");
  expect(events.filter(({ type }) => type === "turn.completed")).toHaveLength(3);
});

it("finds an event that is missing, duplicated, or replaced", () => {
  const { seen } = calm;
  expect(found({ seen: seen.toSpliced(4, 1) })).toMatch(/event 5 of \d+ is/);
  expect(found({ seen: seen.toSpliced(4, 0, ...seen.slice(3, 4)) })).toMatch(/event 5 .* had come before/);
  expect(found({ seen: seen.with(4, { ...events[4], hash: "other" } as TreeEvent) })).toMatch(/event 5/);
  expect(found({ seen: [...seen, { id: "99.1.0", type: "warning", hash: "" }] })).toMatch(/the store has nothing/);
  expect(found({ seen: seen.slice(0, -3) })).toMatch(/lacked the end of the last turn/);
});

it("finds a gap in the stream of a turn", () => {
  const [first, second] = calm.turns;
  if (!first || !second?.seen) throw new Error("two turns");
  expect(found({ turns: [first, { ...second, seen: second.seen.toSpliced(2, 1) }] })).toMatch(/the stream of turn-2/);
});

it("finds a key with two turns or none, and a turn that no client requested", () => {
  const [first, second] = calm.turns;
  if (!first || !second) throw new Error("two turns");
  expect(found({ turns: [{ ...first, turnIds: ["a#1", "a#2"] }, second] })).toMatch(/received a#1, a#2/);
  expect(found({ turns: [{ ...first, task: "a/t9" }, second] })).toMatch(/0 turns have its input/);
  expect(found({ turns: [second] })).toMatch(/1 turns were requested, 2 started/);
  expect(found({ faults: ["lost"] })).toBe("lost");
});
