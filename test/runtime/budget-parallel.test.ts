import { expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  defineAgent,
  defineTool,
  type Runtime,
  subagent,
  type TroupeEvent,
} from "../../src/index.ts";
import { type ScriptedAnswer, scriptedModel } from "../../src/testing/index.ts";
import { amount } from "../support/full.ts";
import { loopTurns, toolTextsOf } from "../support/journal-probes.ts";
import { asks, leadScript } from "../support/leads.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { atRest, price, startTree } from "../support/spending-tree.ts";
import { createGate } from "../support/turn-probes.ts";

const small = { inputTokens: 100, outputTokens: 50 };
const step = defineTool({
  name: "step",
  description: "Steps.",
  parameters: z.object({}),
  effect: "none",
  execute: () => 1,
});

/** A child that makes `calls` model calls. */
function stepping(calls: number, onCall: () => void = () => undefined): AgentDefinition {
  const model = scriptedModel(({ messages }): ScriptedAnswer => {
    onCall();
    const made = messages.filter(({ role }) => role === "tool").length;
    return made < calls - 1 ? { toolCalls: [{ name: "step" }], usage: small } : { text: "done", usage: small };
  });
  return defineAgent({ name: "child", model, price, tools: [step], maxOutputTokens: 1_000 });
}

/** Collects the events of waits for others' reservations. */
function waitsIn(runtime: Runtime): TroupeEvent[] {
  const waits: TroupeEvent[] = [];
  runtime.subscribe((event) => {
    if (event.type === "turn.waiting" && event.reason === "budget") waits.push(event);
  });
  return waits;
}

describeRuntimes("parallel children under one limit", (stage) => {
  const children = amount(200, 60);

  it(`${children} children with bounds of 4,096 tokens under 200,000: over 40 at once, and each queues only once`, {
    timeout: 60_000,
  }, async () => {
    const gate = createGate<{ text: string; usage: typeof small }>();
    let atOnce = 0;
    let most = 0;
    const model = scriptedModel(async (_request, { signal }) => {
      atOnce += 1;
      most = Math.max(most, atOnce);
      try {
        return await gate.pass(signal);
      } finally {
        atOnce -= 1;
      }
    });
    const child = defineAgent({ name: "child", model, price });
    const calls = Array.from({ length: children }, (_, index) => asks("child", `part ${index}`));
    const { runtime, agent } = await startTree(stage(), {
      child,
      lead: { budget: { maxTokens: 200_000, maxSteps: 3 }, maxOutputTokens: 300 },
      calls,
    });
    const waits = waitsIn(runtime);
    const { result } = agent.executeTurn("go");
    await gate.reached(41);
    gate.open({ text: "a part", usage: small });
    expect(await result).toMatchObject({ status: "completed", text: "the end" });
    expect(await toolTextsOf(agent)).toEqual(calls.map(() => "a part"));
    expect(most).toBeGreaterThan(40);
    // No agent is woken for room that another one takes: an agent asks again only when its call fits.
    const waitedFor = new Set(waits.map(({ agentId }) => agentId));
    expect(waits.length).toBeLessThanOrEqual(waitedFor.size + 20);
    await atRest(runtime);
  });

  it("small calls overtake a large one at most eight times; then it goes first", async () => {
    const order: string[] = [];
    const gate = createGate();
    const answering = (name: string, maxOutputTokens: number, wait?: Promise<unknown>): AgentDefinition => {
      const model = scriptedModel(() => {
        order.push(name);
        return { text: name, usage: small, delayUntil: wait };
      });
      return defineAgent({ name, model, maxOutputTokens });
    };
    const first = answering("first", 3_000, gate.pass());
    const large = answering("large", 6_000);
    const child = stepping(6, () => order.push("small"));
    const calls = [asks("first", "x"), asks("large", "x"), ...Array.from({ length: 12 }, () => asks("child", "x"))];
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(leadScript(calls, { usage: small })),
      tools: [subagent(first), subagent(large), subagent(child)],
      budget: { maxTokens: 9_000 },
      maxOutputTokens: 300,
    });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await runtime.agent("lead", { agentId: "root-1" });
    await agent.start();
    const { result } = agent.executeTurn("go");
    while (order.length < 9) await loopTurns(1);
    await loopTurns(20);
    expect(order).toEqual(["first", ...Array.from({ length: 8 }, () => "small")]);
    gate.open();
    // Together the children exceed the limit: 12 of them want six calls each.
    expect(await result).toMatchObject({ status: "stopped", stopReason: "token_limit" });
    expect(order.indexOf("large")).toBe(9);
    await atRest(runtime);
  });
});
