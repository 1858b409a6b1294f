import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { AliveFigures } from "../alive-process.ts";
import { storeKinds } from "../ours/open-stores.ts";
import type { Pair, Sample, Side, Study } from "../study.ts";
import { type Curve, growthPairs } from "./growth.ts";

const run = promisify(execFile);
const program = fileURLToPath(new URL("../alive-process.ts", import.meta.url));

/** The memory of one more agent is measurable only with many agents. */
const LEAST_FOR_HEAP = 100;

/** A turn of an agent while many others are idle, and the memory per idle agent. Each sample runs in a new process. */
export const growthAgents: Study = {
  name: "growth-agents",
  title: "1 to 100,000 agents alive (1,000 with --quick)",
  unit: "ms/turn",
  plan: (quick) => ({ warmUps: 0, rounds: quick ? 1 : 3 }),
  pairs: async (quick) => growthOfAgents(quick ? [1, 100, 1_000] : [1, 100, 1_000, 10_000, 100_000]),
};

export function growthOfAgents(counts: readonly number[]): readonly Pair[] {
  return storeKinds.flatMap((stores) => {
    const sides = new Map(counts.map((count) => [count, sidesAt(stores, count)]));
    const sideAt = (what: "turn" | "heap") => (count: number) => (sides.get(count) ?? sidesAt(stores, count))[what];
    const curves: Curve[] = [
      { stores, variant: "turn", sideAt: sideAt("turn") },
      {
        stores,
        variant: "heap",
        unit: "KB/agent",
        points: counts.filter((count) => count >= LEAST_FOR_HEAP),
        sideAt: sideAt("heap"),
      },
    ];
    return growthPairs("agents", counts, curves);
  });
}

/** One process per round yields both figures: the side that is sampled first in a round starts it. */
function sidesAt(kind: (typeof storeKinds)[number], count: number): Readonly<Record<"turn" | "heap", Side>> {
  const runs: Promise<AliveFigures>[] = [];
  const side = (what: string, valueOf: (figures: AliveFigures) => number): Side => ({
    name: `${what} with ${count} alive, ${kind}`,
    prepare: async () => {
      let round = 0;
      const sample = async (): Promise<Sample> => {
        const figures = await (runs[round] ??= figuresOf(kind, count));
        round += 1;
        return { value: valueOf(figures), processorMs: figures.turnProcessorMs };
      };
      return { sample, close: async () => undefined };
    },
  });
  return { turn: side("a turn", ({ turnMs }) => turnMs), heap: side("heap", ({ heapKilobytes }) => heapKilobytes) };
}

async function figuresOf(kind: string, count: number): Promise<AliveFigures> {
  const { stdout } = await run(process.execPath, ["--expose-gc", program, kind, String(count)]);
  return JSON.parse(stdout) as AliveFigures;
}
