import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, type EffectClass, type Reconciliation } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { elapse, entriesOfType, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

describeRuntimes("queued tools after a crash", (stage) => {
  interface Act {
    readonly effect: EffectClass;
    /** Runs of the tool, as `process attempt key`. */
    readonly ledger: string[];
    readonly reconcile?: (() => Promise<Reconciliation>) | undefined;
  }

  function workerOf(name: string, { effect, ledger, reconcile }: Act, hold?: ReturnType<typeof createGate<string>>) {
    const tool = defineTool({
      name: "send",
      description: "Sends.",
      parameters: z.object({}),
      queue: "mail",
      effect,
      ...(reconcile ? { reconcile } : {}),
      async execute(_args, run) {
        ledger.push(`${name} ${run.attempt} ${run.idempotencyKey}`);
        return hold ? await hold.pass() : `sent by ${name}`;
      },
    });
    const model = scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "the end" : calling("send")));
    return defineAgent({ name: "worker", model, tools: [tool] });
  }

  /** A process dies while it runs its agent's call; another one recovers the agent and the call. */
  async function crash(act: Act) {
    const hold = createGate<string>();
    const doomed = await stage().openProcess({ agents: [workerOf("first", act, hold)] });
    const before = await doomed.runtime.agent("worker", { agentId: "worker-1" });
    await before.start();
    before.executeTurn("go");
    await hold.reached();
    doomed.kill();
    stage().expireLeases();
    const survivor = await stage().open({ agents: [workerOf("second", act)] });
    const agent = await survivor.find("worker-1");
    await survivor.recover();
    const result = await elapse(stage().clock, agent.turn("worker-1#1").result);
    // Results of the dead process reach no other process.
    hold.open("sent by the dead");
    return { agent, result };
  }

  it.each(["none", "keyed"] as const)("F2: the body of a %s call is run again as the same attempt", async (effect) => {
    const ledger: string[] = [];
    const { agent, result } = await crash({ effect, ledger });
    expect(result).toMatchObject({ status: "completed", text: "the end", toolCalls: 1 });
    expect(ledger).toEqual(["first 1 worker-1#1:1:0", "second 1 worker-1#1:1:0"]);
    expect(await toolTextsOf(agent)).toEqual(["sent by second"]);
    expect(await entriesOfType(stage().look(), "worker-1", "tool.started")).toHaveLength(1);
  });

  it("F2: a once call is not run again: its outcome is unknown", async () => {
    const ledger: string[] = [];
    const { agent, result } = await crash({ effect: "once", ledger });
    expect(result).toMatchObject({ status: "completed", text: "the end" });
    expect(result.errors).toMatchObject([{ code: "outcome_unknown" }]);
    expect(ledger).toHaveLength(1);
    expect((await toolTextsOf(agent))[0]).toMatch(/"send" is not known: its process ended while it ran/);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
  });

  it.each([
    { answer: { done: true, result: "receipt 7" } as const, told: /^receipt 7$/ },
    { answer: { done: false } as const, told: /known not to have taken effect/ },
    { answer: { unknown: true } as const, told: /is not known: its process ended/ },
  ])("F2: reconcile is called instead: $answer", async ({ answer, told }) => {
    const ledger: string[] = [];
    const { agent } = await crash({ effect: "once", ledger, reconcile: () => Promise.resolve(answer) });
    expect(ledger).toHaveLength(1);
    expect((await toolTextsOf(agent))[0]).toMatch(told);
  });

  it("a call of a removed tool gets an error, and the agent continues", async () => {
    const hold = createGate<string>();
    const act: Act = { effect: "once", ledger: [] };
    const doomed = await stage().openProcess({ agents: [workerOf("first", act, hold)], work: { queues: {} } });
    const before = await doomed.runtime.agent("worker", { agentId: "worker-1" });
    await before.start();
    const turn = before.executeTurn("go");
    for await (const event of turn) if (event.type === "tool.started") break;
    doomed.kill();
    stage().expireLeases();
    const model = scriptedModel(["the end"]);
    const other = defineTool({
      name: "other",
      description: "Other.",
      parameters: z.object({}),
      queue: "mail",
      execute: () => "",
    });
    const survivor = await stage().open({ agents: [defineAgent({ name: "worker", model, tools: [other] })] });
    const agent = await survivor.find("worker-1");
    await survivor.recover();
    const result = await elapse(stage().clock, agent.turn("worker-1#1").result);
    expect(result).toMatchObject({ status: "completed", text: "the end" });
    expect(await toolTextsOf(agent)).toEqual(['The tool "send" is not available any more.']);
  });
});
