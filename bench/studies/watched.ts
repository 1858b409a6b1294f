import type { Runtime } from "../../src/index.ts";
import { createInspector } from "../../src/inspector/index.ts";
import { largeTurn } from "../ours/large-team.ts";
import { type Pair, type Side, type Study, timed } from "../study.ts";

/** Somebody who listens to the overview and does nothing. */
function listening({ overview }: Runtime): () => void {
  const subscription = overview.subscribe(() => {});
  return () => subscription.unsubscribe();
}

const variants = {
  /** `runtime.overview` is read, and somebody listens to it. */
  overview: async (children: number) => {
    await largeTurn({}, { children, watch: listening });
  },
  /** An inspector with the charts of all live agents. */
  charts: async (children: number) => {
    const inspector = createInspector();
    await largeTurn({ onInspect: inspector.onInspect }, { children });
    if (inspector.frames().length === 0) throw new Error("watched: there are no charts.");
  },
  /** A program that reads all agents whenever it is told of a change. */
  "whole state read": async (children: number) => {
    let seen = 0;
    await largeTurn(
      {},
      {
        children,
        watch: ({ overview }) => {
          const watching = overview.subscribe(({ context }) => {
            seen = Object.keys(context.agents).length;
          });
          return () => watching.unsubscribe();
        },
      },
    );
    if (seen === 0) throw new Error("watched: no agent was seen.");
  },
} as const;

/** A turn of a lead with many children at once, in memory, while somebody watches it, against the same turn without. */
export const watched: Study = {
  name: "watched",
  title: "a lead with 2,000 children of 3 steps each, watched against not watched",
  unit: "ms/turn",
  plan: (quick) => (quick ? { warmUps: 1, rounds: 3 } : { warmUps: 1, rounds: 7 }),
  pairs: async (quick) => watchedPairs(quick ? 500 : 2_000),
};

export function watchedPairs(children: number): readonly Pair[] {
  const bare = sideOf("not watched", () => largeTurn({}, { children }));
  return Object.entries(variants).map(
    ([variant, turn]): Pair => ({
      stores: "memory",
      variant,
      ours: sideOf(`watched, ${variant}`, () => turn(children)),
      bare,
    }),
  );
}

function sideOf(name: string, turn: () => Promise<void>): Side {
  return {
    name,
    prepare: async () => ({
      sample: async () => {
        const { elapsedMs, processorMs } = await timed(turn);
        return { value: elapsedMs, processorMs };
      },
      close: async () => undefined,
    }),
  };
}
