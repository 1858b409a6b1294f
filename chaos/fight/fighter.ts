import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { type AgentDefinition, defineAgent, defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import type { LineWriter } from "../line-log.ts";
import type { SeededRandom } from "../../src/testing/simulation/seeded-random.ts";

/** Log of the tools' effects, one line each. */
export interface Deed {
  readonly callId: string;
  readonly pid: number;
}

/** Longest duration of models and tools, in milliseconds, during which the agent may change owners. */
const SLOWEST_MS = 40;

/** An agent with two steps: a `once` call and a repeatable call in parallel, then the answer. */
export function fighterNoting(deeds: LineWriter, random: SeededRandom): AgentDefinition {
  const parameters = z.object({});
  const pause = (): Promise<void> => delay(random.between(0, SLOWEST_MS));
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    parameters,
    effect: "once",
    execute: async (_args, { callId }) => {
      await pause();
      const deed: Deed = { callId, pid: process.pid };
      deeds.append(deed);
      await pause();
      return "paid";
    },
  });
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters,
    effect: "none",
    execute: async () => {
      await pause();
      return "nothing to see";
    },
  });
  const model = scriptedModel(async ({ messages }) => {
    await pause();
    return messages.at(-1)?.role === "tool" ? "done" : { toolCalls: [{ name: "pay" }, { name: "look" }] };
  });
  return defineAgent({ name: "fighter", model, tools: [pay, look], budget: { maxTokens: 1_000_000_000 } });
}
