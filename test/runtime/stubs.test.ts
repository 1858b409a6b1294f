// Sessions with stubs: no tool runs, and a call that no stub answers fails its turn.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  type Agent,
  createRuntime,
  defineAgent,
  InvalidInputError,
  memoryStores,
  type RuntimeOptions,
  type SessionStub,
  type Stores,
  StubMismatchError,
  type TurnResult,
} from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { fork, replay, scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { look, pay, rounds, type StubbedDesk, stubbedDesk, stubs } from "../support/stubbed-desk.ts";

const help = (id: string): [string, object] => ["helper", { input: rounds(look(id)) }];

type Given = Partial<Pick<RuntimeOptions, "stores" | "restoreAfterCommit">>;

async function opened({ desk }: Pick<StubbedDesk, "desk">, given: readonly SessionStub[] = stubs, options: Given = {}) {
  const runtime = await createRuntime({ agents: [desk], ...options });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent(desk, { agentId: "shop", stubs: given });
  await agent.start();
  return { runtime, agent };
}

async function ran(agent: Agent, input: string): Promise<TurnResult> {
  return await agent.executeTurn(input).result;
}

const kinds: Readonly<Record<string, (file: string) => Stores>> = {
  memory: () => memoryStores(),
  sqlite: sqliteStores,
};

describe.each(Object.keys(kinds))("with stores in %s", (kind) => {
  function open(): Stores {
    const folder = mkdtempSync(join(tmpdir(), "troupe-stubs-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const stores = kinds[kind]?.(join(folder, "jobs.db"));
    if (!stores) throw new Error(kind);
    return stores;
  }

  test.each([false, true])("calls get the first stub that fits, counted over turns; restored: %s", async (restores) => {
    const desk = stubbedDesk();
    const { agent } = await opened(desk, stubs, { stores: open(), restoreAfterCommit: restores });
    const first = await ran(agent, rounds([...look("7"), ...look("7")], look("8")));
    expect(first).toMatchObject({
      status: "completed",
      text: '{"broken":true} | {"broken":false} | Error: no such order',
      toolCalls: 3,
    });
    const second = await ran(agent, rounds([["look", { order: "7", reason: "again" }]], pay("9")));
    expect(second.text).toBe('{"broken":false} | stubbed payment');
    expect(desk.ran).toEqual([]);
    const report = await agent.getStubs();
    expect(report.stubs.map(({ used }) => used)).toEqual([1, 2, 1, 1]);
    expect([report.unused, report.mismatches]).toEqual([[], []]);
  });

  test("a call that no stub answers fails the turn, and its tool does not run", async () => {
    const desk = stubbedDesk();
    const { agent } = await opened(desk, stubs, { stores: open() });
    const result = await ran(agent, rounds([["look", { order: "9" }]], pay("9")));
    const message =
      'The call look({"order":"9"}) of agent "desk" matches no stub. Nearest is stub 1, look({"order":"7"}): arguments.order is "9", expected "7".';
    expect(result).toMatchObject({ status: "failed", error: { code: "stub_mismatch", message } });
    expect((result.error as { cause?: unknown }).cause).toBeInstanceOf(StubMismatchError);
    expect(await toolTextsOf(agent)).toEqual([message]);
    expect(desk.ran).toEqual([]);
    expect((await agent.getStubs()).mismatches).toEqual([
      { agentId: "shop", turnId: "shop#1", callId: "shop#1:1:0", tool: "look", message },
    ]);
    expect((await agent.getStubs()).unused).toHaveLength(4);
    expect((await ran(agent, rounds(pay("9")))).text).toBe("stubbed payment");
  });

  test("subagents have the stubs, and a mismatch in one of them fails the turns above it", async () => {
    const desk = stubbedDesk();
    const own: SessionStub[] = [
      { tool: "look", agent: "helper", output: "the helper's", times: 1 },
      { tool: "look", agent: "desk", output: "the desk's" },
    ];
    const { agent } = await opened(desk, own, { stores: open() });
    const both = await ran(agent, rounds([...look("1"), help("1"), help("2")]));
    expect(both.text).toBe("the desk's | the helper's | the helper's");
    const failed = await ran(agent, rounds([["helper", { input: rounds(look("1"), look("2")) }]], look("1")));
    expect(failed).toMatchObject({ status: "failed", error: { code: "stub_mismatch" } });
    expect(failed.error?.message).toContain('of agent "helper" matches no stub');
    expect(failed.error?.message).toContain("it has answered its one call");
    expect(desk.ran).toEqual([]);
    const { stubs: used, mismatches } = await agent.getStubs();
    expect(used.map((stub) => stub.used)).toEqual([3, 1]);
    expect(mismatches).toHaveLength(1);
  });
});

test("an approval is asked first; a question waits for its answer unless a stub names it", async () => {
  const desk = stubbedDesk({ needsApproval: ({ order: id }) => id === "7" });
  const { runtime, agent } = await opened(desk);
  const turn = agent.executeTurn(rounds([...pay("7"), ...pay("8"), ["ask_user", { question: "Sure?" }]]));
  await turn.settled;
  const requests = await runtime.requests({ status: "open" });
  expect(requests.map(({ kind }) => kind).toSorted()).toEqual(["approval", "question"]);
  for (const { requestId, kind } of requests) {
    await runtime.decide(
      requestId,
      kind === "approval" ? { verdict: "approved" } : { verdict: "answered", result: "Yes." },
    );
  }
  expect((await turn.result).text).toBe("stubbed payment | stubbed payment | Yes.");
  const other = await runtime.agent("desk", { stubs: [{ tool: "ask_user", output: "No." }] });
  await other.start();
  expect((await ran(other, rounds([["ask_user", { question: "Sure?" }]]))).text).toBe("No.");
  expect(desk.ran).toEqual([]);
});

test("a rejected call uses no stub, and an edited one is compared with its new arguments", async () => {
  const desk = stubbedDesk({ needsApproval: true });
  const { runtime, agent } = await opened(desk, [
    { tool: "pay", arguments: { order: "2" }, match: "equal", output: "paid 2", times: 1 },
  ]);
  for (const [decision, text] of [
    [{ verdict: "rejected", reason: "no" }, "Rejected by user: no"],
    [{ verdict: "edited", arguments: { order: "2" } }, "paid 2"],
  ] as const) {
    const turn = agent.executeTurn(rounds(pay("1")));
    await turn.settled;
    const [request] = await runtime.requests({ status: "open" });
    await runtime.decide(request?.requestId ?? "", decision);
    expect((await turn.result).text).toBe(text);
  }
  expect((await agent.getStubs()).unused).toEqual([]);
});

test("a whole subagent is replaced by a stub of its tool", async () => {
  const desk = stubbedDesk();
  const { runtime, agent } = await opened(desk, [{ tool: "helper", output: "helped" }]);
  expect((await ran(agent, rounds([["helper", { input: "anything" }]]))).text).toBe("helped");
  expect(await runtime.list({ rootAgentId: "shop" })).toHaveLength(1);
});

test("calls count on the budget", async () => {
  const { agent } = await opened(stubbedDesk());
  const result = await agent.executeTurn(rounds(pay("1"), pay("2"), pay("3")), { budget: { maxToolCalls: 2 } }).result;
  expect(result).toMatchObject({ status: "stopped", stopReason: "steps_limit", toolCalls: 2 });
});

test("no job of a queued tool is made, and a worker does not run a job that was made without the stubs", async () => {
  const queued = stubbedDesk({ queue: "payments" });
  const { runtime: own, agent } = await opened(queued);
  expect((await ran(agent, rounds(pay("1")))).text).toBe("stubbed payment");
  const [started] = await entriesOfType(own.stores, "shop", "tool.started");
  expect([started?.queue, started?.stubbed]).toEqual([undefined, true]);
  expect(queued.ran).toEqual([]);

  // A process that does not know of the stubs has started the call; now the agent has them.
  const before = memoryStores();
  const { promise: began, resolve: begin } = Promise.withResolvers<undefined>();
  const stuck = stubbedDesk({
    queue: "payments",
    execute: () => {
      begin(undefined);
      return new Promise<never>(() => undefined);
    },
  });
  const old = await createRuntime({ agents: [stuck.desk], stores: before });
  const paying = await old.agent(stuck.desk, { agentId: "shop" });
  await paying.start();
  const left = paying.executeTurn(rounds(pay("1")));
  left.result.catch(() => undefined);
  await began;
  const tree = await before.exportTree("default", "shop");
  await old.shutdown({ timeoutMs: 1 });
  if (!tree) throw new Error("the tree is stored");
  const agents = tree.agents.map((one) => ({
    ...one,
    record: { ...one.record, stubs, queued: unclaimed(one.record.queued) },
  }));
  const stores = memoryStores();
  await stores.importTree({ ...tree, agents }, "shop", { replaces: "absent" });
  const worker = stubbedDesk({ queue: "payments" });
  const runtime = await createRuntime({ agents: [worker.desk], stores });
  onTestFinished(() => runtime.shutdown());
  const again = await runtime.find("shop");
  await again.start();
  await again.openTurn()?.result;
  expect(worker.ran).toEqual([]);
  expect(await toolTextsOf(again)).toEqual(["The tool pay was not run: the session is stubbed."]);
});

function unclaimed<Queued extends object>(queued: Readonly<Record<string, Queued>> | undefined) {
  return Object.fromEntries(Object.entries(queued ?? {}).map(([key, one]) => [key, { ...one, claimedBy: null }]));
}

test("a stubbed run is replayed like another, and a fork of it keeps the stubs", async () => {
  const desk = stubbedDesk();
  const { runtime, agent } = await opened(desk);
  await ran(agent, rounds(look("7"), pay("1")));
  const source = { stores: runtime.stores, agentId: "shop" };
  expect(await replay(source, { agents: desk.desk })).toMatchObject({ isEqual: true });
  const made = await fork(source, { at: { turn: 1, step: 2 }, runtime });
  expect((await made.turn.result).text).toBe('{"broken":true} | stubbed payment');
  const { stubs: used } = await made.agent.getStubs();
  expect(used.map((stub) => stub.used)).toEqual([1, 0, 0, 1]);
  await expect(fork(source, { at: { turn: 1, step: 2 }, runtime, allow: ["pay"] })).rejects.toThrow("keeps: they give");
  expect(desk.ran).toEqual([]);
});

test("stubs that cannot be used are refused before anything is stored", async () => {
  const { desk } = stubbedDesk();
  const runtime = await createRuntime({ agents: [desk] });
  onTestFinished(() => runtime.shutdown());
  const cases: readonly (readonly [unknown, string])[] = [
    [
      [{ tool: "refund", output: 1 }],
      'stub 1: no agent of the session has a tool "refund"; there are look, pay, ask_user, helper',
    ],
    [[{ tool: "look", agent: "clerk", output: 1 }], 'stub 1 is for the unknown agent "clerk"; there are desk, helper'],
    [[{ tool: "pay", agent: "helper", output: 1 }], 'stub 1: agent "helper" has no tool "pay"; there are look'],
    [[{ tool: "look" }], "[0]: a stub has either an output or an error"],
    [[{ tool: "look", output: 1, error: "no" }], "[0]: a stub has either an output or an error"],
    [[{ tool: "look", output: 1, match: "equal" }], "[0]: match compares arguments"],
    [[{ tool: "look", output: 1, times: 0 }], "[0].times"],
    [[{ tool: "look", output: 1, results: 1 }], "[0]"],
    [[{ tool: "look", output: "x".repeat(200_001) }], "200000"],
    [Array.from({ length: 201 }, () => ({ tool: "look", output: 1 })), "<=200"],
    [[], ">=1"],
    ["look", "array"],
  ];
  for (const [given, message] of cases) {
    const opening = runtime.agent("desk", { agentId: "shop", stubs: given as readonly SessionStub[] });
    await expect(opening, message).rejects.toThrow(message);
    await expect(opening).rejects.toThrow(InvalidInputError);
  }
  expect(await runtime.list()).toEqual([]);
  const searching = { ...scriptedModel("Found."), hostedTools: ["web_search"] };
  const other = await createRuntime({
    agents: [defineAgent({ name: "desk", model: searching, tools: desk.tools.tools })],
  });
  onTestFinished(() => other.shutdown());
  await expect(other.agent("desk", { stubs })).rejects.toThrow(
    "executes web_search during an answer, which stubs cannot replace",
  );
});

test("an existing agent keeps its stubs, or its tools", async () => {
  const { desk } = stubbedDesk();
  const { runtime, agent } = await opened({ desk });
  expect(agent.isStubbed).toBe(true);
  expect((await runtime.agent("desk", { agentId: "shop", stubs })).isStubbed).toBe(true);
  expect((await runtime.agent("desk", { agentId: "shop" })).isStubbed).toBe(true);
  const others = [{ tool: "pay", output: "x" }];
  await expect(runtime.agent("desk", { agentId: "shop", stubs: others })).rejects.toThrow(
    "exists, and has other stubs",
  );
  await runtime.agent("desk", { agentId: "real" });
  await expect(runtime.agent("desk", { agentId: "real", stubs })).rejects.toThrow("exists, and has no stubs");
  const report = await (await runtime.find("real")).getStubs();
  expect(report).toEqual({ stubs: [], unused: [], mismatches: [] });
});
