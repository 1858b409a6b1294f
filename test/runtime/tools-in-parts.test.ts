import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, OutcomeUnknownError, type RunContext, type RuntimeOptions } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { requestOf, startAgent } from "../support/deciding.ts";
import { entriesOfType, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const nothing = z.object({});
const never = Promise.withResolvers<never>().promise;

interface Parts {
  readonly maxTokens?: number;
  readonly effect?: "none" | "keyed" | "once";
  readonly execute: (run: RunContext) => unknown;
  readonly cancel?: (run: RunContext) => unknown;
}

function worker({
  effect = "keyed",
  maxTokens,
  execute,
  cancel,
}: Parts): NonNullable<RuntimeOptions["agents"]>[number] {
  const tool = defineTool({
    name: "errand",
    description: "Runs an errand.",
    parameters: nothing,
    effect,
    execute: (_args, run) => execute(run),
    ...(cancel ? { cancel: (_args: object, run: RunContext) => cancel(run) } : {}),
  });
  const model = scriptedModel(({ messages }) => (messages.at(-1)?.role === "user" ? calling("errand") : "the end"));
  return defineAgent({ name: "worker", model, tools: [tool], ...(maxTokens ? { budget: { maxTokens } } : {}) });
}

describeRuntimes("calls that are resumed: note(), ask() and bill()", (stage) => {
  it("a call cut by a crash gets its last note when it runs again as the same call", async () => {
    const begun = createGate();
    const doomed = await stage().openProcess({
      agents: [
        worker({
          execute: async (run) => {
            expect(run.noted).toBeNull();
            await run.note({ far: 1 });
            await run.note({ far: 2, of: ["a"] });
            expect(run.noted).toEqual({ far: 2, of: ["a"] });
            await begun.pass();
            return await never;
          },
        }),
      ],
    });
    const agent = await startAgent(doomed.runtime, "worker", "w");
    agent.executeTurn("go").result.catch(() => undefined);
    await begun.reached();
    doomed.kill();
    stage().expireLeases();
    const seen: unknown[] = [];
    const runtime = await stage().open({
      agents: [worker({ execute: (run) => void seen.push([run.noted, run.attempt, run.idempotencyKey, run.answer]) })],
    });
    const next = await startAgent(runtime, "worker", "w");
    expect(await next.turn("w#1").result).toMatchObject({ status: "completed", toolCalls: 1 });
    expect(seen).toEqual([[{ far: 2, of: ["a"] }, 2, "w#1:1:0", null]]);
  });

  it("a call asks, the turn rests, and the code runs again with the answer, even in another process", async () => {
    const asking = worker({
      execute: async (run) => {
        if (run.answer) return `${run.answer.verdict} ${run.answer.text} ${JSON.stringify(run.noted)}`;
        await run.note("asked");
        return run.ask({ kind: "question", prompt: "Which one?", arguments: { of: 2 } });
      },
    });
    const doomed = await stage().openProcess({ agents: [asking] });
    const agent = await startAgent(doomed.runtime, "worker", "w");
    const request = await requestOf(agent.executeTurn("go"));
    expect(request).toMatchObject({ kind: "question", prompt: "Which one?", arguments: { of: 2 }, name: "errand" });
    doomed.kill();
    stage().expireLeases();
    const runtime = await stage().open({ agents: [asking] });
    const next = await startAgent(runtime, "worker", "w");
    await runtime.decide(request.requestId, { verdict: "answered", result: "the red one", by: "ada" });
    expect(await next.turn("w#1").result).toMatchObject({ status: "completed", text: "the end", toolCalls: 1 });
    expect(await toolTextsOf(next)).toEqual(['answered the red one "asked"']);
    expect(orderFault(await next.getMessages())).toBeUndefined();
  });

  it("each question gets its own answer; an approval cannot be edited, and a rejection reaches the code", async () => {
    const answers: unknown[] = [];
    const runtime = await stage().open({
      agents: [
        worker({
          effect: "once",
          execute: (run) => {
            if (run.answer) answers.push([run.answer.kind, run.answer.verdict, run.answer.reason]);
            if (answers.length === 0) return run.ask({ kind: "question", prompt: "One?" });
            if (answers.length === 1) return run.ask({ kind: "approval", prompt: "Two?" });
            return "over";
          },
        }),
      ],
    });
    const agent = await startAgent(runtime, "worker", "w");
    const turn = agent.executeTurn("go");
    const first = await requestOf(turn);
    await runtime.decide(first.requestId, { verdict: "rejected", reason: "no idea" });
    await expect.poll(async () => (await runtime.requests()).map(({ kind }) => kind), polling).toEqual(["approval"]);
    const [second] = await runtime.requests();
    const id = second?.requestId ?? "";
    await expect(runtime.decide(id, { verdict: "edited", arguments: {} })).rejects.toThrow(
      /question of the running tool/,
    );
    await runtime.decide(id, { verdict: "approved", argumentsHash: second?.argumentsHash });
    expect((await turn.result).status).toBe("completed");
    expect(answers).toEqual([
      ["question", "rejected", "no idea"],
      ["approval", "approved", null],
    ]);
    expect(await toolTextsOf(agent)).toEqual(["over"]);
  });

  it("a bill counts once on the turn and the accounts above it, whether or not the code runs again", async () => {
    const use = { key: "remote", model: "far", inputTokens: 70, outputTokens: 30 };
    const runtime = await stage().open({
      agents: [
        worker({
          execute: async (run) => {
            await run.bill({ ...use, cost: 0.5 });
            if (!run.answer) return run.ask({ kind: "question", prompt: "Again?" });
            await run.bill({ ...use, cost: 0.5 });
            await run.bill({ ...use, key: "free", model: "other", inputTokens: 0, outputTokens: 1, cost: 0 });
            return "paid";
          },
        }),
      ],
    });
    const agent = await startAgent(runtime, "worker", "w");
    const turn = agent.executeTurn("go");
    const request = await requestOf(turn);
    await runtime.decide(request.requestId, { verdict: "answered", result: "yes" });
    const { spent } = await turn.result;
    expect(spent.byModel["far"]).toMatchObject({ calls: 1, inputTokens: 70, outputTokens: 30, cost: 0.5 });
    expect(spent.byModel["other"]).toMatchObject({ calls: 1, outputTokens: 1, cost: 0 });
    expect(spent.tree.inputTokens - spent.own.inputTokens).toBe(0);
    expect(await entriesOfType(stage().look(), "w", "tool.billed")).toHaveLength(2);
  });

  it("a bill beyond the budget counts in full and ends the turn before its next model call", async () => {
    const costly = worker({
      maxTokens: 1_000_000,
      execute: (run) => run.bill({ key: "k", model: "far", inputTokens: 900_000, outputTokens: 200_000 }),
    });
    const runtime = await stage().open({ agents: [costly] });
    const agent = await startAgent(runtime, "worker", "w");
    const { stopReason, spent } = await agent.executeTurn("go").result;
    expect(stopReason).toBe("token_limit");
    expect(spent.byModel["far"]).toMatchObject({ inputTokens: 900_000, outputTokens: 200_000, cost: null });
  });

  it.each(["none", "keyed", "once"] as const)("a %s tool can report an unknown outcome", async (effect) => {
    const runtime = await stage().open({
      agents: [
        worker({
          effect,
          execute: () => {
            throw new OutcomeUnknownError("the line was cut");
          },
        }),
      ],
    });
    const agent = await startAgent(runtime, "worker", "w");
    await agent.executeTurn("go").result;
    const [settled] = await entriesOfType(stage().look(), "w", "tool.settled");
    expect(settled).toMatchObject({ outcome: "outcome_unknown" });
    expect((await toolTextsOf(agent))[0]).toContain("the line was cut");
  });

  it("an abort calls cancel() with the note, even while the call waits for an answer", async () => {
    for (const asks of [true, false]) {
      const cancelled: unknown[] = [];
      const begun = createGate();
      const runtime = await stage().open({
        agents: [
          worker({
            execute: async (run) => {
              await run.note({ asks });
              if (asks) return run.ask({ kind: "question", prompt: "?" });
              await begun.pass(run.signal);
              return "";
            },
            cancel: (run) => void cancelled.push(run.noted),
          }),
        ],
      });
      const agent = await startAgent(runtime, "worker", `w-${asks}`);
      const turn = agent.executeTurn("go");
      if (asks) await requestOf(turn);
      else await begun.reached();
      await agent.abort();
      expect(await turn.result).toMatchObject({ stopReason: "user_requested" });
      expect(cancelled).toEqual([{ asks }]);
    }
  });

  it("an abort of a lost call calls cancel() in the next process: an error is a warning, and without a note it is not called", async () => {
    const begun = createGate();
    const wait = async (): Promise<unknown> => {
      await begun.pass();
      return await never;
    };
    const doomed = await stage().openProcess({
      agents: [
        worker({
          execute: async (run) => {
            if (run.agent.agentId === "w1") await run.note("begun");
            return await wait();
          },
        }),
      ],
    });
    for (const id of ["w1", "w2"]) {
      const agent = await startAgent(doomed.runtime, "worker", id);
      agent.executeTurn("go").result.catch(() => undefined);
    }
    await begun.reached(2);
    doomed.kill();
    stage().expireLeases();
    const cancelled: string[] = [];
    const runtime = await stage().open({
      agents: [
        worker({
          execute: async () => await never,
          cancel: (run) => {
            cancelled.push(run.agent.agentId);
            throw new Error("no answer there");
          },
        }),
      ],
    });
    for (const id of ["w1", "w2"]) {
      const agent = await runtime.find(id);
      await agent.abort();
      await agent.start();
      expect((await agent.turn(`${id}#1`).result).stopReason).toBe("user_requested");
    }
    expect(cancelled).toEqual(["w1"]);
    expect(await entriesOfType(stage().look(), "w1", "warning")).toMatchObject([{ code: "not_cancelled" }]);
  });
});

const polling = { timeout: 30_000, interval: 10 };
