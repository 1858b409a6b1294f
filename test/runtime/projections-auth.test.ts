import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { z } from "zod";
import {
  type Auth,
  type AuthRequest,
  defineAgent,
  defineTool,
  type ProjectionContext,
  type Projections,
  subagent,
  summarize,
  textOf,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { elapse, entriesOf, loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, type Gate } from "../support/turn-probes.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const canary = "canary-5e81d0";
const ada: Auth = { actorId: "ada", credentials: { token: `${canary}-ada` } };
const bob: Auth = { actorId: "bob", credentials: { token: `${canary}-bob` } };

interface Write {
  readonly agentId: string;
  /** The method and the written value. */
  readonly what: string;
  readonly context: ProjectionContext | undefined;
}

/** Stores that record the context of each write. `before` may delay or refuse a write. */
function notingStores(before?: (write: Write) => Promise<unknown> | undefined) {
  const writes: Write[] = [];
  const note = async (agentId: string, what: string, context: ProjectionContext | undefined): Promise<void> => {
    const write = { agentId, what, context };
    await before?.(write);
    writes.push(write);
  };
  const projections: Projections = {
    messages: {
      append: async (agentId, messages, context) => {
        for (const { content } of messages) await note(agentId, `append ${textOf(content)}`, context);
      },
      compact: async (agentId, _compaction, context) => await note(agentId, "compact", context),
      clear: async (agentId, context) => await note(agentId, "clear messages", context),
      getRecent: async () => [],
    },
    artifacts: {
      save: async (agentId, { name }, context) => await note(agentId, `save ${name}`, context),
      clear: async (agentId, context) => await note(agentId, "clear artifacts", context),
      get: async () => undefined,
      list: async () => [],
    },
    state: {
      save: async (agentId, _state, context) => await note(agentId, "state", context),
      load: async () => undefined,
    },
  };
  return { projections, writes };
}

/** The actor and token of a write. */
function whoOf({ context }: Write): string {
  const credentials = context?.auth?.credentials as { readonly token?: string } | undefined;
  return `${context?.actorId} ${credentials?.token}`;
}

const of = (auth: Auth): string => `${auth.actorId} ${canary}-${auth.actorId}`;
const noOne = "null undefined";

/** Pairs of a written value and the caller it was written for. */
const tellers = (writes: readonly Write[]): [string, string][] => writes.map((write) => [write.what, whoOf(write)]);

const save = defineTool({
  name: "save",
  description: "Saves.",
  parameters: z.object({}),
  effect: "keyed",
  execute: async (_args, run) => {
    await run.saveArtifact({ name: "report", contentType: "text/plain", content: "x" });
    return "saved";
  },
});

/** Saves an artifact and calls a child in each turn. */
const lead = () => {
  const child = defineAgent({ name: "child", model: scriptedModel(() => "child's answer") });
  return defineAgent({
    name: "lead",
    model: scriptedModel(({ messages }) => {
      const last = messages.at(-1);
      if (last?.role !== "tool") return calling("save", { name: "child", arguments: { input: "child's task" } });
      return `answer to ${textOf(messages.findLast(({ role }) => role === "user")?.content ?? "")}`;
    }),
    tools: [save, subagent(child)],
  });
};

/** Spawns a background child for the input `one`. */
const delegating = (gate: Gate<void>) => {
  const wait = defineTool({
    name: "wait",
    description: "Waits.",
    parameters: z.object({}),
    effect: "keyed",
    execute: async (_args, run) => {
      await gate.pass(run.signal);
      return "waited";
    },
  });
  const child = defineAgent({
    name: "child",
    model: scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "child's answer" : calling("wait"))),
    tools: [wait],
  });
  const background = subagent(child, { mode: "background" });
  return defineAgent({
    name: "lead",
    model: scriptedModel(({ messages }) => {
      const spawns = textOf(messages.at(-1)?.content ?? "") === "one";
      return spawns ? calling({ name: "child", arguments: { input: "child's task" } }) : "lead's answer";
    }),
    tools: [background],
  });
};

describeRuntimes("L9: custom stores get the turn's credentials", (stage) => {
  const warnings: string[] = [];
  beforeEach(() => {
    vi.spyOn(process, "emitWarning").mockImplementation((warning) => void warnings.push(String(warning)));
  });
  afterEach(() => {
    warnings.length = 0;
    vi.restoreAllMocks();
  });

  it("with every write of the turn and its children, and none for a turn without credentials", async () => {
    const { projections, writes } = notingStores();
    const asked: AuthRequest[] = [];
    const resolveAuth = (request: AuthRequest): undefined => void asked.push(request);
    const runtime = await stage().open({ agents: [lead()], projections, resolveAuth });
    const agent = await runtime.agent("lead", { agentId: "p" });
    await agent.start();
    for (const auth of [ada, bob, undefined]) {
      writes.length = 0;
      await agent.executeTurn("go", { auth }).result;
      await runtime.projected("p");
      const whats = new Set(writes.map(({ what }) => what));
      for (const what of ["append go", "append child's task", "append child's answer", "save report", "state"]) {
        expect(whats).toContain(what);
      }
      const expected = auth ? of(auth) : noOne;
      const stray = tellers(writes).filter(([what, who]) => who !== expected && what !== "state");
      expect(stray).toEqual([]);
      expect(whoOf(writes.findLast(({ what }) => what === "state") as Write)).toBe(expected);
    }
    writes.length = 0;
    await agent.clear();
    await runtime.projected("p");
    expect(tellers(writes.filter(({ what }) => what !== "state"))).toEqual([
      ["clear messages", noOne],
      ["clear artifacts", noOne],
    ]);
    expect(asked).toEqual([]);
  });

  it("per caller: two callers in one tree keep theirs, even if everything is written after the turns", async () => {
    const store = createGate();
    const { projections, writes } = notingStores(() => store.pass());
    const child = createGate();
    const runtime = await stage().open({ agents: [delegating(child)], projections });
    const agent = await runtime.agent("lead", { agentId: "p" });
    await agent.start();
    await agent.executeTurn("one", { auth: ada }).result;
    await child.reached();
    await agent.executeTurn("two", { auth: bob }).result;
    child.open();
    await agent.executeTurn("three").result;
    const [spawned] = (await runtime.list()).filter(({ parentAgentId }) => parentAgentId === "p");
    const childId = spawned?.agentId ?? "";
    await (await runtime.find(childId)).turn(`${childId}#1`).result;
    store.open();
    await runtime.projected("p");
    const whoWrote = (agentId: string, what: string): string[] =>
      writes.filter((write) => write.agentId === agentId && write.what === `append ${what}`).map(whoOf);
    expect(whoWrote("p", "one")).toEqual([of(ada)]);
    expect(whoWrote("p", "two")).toEqual([of(bob)]);
    expect(whoWrote("p", "three")).toEqual([noOne]);
    expect(whoWrote("p", "lead's answer").slice(0, 3)).toEqual([of(ada), of(bob), noOne]);
    expect(whoWrote(childId, "child's task")).toEqual([of(ada)]);
    expect(whoWrote(childId, "child's answer")).toEqual([of(ada)]);
  });

  it("for a compaction, those of the turn that compacts", async () => {
    const { projections, writes } = notingStores();
    const agents = [
      defineAgent({
        name: "talker",
        model: scriptedModel(() => "yes"),
        maxMessages: 4,
        autoCompact: { strategy: summarize({ keep: 1 }) },
      }),
    ];
    const runtime = await stage().open({ agents, projections });
    const agent = await runtime.agent("talker", { agentId: "p" });
    await agent.start();
    for (const auth of [ada, bob, ada]) await agent.executeTurn("go", { auth }).result;
    await runtime.projected("p");
    const compacted = (await entriesOf(stage().look(), "p")).filter((entry) => entry.type === "context.compacted");
    expect(compacted.length).toBeGreaterThan(0);
    const owners = compacted.map(({ turnId }) => of(turnId === "p#2" ? bob : ada));
    expect(writes.filter(({ what }) => what === "compact").map(whoOf)).toEqual(owners);
  });

  it("from resolveAuth in another process: called once per turn; without a result the write has none", async () => {
    const first = await stage().open({ agents: [lead()] });
    const before = await first.agent("lead", { agentId: "p" });
    await before.start();
    for (const auth of [ada, bob]) await before.executeTurn(`by ${auth.actorId}`, { auth }).result;
    await first.shutdown();

    const asked: AuthRequest[] = [];
    const { projections, writes } = notingStores();
    const second = await stage().open({
      agents: [lead()],
      projections,
      resolveAuth: async (request) => {
        asked.push(request);
        return request.actorId === "ada" ? { actorId: "ada", credentials: { token: `${canary}-ada` } } : undefined;
      },
    });
    await second.find("p");
    await second.projected("p");
    const turnIds = [...(await second.list()).values()].map(({ agentId, parentTurnId }) => [agentId, parentTurnId]);
    const childOf = (turnId: string): string => `${turnIds.find(([, parent]) => parent === turnId)?.[0]}#1`;
    expect(asked.map(({ turnId }) => turnId).toSorted()).toEqual(
      ["p#1", "p#2", childOf("p#1"), childOf("p#2")].toSorted(),
    );
    expect(asked.find(({ turnId }) => turnId === "p#1")).toEqual({
      actorId: "ada",
      agentId: "p",
      turnId: "p#1",
      reason: "projection",
    });
    const whoWrote = (what: string): string[] => writes.filter((write) => write.what === what).map(whoOf);
    expect(whoWrote("append by ada")).toEqual([of(ada)]);
    expect(whoWrote("append answer to by ada")).toEqual([of(ada)]);
    expect(whoWrote("append by bob")).toEqual(["bob undefined"]);
    expect(whoWrote("append child's task")).toEqual([of(ada), "bob undefined"]);
    expect(whoWrote("save report")).toEqual([of(ada), "bob undefined"]);
  });

  it("from resolveAuth while another process runs the turn: called once for several writes", async () => {
    const gate = createGate();
    const hold = defineTool({
      name: "hold",
      description: "Waits.",
      parameters: z.object({}),
      effect: "keyed",
      execute: async () => {
        await gate.pass();
        return "held";
      },
    });
    const agents = () => [
      defineAgent({ name: "clerk", model: scriptedModel([calling("hold"), "filed"]), tools: [hold] }),
    ];
    const runs = await stage().open({ agents: agents() });
    const agent = await runs.agent("clerk", { agentId: "p" });
    await agent.start();
    const turn = agent.executeTurn("file it", { auth: ada });
    await gate.reached();
    const asked: AuthRequest[] = [];
    const { projections, writes } = notingStores();
    const copies = await stage().open({
      agents: agents(),
      projections,
      resolveAuth: (request) => {
        asked.push(request);
        return ada;
      },
    });
    await copies.projected("p");
    expect(tellers(writes)).toContainEqual(["append file it", of(ada)]);
    gate.open();
    await turn.result;
    await copies.projected("p");
    expect(tellers(writes)).toContainEqual(["append filed", of(ada)]);
    expect(asked).toEqual([{ actorId: "ada", agentId: "p", turnId: "p#1", reason: "projection" }]);
  });

  it("in the process that continues a turn, even if the turn's start was written before", async () => {
    const gate = createGate();
    const agents = () => [delegating(gate)];
    const earlier = notingStores();
    const first = await stage().openProcess({ agents: agents(), projections: earlier.projections });
    const before = await first.runtime.agent("lead", { agentId: "p" });
    await before.start();
    await before.executeTurn("one", { auth: ada }).result;
    await gate.reached();
    await first.runtime.projected("p");
    first.kill();
    stage().expireLeases();
    gate.open();

    const asked: AuthRequest[] = [];
    const { projections, writes } = notingStores();
    const second = await stage().open({
      agents: agents(),
      projections,
      resolveAuth: (request) => {
        asked.push(request);
        return { actorId: request.actorId, credentials: { token: `${canary}-ada` } };
      },
    });
    await second.recover();
    const [spawned] = (await second.list()).filter(({ parentAgentId }) => parentAgentId === "p");
    const childId = spawned?.agentId ?? "";
    await elapse(stage().clock, (await second.find(childId)).turn(`${childId}#1`).result);
    await elapse(stage().clock, second.projected("p"));
    expect(whoOf(writes.find(({ what }) => what === "append child's answer") as Write)).toBe(of(ada));
    expect(writes.map(({ what }) => what)).not.toContain("append child's task");
    expect(asked.filter(({ turnId }) => turnId === `${childId}#1`)).toHaveLength(1);
  });

  it("resolveAuth is called again if a store refuses a write without credentials; the turn does not wait", async () => {
    const first = await stage().open({ agents: [lead()] });
    const before = await first.agent("lead", { agentId: "p" });
    await before.start();
    await before.executeTurn("go", { auth: ada }).result;
    await first.shutdown();
    let answers = 0;
    const { projections, writes } = notingStores((write) =>
      write.context?.auth === undefined ? Promise.reject(new Error("a login is needed")) : undefined,
    );
    const second = await stage().open({
      agents: [lead()],
      projections: { messages: projections.messages },
      resolveAuth: ({ turnId }) => {
        if (turnId === "p#1") answers += 1;
        return answers < 3 ? undefined : ada;
      },
    });
    await elapse(stage().clock, second.projected("p"));
    expect(writes.filter(({ what }) => what === "append go").map(whoOf)).toEqual([of(ada)]);
    expect(answers).toBe(3);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("the message store could not be written and will be retried: a login is needed");
  });

  it.each([
    { how: "the turn's own", resolves: false },
    { how: "those of resolveAuth", resolves: true },
  ])("are released once the end of the turn is written: $how", async ({ resolves }) => {
    const held: WeakRef<object>[] = [];
    const fresh = (): Auth => {
      const credentials = { token: "x" };
      held.push(new WeakRef(credentials));
      return { actorId: "ada", credentials };
    };
    const store = createGate();
    const seen: unknown[] = [];
    const { projections, writes } = notingStores(async ({ context }) => {
      await store.pass();
      seen.push(typeof context?.auth?.credentials);
    });
    const runtime = await stage().open({ agents: [lead()], projections, resolveAuth: fresh });
    const agent = await runtime.agent("lead", { agentId: "p" });
    await agent.start();
    await agent.executeTurn("go", { auth: resolves ? { actorId: "ada" } : fresh() }).result;
    store.open();
    await runtime.projected("p");
    expect(seen).toContain("object");
    writes.length = 0;
    await loopTurns(10);
    collect();
    expect(held.length).toBeGreaterThan(0);
    expect(held.filter((ref) => ref.deref() !== undefined)).toEqual([]);
    expect(runtime.isOpen).toBe(true);
  });

  it("S13: are in no stored byte, warning, event, console output or JSON of the context", async () => {
    const shown: unknown[] = [];
    const { projections, writes } = notingStores(({ context }) => {
      shown.push(JSON.stringify(context), { ...context?.auth });
      const login = JSON.stringify(context?.auth?.credentials);
      return warnings.length === 0 ? Promise.reject(new Error(`login ${login} has expired`)) : undefined;
    });
    const runtime = await stage().open({ agents: [lead()], projections: { messages: projections.messages } });
    runtime.subscribe((event) => shown.push(event));
    const agent = await runtime.agent("lead", { agentId: "p" });
    await agent.start();
    const result = await agent.executeTurn("go", { auth: ada }).result;
    await elapse(stage().clock, runtime.projected("p"));
    expect(writes.length).toBeGreaterThan(0);
    const look = stage().look();
    shown.push(result, await look.readTree("default", "p", 0, 1_000), await runtime.list(), stage().stored());
    expect(JSON.stringify(shown)).not.toContain(canary);
    expect(warnings.join()).toMatch(/login .* has expired/);
    expect(warnings.join()).not.toContain(canary);
  });
});
