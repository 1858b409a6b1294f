// A check must be seen to find a planted fault before an empty result means anything.
import { beforeAll, expect, it } from "vitest";
import { type UserRecord, wireViolations } from "../../chaos/checks/wire-checks.ts";
import { type TreeEvidence, treesIn } from "../../src/testing/simulation/evidence.ts";
import type { Attempt } from "../../chaos/ledger/effect-ledger.ts";
import { type Deed, type Heard, Hearing } from "../../chaos/wires/wire.ts";
import type { ExchangeRecord } from "../../chaos/wires/wire-user.ts";
import { askUser, createRuntime, defineAgent, memoryStores } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { calling } from "../support/turn-probes.ts";

const answer = "the answer to a-2";
const done = ["DONE a-1-to-talk: ", `DONE a-2-to-ask: ${answer}`];

let tree: TreeEvidence;
/** A user who received an answer, was asked for one, and canceled the third turn. */
let calm: UserRecord;

beforeAll(async () => {
  const stores = memoryStores();
  const model = scriptedModel([
    done[0] ?? "",
    calling({ name: "ask_user", arguments: { question: "what?" } }),
    done[1] ?? "",
    { text: "never said", delayUntil: new Promise(() => undefined) },
  ]);
  const teller = defineAgent({ name: "teller", model, tools: [askUser()] });
  const runtime = await createRuntime({ agents: [teller], stores });
  const agent = await runtime.agent("teller", { agentId: "t", ownerId: "ann" });
  await agent.start();
  await agent.executeTurn("TASK a-1-to-talk").result;
  const asking = agent.executeTurn("TASK a-2-to-ask");
  await asking.settled;
  for (const { requestId } of await agent.requests()) {
    await runtime.decide(requestId, { verdict: "answered", result: answer, by: "ann" });
  }
  await asking.result;
  const long = agent.executeTurn("TASK a-3-to-drone");
  await long.abort();
  await long.result;
  [tree] = (await treesIn(stores)) as [TreeEvidence];
  await runtime.shutdown();
  const exchanges = [
    exchangeOf(1, "talk", [hearing(1, { text: done[0] ?? "" }, ["", "DONE a-1"]), hearing(1, { text: done[0] ?? "" })]),
    exchangeOf(2, "ask", [hearing(2, { text: done[1] ?? "", shown: [done[0] ?? "", answer, done[1] ?? ""] })]),
    exchangeOf(3, "drone", [hearing(3, { state: "canceled" })]),
  ];
  calm = { userId: "ann", faults: [], exchanges };
});

function exchangeOf(number: number, deed: Deed, hearings: readonly Hearing[]): ExchangeRecord {
  const [key, about] = [`a-${number}`, `the answer to a-${number}`];
  return {
    exchange: { key, deed, text: `TASK ${key}-to-${deed}`, answer: about },
    conversation: "a",
    hearings,
  };
}

function hearing(turn: number, heard: Partial<Heard>, cutTexts: readonly string[] = []): Hearing {
  const one = new Hearing();
  one.isOf(`t#${turn}`);
  for (const text of cutTexts) {
    one.show(text);
    one.cut();
  }
  one.end({ state: "completed", text: "", asked: [], ...heard });
  return one;
}

/** With other received messages of one exchange. */
function found(number: number, hearings: readonly Hearing[]): string {
  const exchanges = calm.exchanges.map((one, index) => (index === number - 1 ? { ...one, hearings } : one));
  return violations({ exchanges });
}

function violations(changes: Partial<UserRecord>, attempts: readonly Attempt[] = []): string {
  return wireViolations([{ ...calm, ...changes }], { trees: [tree], attempts }).join("\n");
}

function attemptOf(key: string, tool: string, number: number): Attempt {
  return { key, tool, effect: "once", pid: 1, number, at: number, applied: true, receipt: `receipt-${number}` };
}

it("finds nothing if each key is one turn and each window received the stored texts", () => {
  expect(violations({}, [attemptOf("one", "pay", 1), attemptOf("two", "pay", 2)])).toBe("");
});

it("finds a key with two turns or none, and a turn that no client requested", () => {
  const [first, ...rest] = calm.exchanges;
  if (!first) throw new Error("three exchanges");
  expect(violations({ exchanges: rest })).toMatch(/t#1: it was taken, but no client asked for it: TASK a-1-to-talk/);
  const other = { ...first, exchange: { ...first.exchange, text: "TASK a-9-to-talk" } };
  expect(violations({ exchanges: [...calm.exchanges, other] })).toMatch(/a-9-to-talk: 0 turns have its input/);
  expect(wireViolations([calm], { trees: [tree, tree], attempts: [] }).join()).toMatch(/2 turns have its input/);
});

it("finds a window that received another turn, and a turn of another user", () => {
  const foreign = hearing(2, { text: done[0] ?? "" });
  expect(found(1, [foreign])).toMatch(/1 turns have its input; it received t#1, t#2/);
  expect(violations({ userId: "bob" })).toMatch(/its turn t#1 is one of ann/);
});

it("finds a text that is duplicated, incomplete, or differed before a cut", () => {
  const text = done[0] ?? "";
  expect(found(1, [hearing(1, { text: text + text })])).toMatch(/it received "DONE .*DONE .*" is stored/);
  expect(found(1, [hearing(1, { text: text.slice(5) })])).toMatch(/it received "a-1/);
  expect(found(1, [hearing(1, { text }, ["DONE DONE"])])).toMatch(/it was shown "DONE DONE"/);
});

it("finds a client that shows a text twice, or not at all", () => {
  const [one = "", two = ""] = done;
  const shows = (shown: readonly string[]): string => found(2, [hearing(2, { text: two, shown })]);
  expect(shows([one, answer, two])).toBe("");
  expect(shows([one, one, answer, two])).toMatch(/a-2-to-ask: its client shows/);
  expect(shows([one, two])).toMatch(/a-2-to-ask: its client shows/);
});

it("finds a window that received nothing, or another end", () => {
  const silent = new Hearing();
  silent.isOf("t#1");
  expect(found(1, [silent])).toMatch(/a window never received its end/);
  expect(found(1, [hearing(1, { state: "failed" })])).toMatch(/it received failed, but it ended completed/);
  expect(found(3, [hearing(3, { state: "completed" })])).toMatch(
    /it received completed, but it ended \w+: user_requested/,
  );
});

it("finds an answer of the client that was not used, and an answer to another question", () => {
  const [first, second, third] = calm.exchanges;
  if (!first || !second || !third) throw new Error("three exchanges");
  const unused = { ...second, exchange: { ...second.exchange, answer: "another answer" } };
  expect(violations({ exchanges: [first, unused, third] })).toMatch(/its client's answer is 0 times in/);
  const root = { ...tree.agents[0], messages: tree.agents[0]?.messages.map(renamed) } as TreeEvidence["agents"][number];
  const trees = [{ ...tree, agents: [root] }];
  expect(wireViolations([calm], { trees, attempts: [] }).join("\n")).toMatch(/it is answered with "DONE another: "/);
});

function renamed<One extends { readonly content: unknown }>(message: One): One {
  return message.content === done[0] ? { ...message, content: "DONE another: " } : message;
}

it("finds a conversation in two trees, a tool that ran twice, and violations reported by clients", () => {
  const second = { ...tree, rootAgentId: "t2", agents: tree.agents.map((one) => ({ ...one, agentId: "t2" })) };
  expect(wireViolations([calm], { trees: [tree, second], attempts: [] }).join("\n")).toMatch(
    /conversation a is in 2 trees/,
  );
  expect(violations({}, [attemptOf("one", "pay", 1), attemptOf("one", "pay", 2)])).toBe("one: pay ran 2 times");
  expect(violations({ faults: ["lost"] })).toBe("lost");
});
