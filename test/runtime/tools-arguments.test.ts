import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { requestOf, startAgent } from "../support/deciding.ts";
import { entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

describeRuntimes("repaired arguments", (stage) => {
  it("are the ones that are shown, approved, journalled and run", async () => {
    const seen: unknown[] = [];
    const pay = defineTool({
      name: "pay",
      description: "Pays.",
      parameters: z.object({ to: z.string(), amount: z.number(), note: z.string().optional() }),
      needsApproval: true,
      execute: (args) => void seen.push(args),
    });
    const model = scriptedModel([
      { toolCalls: [{ name: "pay", arguments: { to: "Ada", amount: "250", note: null } }] },
      "the end",
    ]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "clerk", model, tools: [pay] })] });
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = agent.executeTurn("pay");
    const { requestId, arguments: shown, argumentsHash, prompt } = await requestOf(turn);
    expect(shown).toEqual({ to: "Ada", amount: 250 });
    expect(prompt).toBe('pay({"to":"Ada","amount":250})');
    await runtime.decide(requestId, { verdict: "approved", argumentsHash });
    expect(await turn.result).toMatchObject({ status: "completed", errors: [] });
    expect(seen).toEqual([{ to: "Ada", amount: 250 }]);
    const [gated] = await entriesOfType(stage().look(), "c", "call.gated");
    expect(gated).toMatchObject({ arguments: { to: "Ada", amount: 250 }, argumentsHash });
  });
});

describeRuntimes("asynchronous validation of arguments", (stage) => {
  async function mailing(check: (user: string) => Promise<boolean>) {
    let sent = 0;
    const mail = defineTool({
      name: "mail",
      description: "Mails.",
      parameters: z.object({ user: z.string().refine(check, "no such user") }),
      execute: () => `mail ${(sent += 1)}`,
    });
    const model = scriptedModel([{ toolCalls: [{ name: "mail", arguments: { user: "ada" } }] }, "the end"]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "clerk", model, tools: [mail] })] });
    const agent = await startAgent(runtime, "clerk", "c");
    return { agent, turn: agent.executeTurn("mail"), sent: () => sent };
  }

  it("runs once for a call that it accepts", async () => {
    let checks = 0;
    const { agent, turn, sent } = await mailing(async () => (checks += 1) > 0);
    expect(await turn.result).toMatchObject({ status: "completed", errors: [] });
    expect(await toolTextsOf(agent)).toEqual(["mail 1"]);
    expect([checks, sent()]).toEqual([1, 1]);
  });

  it("makes the call fail if it rejects", async () => {
    const { agent, turn, sent } = await mailing(() => Promise.reject(new Error("database away")));
    expect(await turn.result).toMatchObject({ status: "completed" });
    expect((await toolTextsOf(agent))[0]).toContain("could not be checked (database away)");
    expect(sent()).toBe(0);
  });

  it("makes the call fail if it does not end within a minute", async () => {
    const gate = createGate<boolean>();
    const { agent, turn, sent } = await mailing(() => gate.pass());
    await gate.reached();
    stage().clock.advance(60_000);
    expect(await turn.result).toMatchObject({ status: "completed" });
    expect((await toolTextsOf(agent))[0]).toContain("took more than 60000 ms");
    gate.open(true);
    expect(sent()).toBe(0);
  });

  it("does not delay an abort", async () => {
    const gate = createGate<boolean>();
    const { agent, turn, sent } = await mailing(() => gate.pass());
    await gate.reached();
    await agent.abort();
    expect(await turn.result).toMatchObject({ status: "stopped" });
    gate.open(true);
    expect(sent()).toBe(0);
  });
});
