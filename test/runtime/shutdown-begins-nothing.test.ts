import { expect, it } from "vitest";
import { z } from "zod";
import {
  type Agent,
  AlreadyOwnedError,
  defineAgent,
  defineTool,
  type Runtime,
  summarize,
  textOf,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { startAgent } from "../support/deciding.ts";
import { elapse, loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const aWhile = 30;

/** Records the model calls, summaries and tool runs that an agent starts. */
class Begun {
  readonly list: string[] = [];
  #looks = 0;

  agent(name = "worker") {
    const look = (effect: "none" | "once") =>
      defineTool({
        name: effect,
        description: "Looks.",
        parameters: z.object({}),
        effect,
        execute: () => {
          this.#looks += 1;
          this.list.push(`tool ${effect}`);
          return "looked";
        },
      });
    const model = scriptedModel(({ messages, tools }) => {
      this.list.push(tools ? "model" : "summary");
      if (!tools) return "short";
      if (messages.at(-1)?.role === "user") this.#looks = 0;
      return this.#looks < 6 ? calling("none", "once") : "done";
    });
    const autoCompact = { strategy: summarize(), keep: 1 };
    return defineAgent({ name, model, tools: [look("none"), look("once")], maxMessages: 3, autoCompact });
  }
}

const ends: Readonly<Record<string, (agent: Agent, runtime: Runtime) => Promise<unknown>>> = {
  "agent.shutdown()": (agent) => agent.shutdown(),
  "runtime.shutdown()": (_agent, runtime) => runtime.shutdown(),
};

describeRuntimes("a shutdown in the middle of a turn", (stage) => {
  it.each(Object.keys(ends))("%s starts nothing new, at whichever event it is called", async (which) => {
    const end = ends[which];
    let reached = 0;
    for (let at = 0; ; at += 1) {
      const begun = new Begun();
      const agents = [begun.agent()];
      const runtime = await stage().open({ agents });
      const agentId = `s-${which.slice(0, 5)}-${at}`;
      const agent = await startAgent(runtime, "worker", agentId);
      await agent.executeTurn("before").result;
      let count = 0;
      let after: number | undefined;
      let over: Promise<unknown> | undefined;
      const watching = runtime.subscribe(() => {
        if (count === at) {
          over = end?.(agent, runtime);
          after = begun.list.length;
        }
        count += 1;
      });
      const turn = agent.executeTurn("go");
      const settled = turn.result.then(({ status }) => status).catch(() => "left");
      if (at === 0) await turn.id.catch(() => undefined);
      while (over === undefined && (await Promise.race([settled, loopTurns(1)])) === undefined);
      await over;
      await loopTurns(aWhile);
      watching.unsubscribe();
      if (after === undefined) break;
      reached += 1;
      expect({ at, begun: begun.list.slice(after) }).toEqual({ at, begun: [] });
      const next = which.startsWith("agent") ? runtime : await stage().open({ agents });
      const again = await startAgent(next, "worker", agentId);
      const open = again.state.openTurnId;
      const said = open === null ? "done" : (await again.turn(open).result).text;
      expect(said).toBe("done");
      await next.shutdown();
    }
    expect(reached).toBeGreaterThan(20);
  });

  it("a call that was granted but not sent costs nothing, and is made after the next start", async () => {
    const begun = new Begun();
    const runtime = await stage().open({ agents: [begun.agent()] });
    const agent = await startAgent(runtime, "worker", "w");
    const turn = agent.executeTurn("go", { budget: { maxTokens: 500_000 } });
    await agent.shutdown();
    await loopTurns(aWhile);
    await agent.start();
    expect(await turn.result).toMatchObject({ status: "completed", spent: { own: { unconfirmedCalls: 0 } } });
  });
});

describeRuntimes("two processes on the same stores", (stage) => {
  it("a turn opened just before shutdown() is continued by the process that starts the agent next", async () => {
    const first = new Begun();
    const before = await stage().open({ agents: [first.agent()] });
    const agent = await startAgent(before, "worker", "w");
    for (let waits = 0; waits < 6; waits += 1) {
      const { id } = agent.executeTurn("go");
      await loopTurns(waits);
      await agent.shutdown();
      const turnId = await id;
      await loopTurns(aWhile);
      const second = await stage().open({ agents: [new Begun().agent()] });
      const next = await startAgent(second, "worker", "w");
      expect(await elapse(stage().clock, next.turn(turnId).result)).toMatchObject({
        status: "completed",
        text: "done",
      });
      await second.shutdown();
      await agent.start();
    }
  });

  it.each(["a new agent", "an agent that was shut down", "an agent with an open turn"] as const)(
    "that start %s at once: the loser's turn is queued and run by the winner",
    async (which) => {
      const gate = createGate<string>();
      const agents = [
        defineAgent({
          name: "clerk",
          model: scriptedModel(({ messages }, { signal }) =>
            textOf(messages.at(-1)?.content ?? "") === "first" ? gate.pass(signal) : "ok",
          ),
        }),
      ];
      if (which !== "a new agent") {
        const before = await stage().open({ agents });
        const agent = await startAgent(before, "clerk", "c");
        if (which === "an agent with an open turn") await agent.executeTurn("first").id;
        await agent.shutdown();
        await before.shutdown();
      }
      const runtimes = await Promise.all([stage().open({ agents }), stage().open({ agents })]);
      const handles = await Promise.all(runtimes.map((runtime) => runtime.agent("clerk", { agentId: "c" })));
      const starts = await Promise.allSettled(handles.map((handle) => handle.start()));
      const lost = starts.findIndex(({ status }) => status === "rejected");
      expect(starts.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
      expect((starts[lost] as PromiseRejectedResult).reason).toBeInstanceOf(AlreadyOwnedError);
      gate.open("late");
      const [winner, loser] = [handles[1 - lost], handles[lost]];
      const turns = [loser, winner, loser].map((handle) => handle?.executeTurn("go", { ifBusy: "queue" }));
      const results = await elapse(stage().clock, Promise.all(turns.flatMap((turn) => (turn ? [turn.result] : []))));
      expect(results.map(({ text }) => text)).toEqual(["ok", "ok", "ok"]);
    },
  );
});
