import { expect, it } from "vitest";
import { z } from "zod";
import { armFaultPoints } from "../../src/base/index.ts";
import {
  type Agent,
  type AgentMetadata,
  defineAgent,
  defineTool,
  type Runtime,
  type StateStore,
  summarize,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { rows } from "../support/full.ts";
import { elapse, loopTurns } from "../support/journal-probes.ts";
import { ownStores } from "../support/own-stores.ts";
import { describeRuntimes, type Stage, type StagedProcess } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

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

/** Saves an artifact in each turn, and compacts often. */
const clerk = () =>
  defineAgent({
    name: "clerk",
    model: scriptedModel(({ messages, tools = [] }) => {
      if (tools.length === 0) return "in short";
      return messages.at(-1)?.role === "tool" ? `I see ${messages.length}` : calling("save");
    }),
    tools: [save],
    maxMessages: 6,
    autoCompact: { strategy: summarize({ keep: 3 }) },
  });

type Own = ReturnType<typeof ownStores>;

/** Turns with artifacts and compactions, and one clear() in between. */
const steps: readonly ((agent: Agent) => Promise<unknown>)[] = [
  ...["one", "two", "three"].map((question) => (agent: Agent) => agent.executeTurn(question).result),
  (agent) => agent.clear(),
  ...["four", "five", "six"].map((question) => (agent: Agent) => agent.executeTurn(question).result),
];

/** A process that only writes to these stores; after kill() a new one takes over. */
class Copyist {
  readonly #stage: Stage;
  readonly #own: Own;
  #process: StagedProcess | undefined;

  constructor(stage: Stage, own: Own) {
    this.#stage = stage;
    this.#own = own;
  }

  async copy(agentId: string): Promise<void> {
    this.#process ??= await this.#stage.openProcess({ agents: [clerk()], projections: this.#own });
    await this.#process.runtime.projected(agentId);
  }

  kill(): void {
    this.#process?.kill();
    this.#process = undefined;
  }
}

interface Attempt {
  readonly agentId: string;
  readonly own: Own;
  /** Number of the write after which the copying process is killed. */
  readonly hit: number;
  /** Indexes of the steps after which it copies. */
  readonly copyAfter: readonly number[];
}

/** Plays all steps and copies after some. Returns false if the process made too few writes to be killed. */
async function copyWithKill(stage: Stage, worker: Runtime, attempt: Attempt): Promise<boolean> {
  const { agentId, own, hit, copyAfter } = attempt;
  const copyist = new Copyist(stage, own);
  const struck = Promise.withResolvers<true>();
  const action = (): void => {
    copyist.kill();
    struck.resolve(true);
  };
  const disarm = armFaultPoints([{ name: "projection.written", hit, action }]);
  const agent = await worker.agent("clerk", { agentId });
  await agent.start();
  let wasStruck = false;
  for (const [index, step] of steps.entries()) {
    await step(agent);
    if (!copyAfter.includes(index)) continue;
    const copied = copyist.copy(agentId).then(() => false);
    if (!wasStruck && (await Promise.race([copied, struck.promise]))) {
      wasStruck = true;
      await copyist.copy(agentId);
    }
    await (wasStruck ? undefined : copied);
  }
  if (wasStruck) await copyist.copy(agentId);
  disarm();
  return wasStruck;
}

const contentsOf = (own: Own, agentId: string): unknown[] => own.messages.of(agentId).map(({ content }) => content);

describeRuntimes("projections of a process that is killed between a write and its cursor update", (stage) => {
  const rhythms = [
    { rhythm: "every step", copyAfter: steps.map((_step, index) => index), writes: 20 },
    { rhythm: "many steps", copyAfter: [1, 3, 6], writes: 10 },
  ];
  it.each(rows(rhythms, ({ rhythm }) => rhythm === "many steps"))(
    "are repeated under the same id without losses or deleted rows: after $rhythm",
    async (given) => {
      const { copyAfter, writes } = given;
      const worker = await stage().open({ agents: [clerk()] });
      const whole = ownStores();
      expect(await copyWithKill(stage(), worker, { agentId: "whole", own: whole, hit: 1_000, copyAfter })).toBe(false);
      expect(whole.messages.of("whole")[0]?.origin).toBe("compaction");
      expect(whole.messages.appended).toEqual([...new Set(whole.messages.appended)]);
      let repeated = 0;
      let hits = 0;
      for (let hit = 1; ; hit += 1) {
        const own = ownStores();
        const agentId = `k${hit}`;
        if (!(await copyWithKill(stage(), worker, { agentId, own, hit, copyAfter }))) break;
        hits = hit;
        expect(contentsOf(own, agentId), `struck after write ${hit}`).toEqual(contentsOf(whole, "whole"));
        expect(own.artifacts.of(agentId).map(({ version }) => version)).toEqual([1, 2, 3]);
        expect(await own.state.load(agentId)).toMatchObject({ turnCount: 6, status: "ready" });
        repeated += own.messages.appended.length - new Set(own.messages.appended).size;
      }
      expect(hits).toBeGreaterThan(writes);
      expect(repeated).toBeGreaterThan(0);
    },
  );
});

const talker = () =>
  defineAgent({ name: "talker", model: scriptedModel(({ messages }) => `I see ${messages.length}`) });

/** A state store that calls a listener and stores nothing. */
const hearing = (heard: (agentId: string, state: AgentMetadata) => void): StateStore => ({
  save: async (agentId, state) => heard(agentId, state),
  load: async () => undefined,
});

describeRuntimes("projections after a restart", (stage) => {
  it("continue from the last position as soon as the agent is opened", async () => {
    const own = ownStores();
    const first = await stage().openProcess({ agents: [talker()], projections: own });
    const before = await first.runtime.agent("talker", { agentId: "p" });
    await before.start();
    await before.executeTurn("one").result;
    await first.runtime.projected("p");
    first.kill();
    stage().expireLeases();
    const plain = await stage().open({ agents: [talker()] });
    const between = await plain.find("p");
    await between.start();
    await between.executeTurn("two").result;
    await plain.shutdown();

    const appended = Promise.withResolvers<void>();
    const state = hearing(() => appended.resolve());
    const next = await stage().open({ agents: [talker()], projections: { ...own, state } });
    const agent = await next.find("p");
    await appended.promise;
    await next.projected("p");
    expect(own.messages.of("p")).toEqual(await agent.getMessages());
    expect(own.messages.appended).toHaveLength(4);
  });

  it("recover() brings every tree up to date", async () => {
    const plain = await stage().open({ agents: [talker()] });
    for (const agentId of ["p", "q"]) {
      const agent = await plain.agent("talker", { agentId });
      await agent.start();
      await agent.executeTurn("one").result;
    }
    await plain.shutdown();
    const own = ownStores();
    const runtime = await stage().open({ agents: [talker()], projections: own });
    await runtime.recover();
    await runtime.shutdown();
    expect(own.messages.of("p")).toHaveLength(2);
    expect(own.messages.of("q")).toHaveLength(2);
  });

  it("commits of another process to a tree that is live here are copied too", async () => {
    const copied = Promise.withResolvers<void>();
    const own = ownStores();
    const helper = defineAgent({ name: "helper", model: scriptedModel("helped") });
    const agents = [talker(), helper];
    const state = hearing((agentId, { turnCount }) => {
      if (agentId !== "p" && turnCount === 1) copied.resolve();
    });
    const here = await stage().open({ agents, projections: { messages: own.messages, state } });
    const agent = await here.agent("talker", { agentId: "p" });
    await agent.start();
    const there = await stage().open({ agents });
    const { agent: child, turn } = await (await there.find("p")).spawn(helper, "help", { key: "k" });
    await elapse(stage().clock, turn.result);
    await elapse(stage().clock, copied.promise);
    await loopTurns(10);
    expect(own.messages.of(child.agentId).map(({ content }) => content)).toEqual(["help", "helped"]);
  });
});
