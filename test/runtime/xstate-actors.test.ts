import { expect, it, onTestFinished, vi } from "vitest";
import { Actor, type AnyActorRef, type AnyMachineSnapshot } from "xstate";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { calling } from "../support/turn-probes.ts";

function childOf(parent: AnyActorRef | undefined, id: string): AnyActorRef | undefined {
  const { children } = (parent?.getSnapshot() ?? { children: {} }) as AnyMachineSnapshot;
  return (children as Readonly<Record<string, AnyActorRef | undefined>>)[id];
}

it("turns and tool calls are XState actors even without inspection: children of their agent and of their turn", async () => {
  const starting = vi.spyOn(Actor.prototype, "start");
  onTestFinished(() => starting.mockRestore());
  const agentActor = (): AnyActorRef | undefined =>
    (starting.mock.contexts as unknown as readonly AnyActorRef[]).find(({ id }) => id === "desk");
  const seen: unknown[] = [];
  let call: AnyActorRef | undefined;
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({}),
    execute: () => {
      const turn = childOf(agentActor(), "desk#1");
      call = childOf(turn, "desk#1:1:0");
      turn?.subscribe(({ value }: AnyMachineSnapshot) => seen.push(value));
      call?.subscribe(({ value }: AnyMachineSnapshot) => seen.push({ call: value as unknown }));
      return "seen";
    },
  });
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === "tool" ? "done" : calling({ name: "look", arguments: {} }),
  );
  const runtime = await createRuntime({ agents: [defineAgent({ name: "desk", model, tools: [look] })] });
  onTestFinished(() => runtime.shutdown());
  const desk = await runtime.agent("desk", { agentId: "desk" });
  await desk.start();
  expect(await desk.executeTurn("Look").result).toMatchObject({ status: "completed", text: "done" });

  const actors = [agentActor(), childOf(agentActor(), "desk#1"), call];
  expect(actors.map((actor) => actor instanceof Actor)).toEqual([true, true, true]);
  expect(new Set(actors.map((actor) => actor?.sessionId)).size).toBe(3);
  const snapshots = actors.map((actor) => actor?.getSnapshot() as AnyMachineSnapshot | undefined);
  expect(snapshots.map((snapshot): unknown => snapshot?.value)).toEqual(["ready", "done", "settled"]);
  expect(seen).toEqual([{ thinking: "assembling" }, { call: "settled" }, { thinking: "calling" }, "finishing", "done"]);
});
