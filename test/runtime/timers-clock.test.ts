import { expect, it } from "vitest";
import { z } from "zod";
import type { Clock } from "../../src/base/index.ts";
import {
  type AgentOptions,
  AlreadyOwnedError,
  createRuntime,
  defineAgent,
  defineTool,
  ModelError,
  type Runtime,
} from "../../src/index.ts";
import { type FakeClock, type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes, stageLeaseMs } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const tenMinutes = 600_000;

/** Advances the clock in steps, so that everything due runs before more time passes. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 250) {
    clock.advance(Math.min(250, left));
    await loopTurns(3);
  }
}

async function activeMsOf(runtime: Runtime) {
  return (await runtime.accounts("t"))[0]?.used.activeMs;
}

describeRuntimes("a wall clock that is set (F17)", (stage) => {
  const open = async (script: ModelScript, more: Partial<AgentOptions> = {}) => {
    const runtime = await stage().open({
      agents: [defineAgent({ name: "worker", model: scriptedModel(script), ...more })],
    });
    const agent = await runtime.agent("worker", { agentId: "t" });
    await agent.start();
    return { runtime, agent };
  };

  it.each([tenMinutes, -tenMinutes])(
    "does not change working time: set by %d ms, the limit cuts neither early nor late",
    async (by) => {
      const gate = createGate<string>();
      const { runtime, agent } = await open((_request, { signal }) => gate.pass(signal), {
        budget: { maxSeconds: 10 },
      });
      const turn = agent.executeTurn("go");
      await gate.reached();
      await pass(stage().clock, 4_000);
      stage().clock.jump(by);
      await pass(stage().clock, 5_999);
      expect(agent.state.status).toBe("busy");
      await pass(stage().clock, 251);
      expect(await turn.result).toMatchObject({ stopReason: "time_limit", signal: { limit: "maxActiveMs" } });
      const used = await activeMsOf(runtime);
      expect(used).toBeGreaterThanOrEqual(10_000);
      expect(used).toBeLessThanOrEqual(10_250);
    },
  );

  it("is not counted as working time, and setting it back and forth refills no time", async () => {
    const gates = [createGate<string>(), createGate<string>()];
    const { runtime, agent } = await open(
      async (_request, { index, signal }) => (await gates[index]?.pass(signal)) ?? "",
      {
        budget: { maxSeconds: 60 },
      },
    );
    const turn = agent.executeTurn("go");
    await gates[0]?.reached();
    for (const by of [tenMinutes, -tenMinutes, -tenMinutes, tenMinutes]) {
      await pass(stage().clock, 1_000);
      stage().clock.jump(by);
      await loopTurns(3);
    }
    gates[0]?.open("done");
    expect(await turn.result).toMatchObject({ status: "completed", text: "done" });
    expect(await activeMsOf(runtime)).toBe(4_000);
  });

  it("set back delays a deadline, which is a time on the wall clock", async () => {
    const gate = createGate<string>();
    const { agent } = await open((_request, { signal }) => gate.pass(signal));
    const turn = agent.executeTurn("go", { budget: { deadline: stage().clock.now() + 60_000 } });
    await gate.reached();
    await pass(stage().clock, 30_000);
    stage().clock.jump(-tenMinutes);
    await pass(stage().clock, tenMinutes + 29_999);
    expect(agent.state.status).toBe("busy");
    await pass(stage().clock, 251);
    expect(await turn.result).toMatchObject({ stopReason: "time_limit", signal: { limit: "deadlineAt" } });
  });

  it("times out no tool and delays no retry", async () => {
    const gate = createGate<string>();
    const slow = defineTool({
      name: "slow",
      description: "Takes its time.",
      parameters: z.object({}),
      timeoutMs: 30_000,
      execute: (_args, run) => gate.pass(run.signal),
    });
    const busy = new ModelError("busy", { retryable: true, status: 503, mayHaveBeenSent: true, retryAfterMs: 20_000 });
    const { agent } = await open([calling({ name: "slow", arguments: {} }), { error: busy }, "done"], {
      tools: [slow],
    });
    const turn = agent.executeTurn("go");
    await gate.reached();
    stage().clock.jump(tenMinutes);
    await loopTurns(5);
    gate.open("here");
    await loopTurns(20);
    stage().clock.jump(-tenMinutes);
    await pass(stage().clock, 20_250);
    expect(await turn.result).toMatchObject({ status: "completed", text: "done", toolCalls: 1 });
  });

  it("moves no lease in any process: heartbeats continue and are measured by elapsed time", async () => {
    const gate = createGate<string>();
    const { runtime, agent } = await open((_request, { signal }) => gate.pass(signal));
    const turn = agent.executeTurn("go");
    await gate.reached();
    const agents = [defineAgent({ name: "worker", model: scriptedModel("x") })];
    for (const skew of [tenMinutes, -tenMinutes]) {
      const clock = skewed(stage().clock, skew);
      const other = await createRuntime({ agents, stores: stage().look(), clock, leaseMs: stageLeaseMs });
      await expect((await other.find("t")).start()).rejects.toThrow(AlreadyOwnedError);
      stage().clock.jump(skew);
      for (let lease = 0; lease < 4; lease += 1) {
        await pass(stage().clock, stageLeaseMs / 2);
        await expect((await other.find("t")).start()).rejects.toThrow(AlreadyOwnedError);
        expect(await other.recover()).toEqual([]);
      }
      await other.shutdown();
    }
    gate.open("mine all along");
    expect((await turn.result).text).toBe("mine all along");
    expect((await runtime.find("t")).state.status).toBe("ready");
  });
});

/** A clock set differently from those of the other processes. */
function skewed(clock: Clock, by: number): Clock {
  return {
    now: () => clock.now() + by,
    elapsed: () => clock.elapsed(),
    setTimer: (at, callback) => clock.setTimer(at - by, callback),
    setDelay: (ms, callback) => clock.setDelay(ms, callback),
    sleep: (ms, signal) => clock.sleep(ms, signal),
  };
}
