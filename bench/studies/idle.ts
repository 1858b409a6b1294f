import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { IdleFigures, IdleKind } from "../idle-process.ts";
import type { Pair, Sample, Side, Study } from "../study.ts";

const run = promisify(execFile);
const program = fileURLToPath(new URL("../idle-process.ts", import.meta.url));

const variants = ["heap", "rss", "heap after shutdown"] as const;
type Variant = (typeof variants)[number];

/** The cost of an agent that is created, started and idle. Each sample runs in a new process. */
export const idle = idleStudy("idle-10000", { takesTurn: false, at: "at rest" });
/** The same for agents after a turn with one tool call. */
export const idleAfterTurn = idleStudy("idle-turn-10000", { takesTurn: true, at: "at rest after a turn with a tool" });

function idleStudy(name: string, { takesTurn, at }: { readonly takesTurn: boolean; readonly at: string }): Study {
  return {
    name,
    title: `memory of 10,000 agents ${at} (2,000 with --quick), against as many message arrays of the bare loop`,
    unit: "KB/agent",
    plan: (quick) => ({ warmUps: 0, rounds: quick ? 1 : 5 }),
    pairs: async (quick) => {
      const sidesOf = (kind: IdleKind) => idleSides(kind, quick ? 2000 : 10_000, takesTurn);
      const bare = sidesOf("bare");
      const stores = (["memory", "sqlite"] as const).map((kind) => ({ kind, sides: sidesOf(kind) }));
      return variants.flatMap((variant) =>
        stores.map(({ kind, sides }): Pair => ({ stores: kind, variant, ours: sides[variant], bare: bare[variant] })),
      );
    },
  };
}

/** One process per round yields all three figures: the side that is sampled first in a round starts it. */
export function idleSides(kind: IdleKind, count: number, takesTurn = false): Readonly<Record<Variant, Side>> {
  const runs: Promise<IdleFigures>[] = [];
  const side = (variant: Variant, valueOf: (figures: IdleFigures) => number): Side => ({
    name: `${kind}, ${variant}`,
    prepare: async ({ baseUrl }) => {
      let round = 0;
      const sample = async (): Promise<Sample> => {
        const figures = await (runs[round] ??= figuresOf(kind, count, takesTurn ? [baseUrl] : []));
        round += 1;
        return { value: valueOf(figures), processorMs: figures.processorMs };
      };
      return { sample, close: async () => undefined };
    },
  });
  return {
    heap: side("heap", ({ heapKilobytes }) => heapKilobytes),
    rss: side("rss", ({ rssKilobytes }) => rssKilobytes),
    "heap after shutdown": side("heap after shutdown", ({ leftKilobytes }) => leftKilobytes),
  };
}

async function figuresOf(kind: IdleKind, count: number, modelUrl: readonly string[]): Promise<IdleFigures> {
  const { stdout } = await run(process.execPath, ["--expose-gc", program, kind, String(count), ...modelUrl]);
  return JSON.parse(stdout) as IdleFigures;
}
