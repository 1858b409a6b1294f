import { expect, it } from "vitest";
import { defineAgent, defineTool, type Stores } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { z } from "zod";
import { loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes, type Stage, stageLeaseMs } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const HOUR = 3_600_000;

const reads: ReadonlySet<string> = new Set(
  [
    "readAgent listAgents lookAtTurn unattended holder inbox posted readJournal readTree messages messagesById artifacts",
    "artifact artifactByName requests request turns accounts waiters account definition treeActivity treeHead dueTimers",
    "nextTimerAt timer exportTree projectionCursor webhooks dueWebhooks schedule schedules dueSchedules nextScheduleAt deletion deletions onForeignWrite onRolledBack rest close",
  ]
    .join(" ")
    .split(" "),
);

/** Stores that record the names of all writing calls. */
function noting(stores: Stores, written: string[]): Stores {
  return new Proxy(stores, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...given: unknown[]): unknown => {
        if (typeof name === "string" && !reads.has(name)) written.push(name);
        return Reflect.apply(member, target, given);
      };
    },
  });
}

async function pass(stage: Stage, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 1_000) {
    stage.clock.advance(1_000);
    await loopTurns(1);
  }
}

describeRuntimes("writes of an idle process", (stage) => {
  it("are one heartbeat an hour, even with idle agents; the next turn registers it as alive again", async () => {
    const written: string[] = [];
    const agents = [defineAgent({ name: "desk", model: scriptedModel(() => "done") })];
    const runtime = await stage().open({ agents, through: (stores) => noting(stores, written) });
    const agent = await runtime.agent("desk", { agentId: "a" });
    await agent.start();
    await agent.executeTurn("first").result;
    await pass(stage(), 60_000);
    written.length = 0;
    await pass(stage(), HOUR);
    expect(written).toEqual(["heartbeat"]);
    written.length = 0;
    expect(await agent.executeTurn("second").result).toMatchObject({ status: "completed" });
    expect(written).toContain("heartbeat");
  });

  it("are one heartbeat per third of a lease while a turn waits", async () => {
    const written: string[] = [];
    const send = defineTool({
      name: "send",
      description: "Sends.",
      parameters: z.object({}),
      effect: "once",
      needsApproval: true,
      execute: async () => "sent",
    });
    const agents = [defineAgent({ name: "desk", model: scriptedModel(() => calling("send")), tools: [send] })];
    const runtime = await stage().open({ agents, through: (stores) => noting(stores, written) });
    const agent = await runtime.agent("desk", { agentId: "a" });
    await agent.start();
    const { settled } = agent.executeTurn("go");
    expect(await settled).toMatchObject({ status: "waiting" });
    await pass(stage(), 60_000);
    written.length = 0;
    await pass(stage(), 60 * stageLeaseMs);
    expect(new Set(written)).toEqual(new Set(["heartbeat"]));
    expect(written.length).toBeLessThanOrEqual(3 * 60);
    expect(written.length).toBeGreaterThan(2 * 60);
  });
});
