import { expect, it } from "vitest";
import { type Agent, type AgentOptions, defineAgent, ModelError, type Runtime } from "../../src/index.ts";
import { type ModelScript, type ScriptedModel, scriptedModel } from "../../src/testing/index.ts";
import { elapse, entriesOfType, loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes, type Stage } from "../support/runtimes.ts";
import { createGate, eventsOfTurn, nextEvent } from "../support/turn-probes.ts";

type Failure = ConstructorParameters<typeof ModelError>[1];
const failing = (message: string, options: Partial<Failure>) => ({
  error: new ModelError(message, { retryable: true, mayHaveBeenSent: true, ...options }),
});

const bounded = (script: ModelScript) =>
  defineAgent({ name: "worker", model: scriptedModel(script), maxOutputTokens: 500, budget: { maxTokens: 9_000 } });

const accountId = "turn:worker-1#1";
const accountOf = async (stage: Stage, id = accountId) =>
  (await stage.look().accounts("default", "worker-1")).find((account) => account.id === id);

describeRuntimes("retries of model calls", (stage) => {
  async function started(
    script: ModelScript,
    options: Partial<AgentOptions> = {},
  ): Promise<{ runtime: Runtime; agent: Agent; model: ScriptedModel; times: number[] }> {
    const times: number[] = [];
    const scripted = scriptedModel(script);
    const generate: typeof scripted.generate = (request, generateOptions) => {
      times.push(stage().clock.now());
      return scripted.generate(request, generateOptions);
    };
    const model = { ...scripted, generate };
    const definition = defineAgent({ name: "worker", budget: { maxTokens: 50_000 }, ...options, model });
    const runtime = await stage().open({ agents: [definition], random: () => 0.5 });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    return { runtime, agent, model, times };
  }

  it("F26: waits as long as Retry-After says, else with a growing back-off; each attempt is reserved and settled", async () => {
    const { agent, times } = await started(
      [failing("slow down", { status: 429, retryAfterMs: 7_000 }), failing("down", { status: 503 }), "at last"],
      { budget: { maxTokens: 50_000, maxSteps: 1 } },
    );
    const turn = agent.executeTurn("go");
    const events = eventsOfTurn(turn);
    const result = await elapse(stage().clock, turn.result);
    expect(result).toMatchObject({ status: "completed", text: "at last", steps: 1 });
    const restarts = (await events).filter((event) => event.type === "step.restarted");
    expect(restarts.map(({ attempt, at, retryAt, error }) => [attempt, retryAt - at, error.message])).toEqual([
      [2, 7_000, "slow down"],
      [3, 500, "down"],
    ]);
    const [first = 0, second = 0, third = 0] = times;
    expect(second - first).toBeGreaterThanOrEqual(7_000);
    expect(third - second).toBeGreaterThanOrEqual(500);
    const asked = await entriesOfType(stage().look(), "worker-1", "model.requested");
    expect(asked.map(({ step, attempt, reservation }) => [step, attempt, reservation !== null])).toEqual([
      [1, 1, true],
      [1, 2, true],
      [1, 3, true],
    ]);
    const account = await accountOf(stage());
    // A refused call is not billed.
    expect(account?.used.tokens).toBe(result.usage.inputTokens + result.usage.outputTokens);
    expect(account?.reserved.tokens).toBe(0);
    expect(account?.used.steps).toBe(1);
  });

  it("F26: no more attempts than maxModelAttempts; then the turn fails with the last error", async () => {
    const { agent, model } = await started((_request, { index }) => failing(`down ${index + 1}`, { status: 500 }), {
      maxModelAttempts: 4,
    });
    const result = await elapse(stage().clock, agent.executeTurn("go").result);
    expect(model.calls).toHaveLength(4);
    expect(result).toMatchObject({ status: "failed", stopReason: "retry_limit", steps: 1 });
    expect(result.error).toMatchObject({ code: "model_error", message: "down 4", retryable: true });
    expect(agent.state.status).toBe("failed");
    expect((await accountOf(stage()))?.reserved.tokens).toBe(0);
  });

  it.each([
    { title: "a request that is refused for good", error: failing("no such model", { retryable: false, status: 404 }) },
    { title: "an error of the adapter's own", error: { error: new TypeError("broken adapter") } },
  ])("$title fails the turn at once", async ({ error }) => {
    const { agent, model } = await started([error, "not asked", "fine"]);
    const result = await agent.executeTurn("go").result;
    expect(model.calls).toHaveLength(1);
    expect(result).toMatchObject({ status: "failed", error: { message: error.error.message } });
    expect((await agent.executeTurn("again").result).status).toBe("completed");
  });

  it("a cut stream is billed by its prompt and the output received, and none of its text enters the conversation", async () => {
    const { agent } = await started([failing("cut", { partialOutputTokens: 12 }), "whole"]);
    const result = await elapse(stage().clock, agent.executeTurn("go").result);
    const [asked] = await entriesOfType(stage().look(), "worker-1", "model.requested");
    const [failed] = await entriesOfType(stage().look(), "worker-1", "model.failed");
    expect(failed?.usage).toEqual({ inputTokens: asked?.ask.promptTokens, outputTokens: 12, estimated: true });
    expect(result.usage.estimated).toBe(true);
    const { inputTokens, outputTokens } = result.usage;
    expect(await accountOf(stage())).toMatchObject({
      used: { tokens: inputTokens + outputTokens },
      reserved: { tokens: 0 },
      unconfirmed: { tokens: 0 },
    });
    expect((await agent.getMessages()).map(({ content }) => content)).toEqual(["go", "whole"]);
  });

  it("a call of unknown cost is settled in full as unconfirmed, and one that was never sent costs nothing", async () => {
    const { agent } = await started(
      [failing("gone", {}), failing("no connection", { mayHaveBeenSent: false }), "at last"],
      { maxOutputTokens: 1_000 },
    );
    const result = await elapse(stage().clock, agent.executeTurn("go").result);
    const [asked] = await entriesOfType(stage().look(), "worker-1", "model.requested");
    const lost = asked?.reservation?.tokens ?? 0;
    expect(lost).toBeGreaterThanOrEqual(1_000);
    expect(await accountOf(stage())).toMatchObject({
      used: { tokens: result.usage.inputTokens + result.usage.outputTokens },
      unconfirmed: { tokens: lost },
      reserved: { tokens: 0 },
    });
  });

  it("a retry that exceeds the budget stops the turn, naming the account", async () => {
    const { agent, model } = await started([failing("gone", {}), "never"], {
      budget: { maxTokens: 5_000 },
      maxOutputTokens: 4_800,
    });
    const result = await elapse(stage().clock, agent.executeTurn("go").result);
    expect(model.calls).toHaveLength(1);
    expect(result).toMatchObject({ status: "stopped", stopReason: "token_limit", signal: { accountId } });
  });

  it("an abort ends the wait for the next attempt", async () => {
    const { runtime, agent, model } = await started([failing("down", { status: 503, retryAfterMs: 60_000 }), "never"]);
    const restarted = nextEvent(runtime, ({ type }) => type === "step.restarted");
    const turn = agent.executeTurn("go");
    await restarted;
    await turn.abort();
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    stage().clock.advance(120_000);
    await loopTurns(3);
    expect(model.calls).toHaveLength(1);
  });

  it("F15: a call in flight at a crash is settled in full and repeated", async () => {
    const gate = createGate<string>();
    const doomed = await stage().openProcess({ agents: [bounded(() => gate.pass())] });
    const before = await doomed.runtime.agent("worker", { agentId: "worker-1" });
    await before.start();
    before.executeTurn("go");
    await gate.reached();
    doomed.kill();
    stage().expireLeases();
    const survivor = await stage().open({ agents: [bounded("saved")] });
    const agent = await survivor.find("worker-1");
    await survivor.recover();
    const result = await elapse(stage().clock, agent.turn("worker-1#1").result);
    gate.open("too late");
    expect(result).toMatchObject({ status: "completed", text: "saved", steps: 1 });
    const [asked] = await entriesOfType(stage().look(), "worker-1", "model.requested");
    const account = await accountOf(stage());
    expect(account?.unconfirmed.tokens).toBe(asked?.reservation?.tokens);
    expect(account?.used.steps).toBe(1);
    expect(account?.reserved.tokens).toBe(0);
    expect((await agent.getMessages()).map(({ content }) => content)).toEqual(["go", "saved"]);
  });
});
