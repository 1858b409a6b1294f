// A check must be seen to find a planted fault before an empty result means anything.
import { beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { type DeedOf, decisionViolations } from "../../chaos/checks/decision-checks.ts";
import { byKey } from "../../chaos/checks/effect-checks.ts";
import { type AgentEvidence, treesIn } from "../../src/testing/simulation/evidence.ts";
import type { Attempt } from "../../chaos/ledger/effect-ledger.ts";
import { type AgentRequest, createRuntime, defineAgent, defineTool, memoryStores } from "../../src/index.ts";
import type { Entry, EntryOf, EntryType } from "../../src/state/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { calling } from "../support/turn-probes.ts";
import { renumbered } from "./calm-tree.ts";

interface Evidence {
  readonly agent: AgentEvidence;
  readonly requests: readonly AgentRequest[];
  readonly attempts: readonly Attempt[];
}

const deedOf: DeedOf = (name, args) => `${name} ${JSON.stringify(args)}`;
const callIds = ["c#1:1:0", "c#1:1:1", "c#1:1:2"];

const wish = (name: string) => ({ name, arguments: { amount: 5 } });

/** The records of a run with one approved, one edited and one rejected call, undisturbed. */
async function undisturbed(): Promise<Evidence> {
  const attempts: Attempt[] = [];
  const tool = (name: string, effect: "keyed" | "once") =>
    defineTool({
      name,
      description: "Acts.",
      parameters: z.object({ amount: z.number() }),
      effect,
      needsApproval: true,
      execute: (args, { idempotencyKey: key }) => {
        const number = attempts.length + 1;
        attempts.push({ number, at: 1, key, tool: deedOf(name, args), effect, pid: 1, applied: true, receipt: "r" });
        return "ok";
      },
    });
  const clerk = defineAgent({
    name: "clerk",
    model: scriptedModel([calling(wish("charge"), wish("send"), wish("send")), "done"]),
    tools: [tool("charge", "keyed"), tool("send", "once")],
  });
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [clerk], stores });
  const agent = await runtime.agent("clerk", { agentId: "c" });
  await agent.start();
  const turn = agent.executeTurn("go");
  await turn.settled;
  await runtime.decide("c#1:1:0:1", { verdict: "approved", by: "ada" });
  await runtime.decide("c#1:1:1:1", { verdict: "edited", arguments: { amount: 1 } });
  await runtime.decide("c#1:1:2:1", { verdict: "rejected" });
  await turn.result;
  const [tree] = await treesIn(stores);
  const requests = await runtime.requests({ status: "decided" });
  await runtime.shutdown();
  const [evidence] = tree?.agents ?? [];
  if (!evidence) throw new Error("the agent is missing");
  return { agent: evidence, requests, attempts };
}

let calm: Evidence;
beforeAll(async () => {
  calm = await undisturbed();
});

function found({ agent, requests, attempts }: Evidence): string[] {
  return decisionViolations(agent, requests, byKey(attempts), deedOf);
}

function withEntries(change: (entries: readonly Entry[]) => readonly Entry[]): Evidence {
  return { ...calm, agent: { ...calm.agent, entries: renumbered(change(calm.agent.entries)) } };
}

const without = (type: EntryType) => withEntries((entries) => entries.filter((entry) => entry.type !== type));
const withAttempts = (change: (attempt: Attempt) => Attempt) => ({ ...calm, attempts: calm.attempts.map(change) });
const withRequests = (change: (requests: readonly AgentRequest[]) => readonly AgentRequest[]) => ({
  ...calm,
  requests: change(calm.requests),
});
/** Replaces every decision that was taken in; a list is spread. */
const withDecided = (change: (entry: EntryOf<"request.decided">) => Entry[]) =>
  withEntries((entries) => entries.flatMap((entry) => (entry.type === "request.decided" ? change(entry) : [entry])));
const unknownCharge = (entry: Entry): Entry =>
  entry.type === "tool.settled" && entry.name === "charge" ? { ...entry, outcome: "outcome_unknown" } : entry;
const startedFirst = (one: Entry, other: Entry): number =>
  Number(other.type === "tool.started") - Number(one.type === "tool.started");
const unseen = { tool: 'charge {"amount":5000}' };

it("finds nothing in an undisturbed run", () => {
  expect(calm.requests.map(({ callId }) => callId)).toEqual(callIds);
  expect(found(calm)).toEqual([]);
});

it.each<[string, () => Evidence, RegExp]>([
  ["a run without a request", () => withRequests((all) => all.slice(1)), /it ran without a request/],
  [
    "a request that was opened twice",
    () => withRequests((all) => [...all, ...all.map((request) => ({ ...request }))]),
    /asked about twice/,
  ],
  ["a request without its entry", () => without("request.opened"), /opened 0 times/],
  ["a decision that was not taken in", () => without("request.decided"), /journalled 0 times/],
  ["one taken in twice", () => withDecided((entry) => [entry, entry]), /journalled 2 times/],
  [
    "a decision taken in under another's id",
    () => withDecided((entry) => [{ ...entry, by: "bob" }]),
    /stored as approved by ada/,
  ],
  [
    "a request that is still open",
    () => withRequests((all) => all.map((request) => ({ ...request, status: "open", decision: null }))),
    /it is open/,
  ],
  [
    "a start before the decision",
    () => withEntries((all) => all.toSorted(startedFirst)),
    /started before the decision/,
  ],
  ["other arguments", () => withAttempts((attempt) => ({ ...attempt, ...unseen })), /and "charge {"amount":5000}"/],
  [
    "the model's arguments instead of the edited ones",
    () => withAttempts((attempt) => ({ ...attempt, tool: attempt.tool.replace("1}", "5}") })),
    /"send {"amount":1}" was approved/,
  ],
  [
    "an attempt of a rejected call",
    () => withAttempts((attempt) => ({ ...attempt, key: callIds[2] ?? "" })),
    /it was rejected, and its call was attempted/,
  ],
  ["two effects", () => ({ ...calm, attempts: [...calm.attempts, ...calm.attempts] }), /it had 2 effects/],
  ["a success without an effect", () => ({ ...calm, attempts: [] }), /but it had no effect/],
  ["a keyed call of unknown outcome", () => withEntries((all) => all.map(unknownCharge)), /and ended outcome_unknown/],
  ["an approved call without a result", () => without("tool.settled"), /ended not at all/],
])("finds %s", (_fault, evidence, told) => {
  expect(found(evidence()).join("\n")).toMatch(told);
});
