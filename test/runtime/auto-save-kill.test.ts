import { expect, it } from "vitest";
import { createRuntime, defineAgent, type Runtime, type Stores } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOf, loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes, stageLeaseMs } from "../support/runtimes.ts";

const talker = () =>
  defineAgent({ name: "talker", model: scriptedModel(({ messages }) => `I see ${messages.length}`) });

async function started(runtime: Runtime, agentId: string, autoSave = false) {
  const agent = await runtime.agent("talker", { agentId, autoSave });
  await agent.start();
  return agent;
}

/** Stores of a process that dies after `left` more changes. */
class DyingStores {
  readonly stores: Stores;
  left = Number.POSITIVE_INFINITY;
  #isDead = false;

  constructor(stores: Stores) {
    this.stores = new Proxy(stores, {
      get: (target, name: keyof Stores) => {
        const member = target[name];
        if (typeof member !== "function" || name === "onForeignWrite" || name === "close") return member;
        const call = member as (...given: unknown[]) => Promise<unknown>;
        return async (...given: unknown[]): Promise<unknown> => {
          if (changing.has(name)) this.left -= 1;
          return this.#isDead || this.left < 0 ? await never : await call.apply(target, given);
        };
      },
    });
  }

  die(): void {
    this.#isDead = true;
  }
}

const changing: ReadonlySet<keyof Stores> = new Set(["heartbeat", "importTree", "release"]);
const never = new Promise<never>(() => undefined);

describeRuntimes("a process that dies during saveState()", (stage) => {
  it.each([
    { which: "for the first time", saves: 0, calls: 2 },
    { which: "again", saves: 1, calls: 2 },
  ])("leaves the agent as before the save or as after it: $which", async ({ saves, calls }) => {
    for (let left = 0; ; left += 1) {
      const agentId = `k${left}`;
      const { clock } = stage();
      const dying = new DyingStores(stage().look());
      const runtime = await createRuntime({ agents: [talker()], stores: dying.stores, clock, leaseMs: stageLeaseMs });
      const agent = await started(runtime, agentId);
      for (let turn = 0; turn < saves; turn += 1) {
        await agent.executeTurn("saved").result;
        await agent.saveState();
      }
      await agent.executeTurn("new").result;
      dying.left = left;
      let isSaved = false;
      const save = agent.saveState().then(() => {
        isSaved = true;
      });
      await (left < calls ? loopTurns(20) : save);
      expect(isSaved).toBe(left >= calls);
      dying.die();
      stage().expireLeases();

      const next = await stage().open({ agents: [talker()] });
      const found = await started(next, agentId, true);
      expect(found.state).toMatchObject({ status: "ready", turnCount: isSaved ? saves + 1 : saves });
      expect(await found.getMessages()).toHaveLength(2 * found.state.turnCount);
      const seqs = (await entriesOf(stage().look(), agentId)).map(({ seq }) => seq);
      expect(seqs).toEqual(seqs.map((_seq, index) => index + 1));
      expect((await found.executeTurn("next").result).turnId).toBe(`${agentId}#${found.state.turnCount}`);
      await next.shutdown();
      if (isSaved) break;
    }
  });
});
