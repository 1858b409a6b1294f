import { expect, it } from "vitest";
import { type AgentDefinition, defineAgent, subagent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { arrivals } from "../support/edge-arrivals.ts";
import { casesOf, faultsOf } from "../support/edge-cases.ts";
import { type Edge, edgeAgent } from "../support/edge-commits.ts";
import { combinedRows, rows } from "../support/full.ts";
import { asks, leadScript } from "../support/leads.ts";
import { describeRuntimes } from "../support/runtimes.ts";

/** A lead whose subagent runs the code of the edge; the lead receives the arrival. */
function leadOf(edge: Edge): AgentDefinition {
  const child = edgeAgent(edge, "child");
  const model = scriptedModel(leadScript([asks("child", "work"), asks("child", "work too")]));
  return defineAgent({ name: "worker", model, tools: [subagent(child)] });
}

describeRuntimes(
  "a turn whose subagents run user code",
  (stage) => {
    const cases = casesOf(["nothing", "throws"], Object.keys(arrivals));
    it.each(combinedRows(cases))("$place $deed, $arrival", async (one) => {
      expect((await faultsOf(stage(), leadOf, one)).filter((fault) => fault !== undefined)).toEqual([]);
    });
  },
  rows(["memory", "memory, restored"], ["memory, restored"]),
);
