import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import {
  createRuntime,
  defineAgent,
  localQueues,
  type Queues,
  type Runtime,
  type RuntimeOptions,
} from "../../src/index.ts";
import { StoreUnavailableError } from "../../src/errors/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { createFakeClock, scriptedModel } from "../../src/testing/index.ts";
import { elapse, loopTurns } from "../support/journal-probes.ts";
import { createGate } from "../support/turn-probes.ts";

const closes: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closes.splice(0).toReversed()) await close();
});

const agents = [defineAgent({ name: "one", model: scriptedModel(() => "hello") })];
const key = { tenant: "default", agentId: "a" };

/** Opens processes that share a file, and one queue if they have roles. */
function processes() {
  const folder = mkdtempSync(join(tmpdir(), "troupe-offered-"));
  closes.push(async () => rmSync(folder, { recursive: true, force: true }));
  const queues: Queues = { ...localQueues(), kind: "shared" };
  return async (
    options: Partial<RuntimeOptions>,
    wrap = (stores: Stores) => stores,
  ): Promise<{ readonly runtime: Runtime; readonly stores: Stores }> => {
    const stores = sqliteStores(join(folder, "t.db"));
    const shared = options.role === "worker" ? queues : { ...queues, close: async () => undefined };
    const mine = options.role === "all" ? localQueues() : shared;
    const runtime = await createRuntime({ agents, stores: wrap(stores), queues: mine, ...options });
    closes.push(() => runtime.shutdown());
    return { runtime, stores };
  };
}

/** Stores whose named calls fail while `isDown` is set. */
function unanswered(...names: readonly (keyof Stores)[]) {
  const state = { isDown: false, refused: 0 };
  const wrap = (stores: Stores): Stores =>
    new Proxy(stores, {
      get: (inner, name: keyof Stores) => {
        const member: unknown = Reflect.get(inner, name);
        if (!names.includes(name) || typeof member !== "function") return member;
        const call = member as (...given: unknown[]) => Promise<unknown>;
        return async (...given: unknown[]) => {
          if (!state.isDown) return await call.apply(inner, given);
          state.refused += 1;
          throw new StoreUnavailableError(`no answer to ${name}`);
        };
      },
    });
  return { state, wrap };
}

it("a client releases an agent it started as soon as the stores answer again, so that a worker can take it", async () => {
  const join_ = processes();
  await join_({ role: "worker" });
  const { state, wrap } = unanswered("release");
  const { runtime: client } = await join_({ role: "client" }, wrap);
  const agent = await client.agent("one", { agentId: "a" });
  state.isDown = true;
  await expect(agent.start()).rejects.toThrow("no answer to release");
  // start() has committed; only the lease remains. The client retries the release until it succeeds.
  await agent.start();
  const turn = agent.executeTurn("go");
  await turn.id;
  while (state.refused < 3) await loopTurns(5);
  state.isDown = false;
  expect((await turn.result).text).toBe("hello");
});

it("an agent that was shut down mid-turn while the stores did not answer continues elsewhere later", async () => {
  const join_ = processes();
  const { state, wrap } = unanswered("release");
  const gate = createGate<string>();
  const slow = defineAgent({ name: "one", model: scriptedModel((_request, { signal }) => gate.pass(signal)) });
  const { runtime: one, stores } = await join_({ role: "all", agents: [slow] }, wrap);
  const { runtime: other } = await join_({ role: "all" });
  const agent = await one.agent("one", { agentId: "a" });
  await agent.start();
  const turnId = await agent.executeTurn("go").id;
  await gate.reached();
  state.isDown = true;
  await expect(agent.shutdown()).rejects.toThrow("no answer to release");
  state.isDown = false;
  while (await stores.holder(key)) await loopTurns(5);
  const theirs = await other.find("a");
  await theirs.start();
  expect(await theirs.turn(turnId).result).toMatchObject({ status: "completed", text: "hello" });
});

it("an agent that cannot be read is released, and start() rejects with the read error, not with that of the release", async () => {
  const join_ = processes();
  const { runtime: first } = await join_({ role: "all" });
  const before = await first.agent("one", { agentId: "a" });
  await before.start();
  await before.executeTurn("go").result;
  await before.shutdown();
  const { state, wrap } = unanswered("messages", "release");
  const { runtime, stores } = await join_({ role: "all" }, wrap);
  const agent = await runtime.find("a");
  state.isDown = true;
  await expect(agent.start()).rejects.toThrow("no answer to messages");
  expect(await stores.holder(key)).toBeDefined();
  state.isDown = false;
  while (await stores.holder(key)) await loopTurns(5);
  await agent.start();
  expect((await agent.executeTurn("again").result).text).toBe("hello");
});

/** A process with one passive agent, whose lease the stores cannot release at first. */
async function withOnePassive() {
  const join_ = processes();
  const { state, wrap } = unanswered("release");
  const { runtime, stores } = await join_({ role: "all", idle: { keptMs: 0 } }, wrap);
  const agent = await runtime.agent("one", { agentId: "a" });
  await agent.start();
  while ((await runtime.metrics()).liveAgents > 0) await loopTurns(5);
  expect(await stores.holder(key)).toBeDefined();
  const { runtime: other } = await join_({ role: "all" });
  state.isDown = true;
  return { runtime, other, state };
}

it("a leaving process retries the release of a passive agent until the stores answer", async () => {
  const { runtime, other, state } = await withOnePassive();
  const drained = runtime.drain({ timeoutMs: 20_000 });
  while (state.refused < 2) await loopTurns(5);
  state.isDown = false;
  expect(await drained).toEqual({ left: 0, leftBehind: [] });
  const theirs = await other.find("a");
  await theirs.start();
  expect((await theirs.executeTurn("go").result).text).toBe("hello");
});

it("a process that leaves while the stores do not answer names its passive agents", async () => {
  const { runtime } = await withOnePassive();
  const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
  const { leftBehind } = await runtime.drain({ timeoutMs: 500 });
  expect(leftBehind).toMatchObject([{ agentId: "a", turnId: null }]);
  expect(leftBehind[0]?.reason).toMatch(/could not be released .*no answer to release/);
  expect(warned.mock.calls.map(([text]) => String(text))).toEqual([
    expect.stringMatching(/left agents behind: a: it could not be released/),
  ]);
  warned.mockRestore();
});

it("an agent that becomes idle while the stores do not answer is released once they do", async () => {
  const join_ = processes();
  const clock = createFakeClock();
  const { state, wrap } = unanswered("release");
  await join_({ role: "worker", clock }, wrap);
  const { runtime: client, stores } = await join_({ role: "client", clock });
  const agent = await client.agent("one", { agentId: "a" });
  await agent.start();
  expect(await elapse(clock, agent.executeTurn("go").result)).toMatchObject({ text: "hello" });
  expect(await stores.holder(key)).toBeDefined();
  state.isDown = true;
  const until = (isTrue: () => Promise<boolean>): Promise<void> =>
    elapse(
      clock,
      (async () => {
        while (!(await isTrue())) await loopTurns(5);
      })(),
    );
  await until(async () => state.refused > 1);
  state.isDown = false;
  await until(async () => !(await stores.holder(key)));
});
