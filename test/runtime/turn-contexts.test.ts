import { AsyncLocalStorage } from "node:async_hooks";
import { expect, it } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type AgentDefinition,
  clientTool,
  type CompactionStrategy,
  defineAgent,
  defineTool,
  type HistoryCompiler,
  type LanguageModel,
  type Runtime,
  subagent,
  type Turn,
} from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { requestOf, startAgent } from "../support/deciding.ts";
import { describeRuntimes, type StagedOptions } from "../support/runtimes.ts";
import { calling, createGate, eventsOfTurn } from "../support/turn-probes.ts";

/** The caller, kept as web frameworks, loggers and database layers keep it. */
const session = new AsyncLocalStorage<string>();

/** Records the context in which each kind of user code ran. */
class Seen {
  readonly #by = new Map<string, Set<string>>();

  note(kind: string): void {
    this.#by.set(kind, (this.#by.get(kind) ?? new Set()).add(session.getStore() ?? "nobody"));
  }

  clear(): void {
    this.#by.clear();
  }

  get kinds(): string[] {
    return [...this.#by.keys()].toSorted();
  }

  /** The kinds that also ran in another context than `who`. */
  others(who: string): string[] {
    return [...this.#by].flatMap(([kind, by]) =>
      [...by].filter((one) => one !== who).map((one) => `${kind} as ${one}`),
    );
  }
}

const noted = (seen: Seen, model: LanguageModel): LanguageModel => ({
  name: model.name,
  provider: model.provider,
  generate: async (request, options) => {
    seen.note("model");
    options.signal.addEventListener("abort", () => seen.note("signal of a model"));
    const response = await model.generate(request, options);
    seen.note("model after a wait");
    return response;
  },
  countPromptTokens: (request) => {
    seen.note("token count");
    return model.countPromptTokens(request);
  },
});

const pick = clientTool({ name: "pick", description: "Picks.", parameters: z.object({}) });

/** An agent whose code all records its context. */
function clerk(seen: Seen, script: ModelScript, name = "clerk", children: readonly AgentDefinition[] = []) {
  const look = (kind: string) => () => seen.note(kind);
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: z.object({}).transform((value) => {
      seen.note("parameters");
      return value;
    }),
    needsApproval: () => {
      seen.note("needsApproval");
      return true;
    },
    describeCall: () => {
      seen.note("describeCall");
      return "Pay?";
    },
    execute: async (_args, run) => {
      seen.note("tool");
      await run.generate({ messages: [{ role: "user", content: "So?" }] });
      seen.note("tool after a wait");
      return "paid";
    },
  });
  const strategy: CompactionStrategy = {
    name: "noted",
    compact: async ({ generate }) => {
      seen.note("compaction");
      await generate({ messages: [{ role: "user", content: "short" }] });
      seen.note("compaction after a wait");
      return null;
    },
  };
  const history: HistoryCompiler = {
    name: "noted",
    internalTools: false,
    compile: ({ history: all }) => {
      seen.note("history compiler");
      return [...all];
    },
  };
  return defineAgent({
    name,
    model: noted(seen, scriptedModel(script)),
    tools: [pay, pick, ...children.map((child) => subagent(child))],
    instructions: () => {
      seen.note("instructions");
      return "Work.";
    },
    history,
    maxMessages: 1,
    autoCompact: { strategy },
    hooks: {
      afterUserInput: look("afterUserInput"),
      beforeLlm: look("beforeLlm"),
      afterLlm: look("afterLlm"),
      beforeTools: look("beforeTools"),
      beforeEachTool: look("beforeEachTool"),
      afterEachTool: look("afterEachTool"),
      afterTools: look("afterTools"),
      onComplete: look("onComplete"),
    },
  });
}

/** Calls the named tools one after another, then answers. Side calls get an answer too. */
const using =
  (...names: string[]): ModelScript =>
  ({ messages, tools }) => {
    const asked = messages.findLastIndex(({ role }) => role === "user");
    const done = messages.slice(asked).filter(({ role }) => role === "tool").length;
    const next = names[done];
    return tools && next !== undefined ? calling({ name: next, arguments: { input: "go" } }) : "done";
  };

const allKinds = [
  ..."afterEachTool,afterLlm,afterTools,afterUserInput,beforeEachTool,beforeLlm,beforeTools,compaction".split(","),
  "compaction after a wait",
  "describeCall",
  ..."history compiler,instructions,model,model after a wait,needsApproval,observer,observer of the turn".split(","),
  ..."onComplete,parameters,token count,tool,tool after a wait".split(","),
];

const ask = (agent: Agent, who: string, seen: Seen, ifBusy: "refuse" | "queue" = "refuse"): Turn =>
  session.run(who, () => {
    const turn = agent.executeTurn("go", { ifBusy, budget: { maxTokens: 20_000 } });
    turn.subscribe(() => seen.note("observer of the turn"));
    return turn;
  });

const approveAs = async (runtime: Runtime, who: string, turn: Turn): Promise<void> => {
  const { requestId } = await requestOf(turn);
  await session.run(who, () => runtime.decide(requestId, { verdict: "approved", by: who }));
};

describeRuntimes("the async context of a turn", (stage) => {
  const open = async (agents: readonly AgentDefinition[], seen: Seen, options: Partial<StagedOptions> = {}) => {
    const runtime = await stage().open({ agents, ...options });
    runtime.subscribe(({ turnId, type }) => {
      if (turnId !== null && type !== "lifecycle.changed") seen.note("observer");
    });
    return runtime;
  };

  it("all user code runs in the context of the turn's caller, even after another person's approval", async () => {
    const seen = new Seen();
    const runtime = await open([clerk(seen, using("pay"))], seen);
    const agent = await session.run("setup", () => startAgent(runtime, "clerk", "c"));
    const turn = ask(agent, "alice", seen);
    await approveAs(runtime, "boss", turn);
    expect(await turn.result).toMatchObject({ status: "completed", text: "done" });
    await eventsOfTurn(turn);
    expect(seen.others("alice")).toEqual([]);
    expect(seen.kinds).toEqual(allKinds.toSorted());
  });

  it("a queued turn runs in its own caller's context, not that of the turn before it or of its approver", async () => {
    const seen = new Seen();
    const runtime = await open([clerk(seen, using("pay"))], seen);
    const agent = await startAgent(runtime, "clerk", "c");
    const first = ask(agent, "alice", seen);
    const second = ask(agent, "bob", seen, "queue");
    await second.id;
    const ofSecond = new Promise<void>((resolve) => {
      void first.result.then(() => {
        seen.clear();
        resolve();
      });
    });
    await approveAs(runtime, "boss", first);
    await ofSecond;
    await approveAs(runtime, "boss", second);
    expect(await second.result).toMatchObject({ status: "completed" });
    expect(seen.others("bob").filter((one) => !one.startsWith("observer"))).toEqual([]);
    expect(seen.kinds).toContain("tool");
  });

  it("a turn that others pause, resume and answer continues in its caller's context", async () => {
    const seen = new Seen();
    const runtime = await open([clerk(seen, using("pick", "pay"))], seen);
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = ask(agent, "alice", seen);
    const { requestId } = await requestOf(turn);
    await session.run("bob", () => agent.pause());
    await session.run("carol", () => runtime.decide(requestId, { verdict: "answered", result: "a file" }));
    await session.run("dave", () => agent.resume());
    await approveAs(runtime, "boss", turn);
    expect(await turn.result).toMatchObject({ status: "completed" });
    expect(seen.others("alice")).toEqual([]);
    expect(seen.kinds).toContain("tool");
  });

  it("a listener on a signal runs in the caller's context, even if another person aborts", async () => {
    const seen = new Seen();
    const gate = createGate<string>();
    const runtime = await open([clerk(seen, (_request, { signal }) => gate.pass(signal))], seen);
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = ask(agent, "alice", seen);
    await gate.reached();
    await session.run("bob", () => agent.abort("enough"));
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    expect(seen.others("alice")).toEqual([]);
    expect(seen.kinds).toContain("signal of a model");
  });

  it("a child runs in the context of its parent turn's caller", async () => {
    const seen = new Seen();
    const child = clerk(seen, using("pay"), "child");
    const runtime = await open([clerk(seen, using("child"), "clerk", [child])], seen);
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = ask(agent, "alice", seen);
    await approveAs(runtime, "boss", turn);
    expect(await turn.result).toMatchObject({ status: "completed" });
    expect(seen.others("alice")).toEqual([]);
    expect(seen.kinds).toContain("tool");
  });

  it("a background child keeps the context of the turn that spawned it, and the turn for its report has none", async () => {
    const seen = new Seen();
    const child = clerk(seen, using("pay"), "child");
    const quiet = new Seen();
    const model = scriptedModel(({ messages }) =>
      messages.some(({ role }) => role === "tool") ? "done" : calling({ name: "child", arguments: { input: "x" } }),
    );
    const woken = createGate();
    const lead = defineAgent({
      name: "lead",
      model: noted(quiet, model),
      tools: [subagent(child, { mode: "background", onEnd: "wake" })],
      hooks: { onComplete: () => void woken.pass() },
    });
    const runtime = await open([lead], new Seen());
    const agent = await startAgent(runtime, "lead", "l");
    expect(await session.run("alice", () => agent.executeTurn("go")).result).toMatchObject({ status: "completed" });
    expect(quiet.others("alice")).toEqual([]);
    quiet.clear();
    await session.run("bob", () => agent.executeTurn("and?")).result;
    expect(quiet.others("bob")).toEqual([]);
    quiet.clear();
    await expect.poll(() => runtime.requests()).toHaveLength(1);
    const [request] = await runtime.requests();
    await session.run("boss", () => runtime.decide(request?.requestId ?? "", { verdict: "approved", by: "boss" }));
    await woken.reached(3);
    expect(seen.others("alice")).toEqual([]);
    expect(seen.kinds).toContain("tool");
    expect(quiet.others("nobody")).toEqual([]);
    expect(quiet.kinds).toContain("model");
  });

  it("turns of several agents that are committed together keep their own contexts", async () => {
    const seen = new Map(["alice", "bob", "carol"].map((who) => [who, new Seen()]));
    const agents = [...seen].map(([who, own]) => clerk(own, using("pick"), who));
    const runtime = await stage().open({ agents });
    const turns = await Promise.all(
      [...seen].map(async ([who, own]) => ask(await startAgent(runtime, who, who), who, own)),
    );
    await Promise.all(
      turns.map(async (turn) => {
        const { requestId } = await requestOf(turn);
        await session.run("boss", () => runtime.decide(requestId, { verdict: "answered", result: "x" }));
        await turn.result;
      }),
    );
    for (const [who, own] of seen) expect(own.others(who)).toEqual([]);
  });

  it("a turn that is continued in another process runs without a context", async () => {
    const [seen, later] = [new Seen(), new Seen()];
    const first = await stage().openProcess({ agents: [clerk(seen, using("pay"))] });
    const agent = await startAgent(first.runtime, "clerk", "c");
    const asked = ask(agent, "alice", seen);
    const { requestId } = await requestOf(asked);
    first.kill();
    stage().expireLeases();
    const asker = await session.run("setup", () =>
      open([clerk(later, using("pay"))], later, {
        resolveAuth: () => {
          later.note("resolveAuth");
          return undefined;
        },
      }),
    );
    const found = await session.run("finder", async () => {
      const there = await asker.find("c");
      await there.start();
      return there;
    });
    await session.run("boss", () => asker.decide(requestId, { verdict: "approved", by: "boss" }));
    expect(await found.turn("c#1").result).toMatchObject({ status: "completed" });
    expect(later.others("nobody")).toEqual([]);
    expect(later.kinds).toContain("tool");
  }, 20_000);

  it("a queued tool of this process runs in the caller's context", async () => {
    const seen = new Seen();
    const dig = defineTool({
      name: "dig",
      description: "Digs.",
      parameters: z.object({}),
      queue: "digging",
      execute: () => seen.note("tool"),
    });
    const model = scriptedModel([calling("dig"), "done", calling("dig"), "done"]);
    const runtime = await open([defineAgent({ name: "digger", model, tools: [dig] })], seen);
    const agent = await startAgent(runtime, "digger", "d");
    expect(await session.run("alice", () => agent.executeTurn("go")).result).toMatchObject({ status: "completed" });
    expect(seen.others("alice")).toEqual([]);
    seen.clear();
    expect(await session.run("bob", () => agent.executeTurn("go")).result).toMatchObject({ status: "completed" });
    expect(seen.others("bob")).toEqual([]);
    expect(seen.kinds).toContain("tool");
  });
});
