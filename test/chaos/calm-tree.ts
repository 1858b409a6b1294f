import { z } from "zod";
import { type AgentEvidence, type TreeEvidence, treesIn } from "../../src/testing/simulation/evidence.ts";
import type { Attempt } from "../../chaos/ledger/effect-ledger.ts";
import { type ModelCallLine, taskPrefix } from "../../chaos/model/script.ts";
import { createRuntime, defineAgent, defineTool, memoryStores, subagent } from "../../src/index.ts";
import type { Entry } from "../../src/state/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { calling } from "../support/turn-probes.ts";

/** The records of an undisturbed tree: the checks must find nothing in them, and must find each planted fault. */
export interface CalmTree {
  readonly tree: TreeEvidence;
  readonly attempts: readonly Attempt[];
  readonly requests: readonly ModelCallLine[];
}

const parameters = z.object({});
const effects = ["keyed", "once"] as const;

/** A lead that calls a keyed tool, a once tool and a helper in one round, and answers. */
export async function calmTree(): Promise<CalmTree> {
  const attempts: Attempt[] = [];
  const tools = effects.map((effect) =>
    defineTool({
      name: effect,
      description: "Acts.",
      parameters,
      effect,
      execute: (_args, { idempotencyKey: key }) => {
        const number = attempts.length + 1;
        attempts.push({
          number,
          at: 1,
          key,
          tool: effect,
          effect,
          pid: 1,
          applied: true,
          receipt: `receipt-${number}`,
        });
        return "ok";
      },
    }),
  );
  const helper = defineAgent({ name: "helper", model: scriptedModel("helped") });
  const lead = defineAgent({
    name: "lead",
    model: scriptedModel([
      calling("keyed", "once", { name: "helper", arguments: { input: `${taskPrefix}a/1` } }),
      "the end",
    ]),
    tools: [...tools, subagent(helper)],
  });
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [lead], stores });
  const agent = await runtime.agent("lead", { agentId: "a" });
  await agent.start();
  await agent.executeTurn(`${taskPrefix}a`).result;
  await runtime.shutdown();
  const [tree] = await treesIn(stores);
  if (!tree) throw new Error("the store is empty");
  const line = { at: 1, model: "lead", task: "a", isLegal: true };
  const requests = [
    { ...line, step: 1, told: [] },
    { ...line, step: 2, told: [0, 1, 2].map((index) => ({ step: 1, index, text: "ok" })) },
    { ...line, model: "helper", task: "a/1", step: 1, told: [] },
  ];
  return { tree, attempts, requests };
}

/** The root with other entries. */
export function withEntries(
  { tree }: CalmTree,
  change: (entries: readonly Entry[]) => readonly Entry[],
): AgentEvidence {
  const root = rootOf(tree);
  return { ...root, entries: change(root.entries) };
}

export function rootOf({ agents }: TreeEvidence): AgentEvidence {
  const [root] = agents;
  if (!root) throw new Error("the tree is empty");
  return root;
}

/** The tree with another root. */
export function withRoot({ tree }: CalmTree, root: AgentEvidence): TreeEvidence {
  return { ...tree, agents: [root, ...tree.agents.slice(1)] };
}

/** As if the writer had numbered them. */
export function renumbered(entries: readonly Entry[]): Entry[] {
  return entries.map((entry, index) => ({ ...entry, seq: index + 1 }));
}
