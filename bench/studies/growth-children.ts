import { createRuntime } from "../../src/index.ts";
import { answerText } from "../model-answers.ts";
import { wholeAnswer } from "../ours/index.ts";
import { largeTeam } from "../ours/large-team.ts";
import { openStores, type StoreKind, storeKinds } from "../ours/open-stores.ts";
import { userInput } from "../scenario.ts";
import { type Sample, type Side, type Study, timed } from "../study.ts";
import { growthPairs } from "./growth.ts";

/** Children per sample, divided among several leads if needed, because one lead with one child is too short to measure. */
const LEAST_CHILDREN = 100;

/** One turn of a lead with subagents of one model call, up to 1,000 in an answer. The models are in this process. */
export const growthChildren: Study = {
  name: "growth-children",
  title: "1 to 5,000 children of one parent (500 with --quick)",
  unit: "ms/child",
  plan: (quick) => ({ warmUps: quick ? 1 : 0, rounds: 3 }),
  pairs: async (quick) => growthOfChildren(quick ? [1, 10, 100, 500] : [1, 10, 100, 1_000, 2_500, 5_000]),
};

export function growthOfChildren(counts: readonly number[]) {
  return growthPairs(
    "children",
    counts,
    storeKinds.map((stores) => ({ stores, sideAt: (count) => childrenSide(stores, count) })),
  );
}

function childrenSide(kind: StoreKind, children: number): Side {
  const leads = Math.ceil(LEAST_CHILDREN / children);
  const sample = async (): Promise<Sample> => {
    const { stores, remove } = await openStores(kind);
    const runtime = await createRuntime({ agents: [largeTeam({ children, steps: 1 })], stores });
    try {
      const agents = await Promise.all(Array.from({ length: leads }, () => runtime.agent("lead")));
      for (const agent of agents) await agent.start();
      const { elapsedMs, processorMs } = await timed(async () => {
        for (const agent of agents) {
          const text = await wholeAnswer(agent, userInput);
          if (text !== answerText) throw new Error(`growth-children: expected ${answerText}, got ${text}.`);
        }
      });
      return { value: elapsedMs / leads / children, processorMs: processorMs / leads / children };
    } finally {
      await runtime.shutdown();
      await remove();
    }
  };
  return {
    name: `a lead with ${children} children, ${kind}`,
    prepare: async () => ({ sample, close: async () => undefined }),
  };
}
