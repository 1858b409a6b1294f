import { z } from "zod";
import { defineAgent, defineTool, openaiModel } from "../../src/index.ts";
import { bareWithTools } from "../bare/index.ts";
import { lookupTool as bareLookupTool } from "../bare/tools.ts";
import { sideOf } from "../conversations.ts";
import { budget, lookupTool } from "../ours/agents.ts";
import { contenderOn } from "../ours/index.ts";
import { storeKinds } from "../ours/open-stores.ts";
import { instructions, lookup, type Scenario } from "../scenario.ts";
import type { Study } from "../study.ts";
import { type Curve, growthPairs } from "./growth.ts";

/** A turn of two steps over HTTP, ours and bare. On both sides each request contains the definitions of all tools. */
export const growthTools: Study = {
  name: "growth-tools",
  title: "1 to 500 tools in a definition (100 with --quick)",
  unit: "ms/turn",
  plan: (quick) => (quick ? { warmUps: 2, rounds: 7 } : { warmUps: 4, rounds: 21 }),
  pairs: async (quick) => growthOfTools(quick ? [1, 10, 100] : [1, 10, 100, 250, 500], quick ? 10 : 30),
};

export function growthOfTools(counts: readonly number[], conversations: number) {
  const curves: Curve[] = [
    ...storeKinds.map((stores): Curve => {
      const at = (tools: number) => contenderOn(stores, {}, (_, baseUrl) => agentWith(tools, baseUrl));
      return { stores, sideAt: (tools) => sideOf(scenario, at(tools), conversations) };
    }),
    {
      stores: "none",
      contender: "bare",
      sideAt: (tools) => sideOf(scenario, bareWithTools(bareTools(tools)), conversations),
    },
  ];
  return growthPairs("tools", counts, curves);
}

const scenario: Scenario = {
  name: "growth-tools",
  title: "",
  agent: "tools",
  model: "loop-2",
  parallel: 1,
  turns: 1,
  callsPerTurn: 2,
  conversations: { full: 30, quick: 10 },
  unit: "ms/turn",
};

function otherNames(tools: number): readonly string[] {
  return Array.from({ length: tools - 1 }, (_, index) => `lookup_${index + 1}`);
}

function agentWith(tools: number, baseUrl: string) {
  const others = otherNames(tools).map((name) =>
    defineTool({
      name,
      description: "Looks up the value of a key.",
      parameters: z.object({ key: z.string() }),
      effect: "none",
      execute: ({ key }) => lookup(key),
    }),
  );
  const model = openaiModel(scenario.model, { apiKey: "none", baseURL: baseUrl });
  return defineAgent({ name: "agent", model, instructions, budget, tools: [lookupTool, ...others] });
}

function bareTools(tools: number) {
  const { definition } = bareLookupTool;
  const others = otherNames(tools).map((name) => ({
    ...bareLookupTool,
    definition: { ...definition, function: { ...definition.function, name } },
  }));
  return [bareLookupTool, ...others];
}
