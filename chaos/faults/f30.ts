import { tmpdir } from "node:os";
import { join } from "node:path";
import { withGround } from "../ground.ts";
import { jsonLinesOf, runProcess, startServer } from "../processes.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import type { SoakLine, SoakOrders } from "../soak/worker.ts";
import { growingHandles, type Sample, slopeOf } from "../soak/trend.ts";

/** Batches of 500 turns, 125 of them with a child. */
const BATCHES = 40;
const SHORT_BATCHES = 4;
const BATCH = { agents: 25, turns: 20 };
const MINUTE_MS = 60_000;
/** A batch that takes longer than this is stuck. */
const STUCK_MS = 180_000;
/** Most growth of the heap in 1,000 turns, in megabytes after garbage collection. */
const STEEPEST = 1;
/** Most growth with fewer than `CACHES_FULL` turns, while fixed-size caches of the stores are still filling. */
const STEEPEST_AT_FIRST = 5;
const CACHES_FULL = 12_000;

/** Runs turns continuously in one process. A round is a batch of 500 turns. */
export const f30: ChaosScenario = {
  name: "F30",
  title: "soak: turns with tools, children, people and aborts on and on; memory and handles stay where they are",
  on: ["sqlite", "redis"],
  run: (options) => runSoak(options, BATCH),
};

export async function runSoak(
  options: ChaosOptions,
  batch: { readonly agents: number; readonly turns: number },
): Promise<ChaosReport> {
  const { seed, short, rounds, minutes } = options;
  const batches = rounds ?? (short ? SHORT_BATCHES : BATCHES);
  const forMs = minutes === undefined ? null : minutes * MINUTE_MS;
  const model = await startServer("soak/server.ts", []);
  try {
    return await withGround(options, async (ground) => {
      const orders = { store: ground.locationOf("soak"), model: model.address, ...batch };
      const limitMs = (forMs ?? batches * STUCK_MS) + STUCK_MS;
      const { lines, faults } = await soak(
        { ...orders, batches: forMs === null ? batches : null, forMs },
        options,
        limitMs,
      );
      const samples = lines.flatMap((line) => (line.type === "sample" ? [line] : []));
      const last = samples.at(-1);
      const turns = last?.turns ?? 0;
      const heapSlope = slopeOf(samples, ({ heapBytes }) => heapBytes);
      const violations = [
        ...faults,
        ...lines.flatMap((line) => (line.type === "fault" ? [line.text] : [])),
        ...(heapSlope !== null && heapSlope >= (turns >= CACHES_FULL ? STEEPEST : STEEPEST_AT_FIRST)
          ? [`the heap grows by ${heapSlope} MB in 1,000 turns`]
          : []),
        ...growingHandles(samples).map((text) => `handles grow: ${text}`),
      ];
      return reportOf(
        { name: f30.name, seed },
        { operations: turns, succeeded: turns - lines.filter(({ type }) => type === "fault").length, violations },
        {
          children: last?.children ?? 0,
          heapSlope,
          rssSlope: slopeOf(samples, ({ rssBytes }) => rssBytes),
          heapMegabytes: megabytes(samples, ({ heapBytes }) => heapBytes),
          rssMegabytes: megabytes(samples, ({ rssBytes }) => rssBytes),
          handles: last?.handles ?? {},
        },
      );
    });
  } finally {
    await model.stop();
  }
}

async function soak(orders: SoakOrders, { progress }: ChaosOptions, limitMs: number) {
  const end = await runProcess("soak/worker.ts", [JSON.stringify(orders)], {
    environment: { NODE_COMPILE_CACHE: join(tmpdir(), "troupe-chaos-compiled") },
    limitMs,
    onLine: (text) => {
      const line = JSON.parse(text) as SoakLine;
      if (line.type === "sample")
        progress(`${line.turns} turns: ${Math.round(line.heapBytes / 100_000) / 10} MB of heap`);
    },
  });
  const faults: string[] = [];
  if (end.timedOut) faults.push(`it had not ended after ${limitMs / 1_000} s`);
  else if (end.exitCode !== 0) faults.push(`it ended with exit code ${end.exitCode}, signal ${end.signal}`);
  if (end.stderr !== "") faults.push(`it complained: ${end.stderr.slice(0, 600)}`);
  return { lines: jsonLinesOf<SoakLine>(end.stdout), faults };
}

/** Figures of the first, the middle and the last sample. */
function megabytes(samples: readonly Sample[], of: (sample: Sample) => number): readonly number[] {
  const chosen = [samples[0], samples[Math.floor(samples.length / 2)], samples.at(-1)];
  return chosen.flatMap((sample) => (sample ? [Math.round(of(sample) / 100_000) / 10] : []));
}
