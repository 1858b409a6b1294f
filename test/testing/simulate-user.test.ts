import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { askUser, defineAgent, defineTool, type LanguageModel, openaiModel, textOf } from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { type CaseFigures, withCaseLog } from "../../src/testing/case-log.ts";
import {
  createFakeClock,
  scriptedModel,
  simulateUser,
  type SimulateUserOptions,
  withTools,
} from "../../src/testing/index.ts";
import { anyValues, classicValues, isTaken } from "../support/wrong-values.ts";

const say = (message: string) => JSON.stringify({ action: "say", message, reached: false, reason: "" });
const done = (reached: boolean, reason: string) => JSON.stringify({ action: "done", message: "", reached, reason });

const persona = "Ada, impatient. Her order is 17.";
const goal = "The order is refunded.";

let paid: unknown[] = [];
/** A desk that answers from a script; `refund` pays for real. */
function desk(model: LanguageModel) {
  paid = [];
  const refund = defineTool({
    name: "refund",
    description: "Pays an order back.",
    parameters: z.object({ order: z.int() }),
    effect: "once",
    needsApproval: true,
    execute: (args) => void paid.push(args),
  });
  return defineAgent({ name: "desk", model, instructions: "Help.", tools: [refund, askUser()] });
}

/** A person who always writes the same. */
const insistent = () => scriptedModel(say("Again."));

const script = () =>
  scriptedModel([
    { toolCalls: [{ name: "ask_user", arguments: { question: "Which order?" } }] },
    { toolCalls: [{ name: "refund", arguments: { order: 17 } }] },
    "That is all.",
  ]);
const user = () => scriptedModel([say("It broke."), say("Order 17."), done(false, "Nothing happened.")]);

describe("simulateUser", () => {
  it("talks until the person has reached the goal", async () => {
    const user = scriptedModel([say("It broke."), say("17"), done(true, "It was refunded.")]);
    const model = scriptedModel(["Which order?", "Order 17 is refunded."]);

    const result = await simulateUser(desk(model), { persona, goal, model: user });

    expect(result).toMatchObject({ reached: true, reason: "It was refunded.", ended: "done", turns: 2 });
    expect(result.transcript).toEqual([
      { from: "user", text: "It broke." },
      { from: "agent", text: "Which order?" },
      { from: "user", text: "17" },
      { from: "agent", text: "Order 17 is refunded." },
    ]);
    expect(textOf(user.calls[0]?.messages[0]?.content ?? "")).toMatch(/Ada, impatient[^]*The order is refunded\./);
    expect(textOf(user.calls[1]?.messages.at(-1)?.content ?? "")).toBe("The assistant writes:\nWhich order?");
    expect(JSON.stringify(model.calls)).not.toContain("impatient");
    expect(result.spent).toMatchObject({ agent: { calls: 2 }, user: { calls: 3 } });
    expect(result.trees.agent?.agents).toHaveLength(1);
    expect(result.trees.user?.rows.length).toBeGreaterThan(3);
  });

  it("ends when the person gives up, and after the last turn", async () => {
    const given = await simulateUser(desk(scriptedModel("No.")), {
      persona,
      goal,
      model: scriptedModel([say("Refund!"), done(false, "It refuses.")]),
    });
    expect(given).toMatchObject({ reached: false, ended: "done", reason: "It refuses.", turns: 1 });

    const endless = await simulateUser(desk(scriptedModel("No.")), {
      persona,
      goal,
      model: scriptedModel(say("Refund!")),
      maxTurns: 3,
    });
    expect(endless).toMatchObject({ reached: false, ended: "max_turns", turns: 3 });

    const last = await simulateUser(desk(scriptedModel("Done.")), {
      persona,
      goal,
      model: scriptedModel([say("Refund!"), done(true, "Yes.")]),
      maxTurns: 1,
    });
    expect(last).toMatchObject({ reached: true, turns: 1 });
  });

  it("refuses approvals unless a policy grants them, and lets the person answer questions", async () => {
    const refused = await simulateUser(desk(script()), { persona, goal, model: user() });
    expect(refused.transcript.slice(1, 3)).toEqual([
      {
        from: "request",
        kind: "question",
        name: "ask_user",
        text: "Which order?",
        verdict: "answered",
        answer: "Order 17.",
      },
      expect.objectContaining({ from: "request", kind: "approval", name: "refund", verdict: "rejected" }),
    ]);
    expect(paid).toEqual([]);

    const granted = await simulateUser(desk(script()), {
      persona,
      goal,
      model: user(),
      decide: ({ kind }) => (kind === "approval" ? { verdict: "approved" } : undefined),
    });
    expect(granted.transcript.at(2)).toMatchObject({ kind: "approval", verdict: "approved" });
    expect(paid).toEqual([{ order: 17 }]);
  });

  it("ends when a limit or an error stops either side", async () => {
    const usage = { inputTokens: 1_000, outputTokens: 100 };
    const tired = await simulateUser(desk(scriptedModel("No.")), {
      persona,
      goal,
      model: insistent(),
      budget: { maxSteps: 2 },
    });
    expect(tired).toMatchObject({ ended: "user_stopped", reached: false, turns: 2 });
    expect(tired.reason).toMatch(/2 of 2/);

    const poor = await simulateUser(desk(scriptedModel({ text: "No.", usage })), {
      persona,
      goal,
      model: insistent(),
      agentBudget: { maxTokens: 3_000 },
    });
    expect(poor).toMatchObject({ ended: "agent_stopped", reached: false });
    expect(poor.spent.agent.inputTokens + poor.spent.agent.outputTokens).toBeLessThanOrEqual(3_000);

    const broken = await simulateUser(desk(scriptedModel([])), { persona, goal, model: insistent() });
    expect(broken).toMatchObject({ ended: "agent_stopped", turns: 1 });
    expect(broken.reason).toContain("its script has 0 answers");

    const nonsense = await simulateUser(desk(scriptedModel("No.")), { persona, goal, model: scriptedModel("Hm.") });
    expect(nonsense).toMatchObject({ ended: "user_stopped", turns: 0, transcript: [] });
  });

  it("aborts the open turn if the person cannot answer a question, and follows a signal", async () => {
    const asking = scriptedModel({ toolCalls: [{ name: "ask_user", arguments: { question: "Which?" } }] });
    const silent = await simulateUser(desk(asking), {
      persona,
      goal,
      model: scriptedModel(say("Hello.")),
      budget: { maxSteps: 1 },
    });
    expect(silent).toMatchObject({ ended: "user_stopped", reached: false, turns: 1 });

    const aborted = await simulateUser(desk(scriptedModel("No.")), {
      persona,
      goal,
      model: scriptedModel(say("Hello.")),
      signal: AbortSignal.abort(),
    });
    expect(aborted).toMatchObject({ reached: false, ended: "user_stopped", turns: 0 });
  });

  it("calls no server while CI is set, unless that is allowed", async () => {
    onTestFinished(() => void vi.unstubAllEnvs());
    const server = openaiModel("gpt-5-mini", { apiKey: "none", baseURL: "http://127.0.0.1:9/v1" });
    const live = defineAgent({ name: "live", model: server });
    const model = scriptedModel(done(false, "Bye."));
    vi.stubEnv("CI", "true");
    await expect(simulateUser(live, { persona, goal, model })).rejects.toThrow(
      /^simulateUser\(\): the agent "live" would call the model "gpt-5-mini"/,
    );
    const tested = desk(scriptedModel("No."));
    await expect(simulateUser(tested, { persona, goal, model, agents: [live] })).rejects.toThrow(/"live" would call/);
    await expect(simulateUser(tested, { persona, goal, model: server })).rejects.toThrow(
      /the agent "simulated-user" would call the model "gpt-5-mini"/,
    );
    vi.stubEnv("TROUPE_EVAL_LIVE", "1");
    expect(await simulateUser(live, { persona, goal, model })).toMatchObject({ ended: "done" });
  });

  it("notes both sides for the test, and keeps them in the store that troupe eval names", async () => {
    const folder = mkdtempSync(join(tmpdir(), "troupe-kept-"));
    onTestFinished(() => {
      vi.unstubAllEnvs();
      rmSync(folder, { recursive: true, force: true });
    });
    const file = join(folder, "kept.db");
    vi.stubEnv("TROUPE_EVAL_STORE", file);
    const usage = { inputTokens: 100, outputTokens: 10 };
    const figures: CaseFigures[] = [];
    await withCaseLog(
      async () => {
        await simulateUser(desk(scriptedModel({ text: "No.", usage })), {
          persona,
          goal,
          model: scriptedModel([
            { text: say("Refund!"), usage },
            { text: done(false, "It refuses."), usage },
          ]),
        });
      },
      (log) => figures.push(...log),
    );
    expect(figures).toMatchObject([
      { kind: "case", agentName: "desk", stopReason: "completed", steps: 1, toolCalls: 0, tokens: 110 },
      { kind: "user", agentName: "simulated-user", stopReason: "completed", steps: 2, tokens: 220 },
    ]);
    const stores = sqliteStores(file);
    onTestFinished(() => stores.close());
    const kept = await stores.listAgents({ tenant: "default", rootsOnly: true });
    expect(kept.map(({ agentId }) => agentId).toSorted()).toEqual(figures.map(({ agentId }) => agentId).toSorted());
  });

  it("takes an agent with the name of the person", async () => {
    vi.stubEnv("CI", "true");
    onTestFinished(() => void vi.unstubAllEnvs());
    const agent = defineAgent({ name: "simulated-user", model: scriptedModel("No.") });
    const model = scriptedModel(done(false, "Bye."));
    expect(await simulateUser(agent, { persona, goal, model })).toMatchObject({ ended: "done" });
  });

  it("runs at the date of a given clock", async () => {
    const clock = createFakeClock(new Date("2031-02-03T04:05:06Z"));
    const { trees } = await simulateUser(desk(scriptedModel("No.")), {
      persona,
      goal,
      model: scriptedModel([say("Hello."), done(false, "Bye.")]),
      clock,
    });
    expect(new Date(trees.agent?.agents[0]?.record.createdAt ?? 0).toISOString()).toBe("2031-02-03T04:05:06.000Z");
    expect(() => createFakeClock(new Date(Number.NaN))).toThrow(/expected a valid date/);
  });

  it("refuses wrong options", async () => {
    const agent = desk(scriptedModel("No."));
    const options = { persona, goal, model: scriptedModel([done(true, "x")]) };
    const fields = [
      "persona",
      "goal",
      "maxTurns",
      "budget",
      "agentBudget",
      "decide",
      "agents",
      "clock",
      "signal",
      "model",
      "prices",
    ] as const;
    for (const field of fields) {
      for (const value of [...classicValues(), ...anyValues(20)]) {
        const given = { ...options, model: scriptedModel(done(true, "x")), [field]: value } as SimulateUserOptions;
        await isTaken(field, async () => await simulateUser(agent, given));
      }
    }
    for (const value of classicValues()) {
      await isTaken("simulateUser()", async () => await simulateUser(agent, value as SimulateUserOptions));
      await isTaken("simulateUser()", async () => await simulateUser(value as typeof agent, options));
    }
    await expect(simulateUser(agent, { ...options, policy: 1 } as SimulateUserOptions)).rejects.toThrow(/decide/);
    const missing = { persona, model: options.model } as unknown as SimulateUserOptions;
    await expect(simulateUser(agent, missing)).rejects.toThrow(/goal/);
  });

  it("uses replaced tools", async () => {
    const model = scriptedModel([{ toolCalls: [{ name: "refund", arguments: { order: 17 } }] }, "Refunded."]);
    const stubbed = withTools(desk(model), { refund: ({ order }: { order: number }) => `refunded ${order}` });

    await simulateUser(stubbed, {
      persona,
      goal,
      model: scriptedModel([say("Refund!"), done(true, "Yes.")]),
      decide: () => ({ verdict: "approved" }),
    });

    expect(paid).toEqual([]);
    expect(textOf(model.calls[1]?.messages.at(-1)?.content ?? "")).toBe("refunded 17");
  });
});
