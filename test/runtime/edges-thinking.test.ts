import { expect, it } from "vitest";
import { type AgentOptions, AgentStopError, defineAgent, type LanguageModel } from "../../src/index.ts";
import { ModelError } from "../../src/errors/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { startAgent } from "../support/deciding.ts";
import { elapse, entriesOfType, loopTurns, orderFault } from "../support/journal-probes.ts";
import { describeRuntimes, type Stage } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

type Compact = NonNullable<Exclude<AgentOptions["autoCompact"], boolean | undefined>["strategy"]>["compact"];

/** Exceeds the turn's budget, so it never fits. */
const side = { messages: [{ role: "user", content: "side ".repeat(10_000) }] } as const;

const reserved = async (stage: Stage): Promise<number[]> =>
  (await stage.look().accounts("default", "w")).map((account) => account.reserved.tokens);

describeRuntimes("compactions that end the turn", (stage) => {
  const started = async (compact: Compact, more: Partial<AgentOptions> = {}) => {
    const completed: string[] = [];
    const worker = defineAgent({
      name: "worker",
      model: scriptedModel("the end"),
      maxMessages: 1,
      budget: { maxTokens: 10_000 },
      autoCompact: { strategy: { name: "own", compact } },
      hooks: { onComplete: (draft) => void completed.push(draft.end.stopReason) },
      ...more,
    });
    const runtime = await stage().open({ agents: [worker] });
    return { agent: await startAgent(runtime, "worker", "w"), completed };
  };

  it("a compaction whose model call is refused stops the turn at the limit that refused the call", async () => {
    const { agent, completed } = await started(async ({ generate }) => {
      await generate(side);
      return null;
    });
    await agent.executeTurn("go").result;
    const result = await agent.executeTurn("go on").result;
    expect(result).toMatchObject({ status: "stopped", stopReason: "token_limit", steps: 0, error: null });
    expect(result.signal).toMatchObject({ accountId: "turn:w#2", limit: "maxTokens" });
    expect(completed).toEqual(["completed", "token_limit"]);
    expect(agent.state.status).toBe("ready");
  });

  it("S11: AgentStopError of a compaction stops the turn, even between two attempts of a call", async () => {
    const { agent } = await started(
      () => {
        throw new AgentStopError("no more room");
      },
      {
        maxMessages: undefined,
        model: scriptedModel(() => {
          throw new ModelError("too long", {
            retryable: false,
            mayHaveBeenSent: true,
            status: 400,
            details: { kind: "context_length" },
          });
        }),
      },
    );
    const result = await elapse(stage().clock, agent.executeTurn("go").result);
    expect(result).toMatchObject({
      status: "stopped",
      stopReason: "stop_requested",
      signal: { message: "no more room" },
    });
    expect(await reserved(stage())).toEqual([0]);
  });
});

describeRuntimes("turns that end during token counting", (stage) => {
  it.each(["abort", "time limit", "supersede"] as const)(
    "%s: the call is not made, and no reservation remains",
    async (how) => {
      const gate = createGate();
      const scripted = scriptedModel("the end");
      const model: LanguageModel = {
        ...scripted,
        // Large enough that the tokens have to be counted.
        boundPromptTokens: () => 5_000,
        countPromptTokens: async (request) => {
          await gate.pass();
          return scripted.countPromptTokens(request);
        },
      };
      const worker = defineAgent({ name: "worker", model, budget: { maxSeconds: 10 } });
      const runtime = await stage().open({ agents: [worker] });
      const agent = await runtime.agent("worker", { agentId: "w", budget: { maxTokens: 10_000 } });
      await agent.start();
      const turn = agent.executeTurn("go");
      await gate.reached();
      await loopTurns(5);
      if (how === "abort") await turn.abort();
      if (how === "time limit") stage().clock.advance(11_000);
      const next = how === "supersede" ? agent.executeTurn("instead", { ifBusy: "supersede" }) : undefined;
      expect(await elapse(stage().clock, turn.result)).toMatchObject({ status: "stopped", steps: 0 });
      await loopTurns(5);
      gate.open();
      await loopTurns(20);
      expect((await next?.result)?.text ?? "the end").toBe("the end");
      expect(await agent.executeTurn("again").result).toMatchObject({ status: "completed", text: "the end" });
      expect(scripted.calls).toHaveLength(next ? 2 : 1);
      expect(new Set(await reserved(stage()))).toEqual(new Set([0]));
      const requested = await entriesOfType(stage().look(), "w", "model.requested");
      expect(requested.filter(({ turnId }) => turnId === "w#1")).toEqual([]);
      expect(orderFault(await agent.getMessages())).toBeUndefined();
    },
  );
});
