import type { Runtime } from "../../src/index.ts";
import { createInspector, Feed, serveFeed } from "../../src/inspector/index.ts";
import { largeTurn } from "../ours/large-team.ts";
import { startPageReading } from "../ours/page-reading.ts";
import { type Pair, type Side, type Study, timed } from "../study.ts";

/** A listener of the overview that does nothing. */
function listening({ overview }: Runtime): () => void {
  const subscription = overview.subscribe(() => {});
  return () => subscription.unsubscribe();
}

const variants = {
  /** `runtime.overview` is read and has a listener. */
  overview: async (children: number) => {
    await largeTurn({}, { children, watch: listening });
  },
  /** An inspector with the charts of all live agents. */
  charts: async (children: number) => {
    const inspector = createInspector();
    await largeTurn({ onInspect: inspector.onInspect }, { children });
    if (inspector.frames().length === 0) throw new Error("watched: there are no charts.");
  },
  /** A program that reads all agents at every change. */
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

/**
 * A turn of a lead with many concurrent children, in memory, watched by a client, against the same turn without a client.
 */
export const watched: Study = {
  name: "watched",
  title: "a lead with 2,000 children of 3 steps each, watched against not watched",
  unit: "ms/turn",
  plan: (quick) => (quick ? { warmUps: 1, rounds: 3 } : { warmUps: 1, rounds: 7 }),
  pairs: async (quick) => watchedPairs(quick ? 500 : 2_000),
};

export function watchedPairs(children: number): readonly Pair[] {
  const bare = sideOf("not watched", () => largeTurn({}, { children }));
  const sides = Object.entries(variants).map(
    ([variant, turn]) => [variant, sideOf(`watched, ${variant}`, () => turn(children))] as const,
  );
  return [...sides, ["page open", pageOpen(children)] as const].map(
    ([variant, ours]): Pair => ({ stores: "memory", variant, ours, bare }),
  );
}

/** An open page: its reader, a separate process, reads everything over the WebSocket. Its processor time is not counted. */
function pageOpen(children: number): Side {
  const sample = async () => {
    const feed = new Feed();
    const server = await serveFeed(feed);
    const reading = await startPageReading(server.origin, server.tokens.watch, "desk");
    const watch = (runtime: Runtime) => {
      feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
      // The reader continues after the turn.
      return () => undefined;
    };
    const { elapsedMs, processorMs } = await timed(() => largeTurn({}, { children, watch }));
    await reading.begun;
    const { entries, doubles } = await reading.end();
    await server.close();
    if (entries === 0 || doubles > 0) throw new Error(`watched: the page got ${entries} entries.`);
    return { value: elapsedMs, processorMs };
  };
  return { name: "watched, page open", prepare: async () => ({ sample, close: async () => undefined }) };
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
