import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, subagent } from "../../src/index.ts";
import { scriptedModel, simulate, type SimulatedSurroundings } from "../../src/testing/index.ts";
import { amount } from "../support/full.ts";

const agent = ({ surroundings }: { surroundings: SimulatedSurroundings }) => {
  const model = scriptedModel("never asked");
  const submit = defineTool({
    name: "submit",
    description: "Hands in the result.",
    parameters: z.object({ text: z.string() }),
    effect: "keyed",
    endsTurn: true,
    execute: async ({ text }, run) => {
      await surroundings.clock.sleep(20, run.signal);
      return text;
    },
  });
  const child = defineAgent({ name: "child", model });
  const handover = subagent(child, { endsTurn: true, history: "conversation" });
  return defineAgent({ name: "desk", model, tools: [submit, handover] });
};

const world = (surroundings: SimulatedSurroundings) => ({ surroundings });

it("turns that tools and subagents end survive the death of their process at any point", async () => {
  const report = await simulate({ world, agent }, { programs: amount(1000, 30) });
  expect(report.faults).toEqual([]);
  expect(report.deaths).toBeGreaterThan(0);
});
