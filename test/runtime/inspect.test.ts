import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { AnyActorRef, AnyMachineSnapshot, InspectionEvent } from "xstate";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, type Runtime } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { calling } from "../support/turn-probes.ts";

/** A runtime with an agent whose tool waits: `reached` resolves in the tool, `goOn` lets it end. */
async function desk(options: { readonly restoreAfterCommit?: boolean } = {}) {
  const reached = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({}),
    execute: async () => {
      reached.resolve();
      await release.promise;
      return "seen";
    },
  });
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === "tool" ? "done" : calling({ name: "look", arguments: {} }),
  );
  const runtime = await createRuntime({ agents: [defineAgent({ name: "desk", model, tools: [look] })], ...options });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("desk", { agentId: "desk" });
  await agent.start();
  return { runtime, agent, reached: reached.promise, goOn: release.resolve };
}

/** Records what an observer receives: the kind of event, the actor, and its state or the event it got. */
function recorder() {
  const lines: string[] = [];
  const observer = (agentId: string, event: InspectionEvent): void => {
    const { id } = event.actorRef as AnyActorRef;
    if (event.type === "@xstate.actor") lines.push(`${agentId}: actor ${id}`);
    else if (event.type === "@xstate.event") lines.push(`${agentId}: ${id} gets ${event.event.type}`);
    else if (event.type === "@xstate.snapshot") {
      lines.push(`${agentId}: ${id} is ${JSON.stringify((event.snapshot as AnyMachineSnapshot).value)}`);
    }
  };
  return { lines, observer };
}

describe("runtime.inspect()", () => {
  test.each([false, true])(
    "an observer that starts mid-turn first gets the current state, then the same events as one from the beginning (restored: %s)",
    async (restoreAfterCommit) => {
      const { runtime, agent, reached, goOn } = await desk({ restoreAfterCommit });
      const first = recorder();
      runtime.inspect(first.observer);
      const turn = agent.executeTurn("Look");
      await reached;
      const late = recorder();
      runtime.inspect(late.observer);
      const before = first.lines.length;
      expect(late.lines).toEqual([
        "desk: actor desk",
        'desk: desk is {"busy":"working"}',
        "desk: actor desk#1",
        'desk: desk#1 is "round"',
        "desk: actor desk#1:1:0",
        'desk: desk#1:1:0 is {"performing":"running"}',
      ]);
      const shown = late.lines.length;
      goOn();
      expect((await turn.result).text).toBe("done");
      expect(late.lines.slice(shown)).toEqual(first.lines.slice(before));
      expect(late.lines).toContain('desk: desk#1 is "done"');
    },
  );

  test("the returned function ends the subscription, and a new one gets the whole state once", async () => {
    const { runtime, agent, goOn } = await desk();
    goOn();
    const lines = async (): Promise<readonly string[]> => {
      const { lines: seen, observer } = recorder();
      const end = runtime.inspect(observer);
      await agent.executeTurn("Look").result;
      end();
      const count = seen.length;
      await agent.executeTurn("Look").result;
      expect(seen).toHaveLength(count);
      return seen.map((line) => line.replaceAll(/#\d+/g, "#n"));
    };
    await agent.executeTurn("Look").result;
    const one = await lines();
    expect(await lines()).toEqual(one);
  });

  test("an error of the observer becomes a process warning, and the turn continues", async () => {
    const emitWarning = vi.spyOn(process, "emitWarning").mockReturnValue();
    onTestFinished(() => emitWarning.mockRestore());
    const { runtime, agent, goOn } = await desk();
    goOn();
    runtime.inspect(() => {
      throw new Error("broken inspector");
    });
    expect((await agent.executeTurn("Look").result).text).toBe("done");
    expect(emitWarning).toHaveBeenCalledTimes(1);
    expect(String(emitWarning.mock.calls[0]?.[0])).toContain("broken inspector");
  });

  test.each([undefined, null, {}, "observer"])("refuses %j", async (wrong) => {
    const { runtime } = await desk();
    const inspect = (): unknown => runtime.inspect(wrong as unknown as Parameters<Runtime["inspect"]>[0]);
    expect(inspect).toThrow(/runtime\.inspect\(\).*a function/);
  });
});
