import { expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  defineAgent,
  defineTool,
  type EffectClass,
  type Reconciliation,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes, type StagedProcess } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const nothing = z.object({});

describeRuntimes("tools after a crash", (stage) => {
  interface Effect {
    readonly process: string;
    readonly key: string;
    readonly attempt: number;
  }

  interface Act {
    readonly effect: EffectClass;
    readonly ledger: Effect[];
    readonly reconcile?: (() => Promise<Reconciliation>) | undefined;
  }

  /** The definition in one of two processes: in the first one the tool waits at `hold`. */
  function definitionFor(name: string, act: Act, hold: ReturnType<typeof createGate<string>> | undefined) {
    const { effect, ledger, reconcile } = act;
    const tool = defineTool({
      name: "send",
      description: "Sends.",
      parameters: nothing,
      effect,
      ...(reconcile ? { reconcile } : {}),
      async execute(_args, run) {
        ledger.push({ process: name, key: run.idempotencyKey, attempt: run.attempt });
        return hold ? await hold.pass() : `sent by ${name}`;
      },
    });
    const model = scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "the end" : calling("send")));
    return defineAgent({ name: "worker", model, tools: [tool] });
  }

  /** Kills a process while the tool runs, and recovers the agent in a second one. */
  async function crash(first: AgentDefinition, second: AgentDefinition, reached: () => Promise<void>) {
    const doomed: StagedProcess = await stage().openProcess({ agents: [first] });
    const before = await doomed.runtime.agent("worker", { agentId: "worker-1" });
    await before.start();
    before.executeTurn("go");
    await reached();
    doomed.kill();
    stage().expireLeases();
    const survivor = await stage().open({ agents: [second] });
    const agent = await survivor.find("worker-1");
    await survivor.recover();
    const result = await agent.turn("worker-1#1").result;
    return { agent, result };
  }

  it.each(["none", "keyed"] as const)("F2: a %s call is repeated with the same key", async (effect) => {
    const hold = createGate<string>();
    const act: Act = { effect, ledger: [] };
    const [first, second] = [definitionFor("first", act, hold), definitionFor("second", act, undefined)];
    const { agent, result } = await crash(first, second, () => hold.reached());
    hold.open("sent by the dead");
    expect(result).toMatchObject({ status: "completed", text: "the end", toolCalls: 1 });
    expect(act.ledger).toEqual([
      { process: "first", key: "worker-1#1:1:0", attempt: 1 },
      { process: "second", key: "worker-1#1:1:0", attempt: 2 },
    ]);
    expect(await toolTextsOf(agent)).toEqual(["sent by second"]);
    const account = (await stage().look().accounts("default", "worker-1")).find(({ id }) => id === "turn:worker-1#1");
    expect(account?.used.toolCalls).toBe(1);
  });

  it("F10: a call whose process dies at every run is not run a sixth time", async () => {
    const ledger: Effect[] = [];
    for (let process = 1; process <= 5; process += 1) {
      const hold = createGate<string>();
      const definition = definitionFor(`${process}`, { effect: "keyed", ledger }, hold);
      const doomed: StagedProcess = await stage().openProcess({ agents: [definition] });
      const agent = await doomed.runtime.agent("worker", { agentId: "worker-1" });
      if (process === 1) {
        await agent.start();
        agent.executeTurn("go");
      } else await doomed.runtime.recover();
      await hold.reached();
      doomed.kill();
      stage().expireLeases();
    }
    const survivor = await stage().open({ agents: [definitionFor("6", { effect: "keyed", ledger }, undefined)] });
    const agent = await survivor.find("worker-1");
    await survivor.recover();
    expect(await agent.turn("worker-1#1").result).toMatchObject({ status: "completed", text: "the end" });
    expect(ledger.map(({ process }) => process)).toEqual(["1", "2", "3", "4", "5"]);
    expect(await toolTextsOf(agent)).toEqual([
      expect.stringContaining("is not run again: its process ended each time"),
    ]);
  });

  it("F2: a once call is not run again: its outcome is unknown", async () => {
    const hold = createGate<string>();
    const act: Act = { effect: "once", ledger: [] };
    const [first, second] = [definitionFor("first", act, hold), definitionFor("second", act, undefined)];
    const { agent, result } = await crash(first, second, () => hold.reached());
    expect(result).toMatchObject({ status: "completed", text: "the end" });
    expect(result.errors).toMatchObject([{ code: "outcome_unknown" }]);
    expect(act.ledger).toHaveLength(1);
    expect((await toolTextsOf(agent))[0]).toMatch(/is not known: its process ended while it ran/);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
  });

  it.each([
    { answer: { done: true, result: "receipt 7" } as const, told: /^receipt 7$/, outcome: "success" },
    { answer: { done: false } as const, told: /known not to have taken effect/, outcome: "error" },
    { answer: { unknown: true } as const, told: /is not known: its process ended/, outcome: "outcome_unknown" },
  ])("F2: reconcile of a once call is called instead: $outcome", async ({ answer, told, outcome }) => {
    const hold = createGate<string>();
    let asked = 0;
    const reconcile = async (): Promise<Reconciliation> => {
      asked += 1;
      return answer;
    };
    const act: Act = { effect: "once", ledger: [], reconcile };
    const [first, second] = [definitionFor("first", act, hold), definitionFor("second", act, undefined)];
    const { agent } = await crash(first, second, () => hold.reached());
    expect(asked).toBe(1);
    expect(act.ledger).toHaveLength(1);
    expect((await toolTextsOf(agent))[0]).toMatch(told);
    const [settled] = await entriesOfType(stage().look(), "worker-1", "tool.settled");
    expect(settled?.outcome).toBe(outcome);
  });

  it("F2: a once call whose reconcile returns resume runs again, and continues from its note", async () => {
    const hold = createGate<string>();
    const act: Act = { effect: "once", ledger: [], reconcile: async () => ({ resume: true }) };
    const [first, second] = [definitionFor("first", act, hold), definitionFor("second", act, undefined)];
    const { agent } = await crash(first, second, () => hold.reached());
    expect(act.ledger.map(({ process }) => process)).toEqual(["first", "second"]);
    expect(await toolTextsOf(agent)).toEqual(["sent by second"]);
    const [settled] = await entriesOfType(stage().look(), "worker-1", "tool.settled");
    expect(settled?.outcome).toBe("success");
  });

  it("a call of a tool that the definition no longer has gets an error, and the turn continues", async () => {
    const hold = createGate<string>();
    const first = definitionFor("first", { effect: "none", ledger: [] }, hold);
    const model = scriptedModel("without it, then");
    const second = defineAgent({ name: "worker", model, tools: [] });
    const { agent, result } = await crash(first, second, () => hold.reached());
    expect(result).toMatchObject({ status: "completed", text: "without it, then" });
    expect(result.errors).toMatchObject([{ code: "tool_unavailable" }]);
    expect(await toolTextsOf(agent)).toEqual(['The tool "send" is not available any more.']);
    const warnings = await entriesOfType(stage().look(), "worker-1", "warning");
    expect(warnings.map(({ code }) => code)).toContain("definition_changed");
  });

  it("F3: a frozen owner that wakes up late neither commits nor runs anything", async () => {
    const hold = createGate<string>();
    const act: Act = { effect: "keyed", ledger: [] };
    const first = await stage().openProcess({ agents: [definitionFor("first", act, hold)] });
    const before = await first.runtime.agent("worker", { agentId: "worker-1" });
    await before.start();
    before.executeTurn("go");
    await hold.reached();
    first.freeze();
    hold.open("sent by first");
    stage().expireLeases();
    const second = await stage().open({ agents: [definitionFor("second", act, undefined)] });
    const agent = await second.find("worker-1");
    await second.recover();
    const result = await agent.turn("worker-1#1").result;
    first.thaw();
    expect(result.text).toBe("the end");
    expect(act.ledger.map(({ process, key }) => [process, key])).toEqual([
      ["first", "worker-1#1:1:0"],
      ["second", "worker-1#1:1:0"],
    ]);
    expect(await toolTextsOf(agent)).toEqual(["sent by second"]);
    expect(await entriesOfType(stage().look(), "worker-1", "tool.settled")).toHaveLength(1);
  });
});
