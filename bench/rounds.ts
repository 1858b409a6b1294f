import type { ModelProcess } from "./model-process.ts";
import type { Pair, Plan, Sample, Side, Station } from "./study.ts";

/** The samples of one side, one per round. */
export type Samples = ReadonlyMap<Side, readonly Sample[]>;

/**
 * Runs the sides alternately: each round has one sample of each side, and the next round starts with another side, so that
 * other load on the machine affects all sides equally. Rethrows errors of samples. Always closes all stations.
 */
export async function interleave(
  sides: readonly Side[],
  { plan, server }: { readonly plan: Plan; readonly server: ModelProcess },
): Promise<Samples> {
  const stations: { readonly station: Station; readonly samples: Sample[] }[] = [];
  const bySide = new Map<Side, Sample[]>();
  try {
    for (const side of sides) {
      const samples: Sample[] = [];
      bySide.set(side, samples);
      stations.push({ station: await side.prepare(server), samples });
    }
    for (let round = -plan.warmUps; round < plan.rounds; round += 1) {
      for (let place = 0; place < stations.length; place += 1) {
        const next = stations[(place + round + plan.warmUps) % stations.length];
        const sample = await next?.station.sample();
        if (round >= 0 && sample !== undefined) next?.samples.push(sample);
      }
    }
  } finally {
    await Promise.all(stations.map(({ station }) => station.close()));
  }
  return bySide;
}

/** The distinct sides of the pairs, in order of appearance. */
export function sidesOf(pairs: readonly Pair[]): readonly Side[] {
  return [...new Set(pairs.flatMap(({ bare, ours }) => [bare, ours]))];
}
