import { setTimeout as delay } from "node:timers/promises";
import type { Weight } from "../serving/server-process.ts";
import { startServerProcess } from "../serving/server.ts";
import { type ServerKind, Wire } from "../serving/wire.ts";
import type { Pair, Sample, Side, Study } from "../study.ts";

const STREAMS = 1_000;
const QUIET_MS = { quick: 30_000, full: 60_000 };
const MINUTE_MS = 60_000;
/** Opened before the first measurement, so that all code for a stream is loaded and compiled. */
const FIRST_STREAMS = 50;
const OPENED_AT_ONCE = 20;
const SETTLE_MS = 1_000;

const kinds = ["memory", "sqlite", "redis"] as const;

/** Idle open streams, each of another tree, against Hono streams that only send keep-alive comments. */
export const idleStreams: Study = {
  name: "idle-streams",
  title: "memory of 1,000 open streams (300 with --quick) in which nothing happens, against as many of Hono",
  unit: "KB/stream",
  plan: (quick) => ({ warmUps: 0, rounds: quick ? 1 : 5 }),
  pairs: async (quick) => {
    const sidesOf = (kind: ServerKind) => streamSides(kind, { streams: quick ? 300 : STREAMS });
    const bare = sidesOf("bare");
    return kinds.flatMap((stores): Pair[] => {
      const ours = sidesOf(stores);
      return (["heap", "rss"] as const).map((variant) => ({
        stores,
        variant,
        ours: ours[variant],
        bare: bare[variant],
      }));
    });
  },
};

/** The server's work per minute for idle streams: keep-alive comments and polling. */
export const idleStreamsMinute: Study = {
  name: "idle-streams-minute",
  title: "processor time in a minute for 1,000 open streams in which nothing happens, against as many of Hono",
  unit: "ms/minute",
  plan: (quick) => ({ warmUps: 0, rounds: quick ? 1 : 3 }),
  pairs: async (quick) => {
    const quietMs = QUIET_MS[quick ? "quick" : "full"];
    const bare = minuteSide("bare", { streams: STREAMS, quietMs });
    return kinds.map((stores) => ({ stores, ours: minuteSide(stores, { streams: STREAMS, quietMs }), bare }));
  },
};

interface StreamsOptions {
  readonly streams: number;
  /** Observation time without activity, once without the streams and once with them. */
  readonly quietMs: number;
}

/**
 * One process per round yields both figures: the side that is sampled first in a round starts it. `processorMs` is the time
 * to open a stream.
 */
function streamSides(kind: ServerKind, { streams }: Pick<StreamsOptions, "streams">) {
  const runs: Promise<StreamFigures>[] = [];
  const side = (variant: string, valueOf: (figures: StreamFigures) => number): Side => ({
    name: `${kind}, ${variant}`,
    prepare: async () => {
      let round = 0;
      const sample = async (): Promise<Sample> => {
        const figures = await (runs[round] ??= figuresOf(kind, { streams, quietMs: 0 }));
        round += 1;
        return { value: valueOf(figures), processorMs: figures.openingMs };
      };
      return { sample, close: async () => undefined };
    },
  });
  return { heap: side("heap", ({ heapKb }) => heapKb), rss: side("rss", ({ rssKb }) => rssKb) };
}

function minuteSide(kind: ServerKind, options: StreamsOptions): Side {
  const sample = async (): Promise<Sample> => {
    const { minuteMs } = await figuresOf(kind, options);
    return { value: minuteMs, processorMs: minuteMs };
  };
  return { name: `${kind}, a minute`, prepare: async () => ({ sample, close: async () => undefined }) };
}

interface StreamFigures {
  readonly heapKb: number;
  readonly rssKb: number;
  /** The server's processor time to open one. */
  readonly openingMs: number;
  /** The server's processor time for all streams per minute. */
  readonly minuteMs: number;
}

async function figuresOf(kind: ServerKind, { streams, quietMs }: StreamsOptions): Promise<StreamFigures> {
  const server = await startServerProcess(kind);
  const weigh = (): Promise<Weight> => server.ask({ ask: "weigh" });
  const wires: Wire[] = [];
  try {
    const paths = await server.ask({ ask: "open", agents: streams + FIRST_STREAMS });
    wires.push(...(await openAll(server.url, paths.slice(0, FIRST_STREAMS))));
    const [idle, before] = [await quietly(quietMs, weigh), await weigh()];
    wires.push(...(await openAll(server.url, paths.slice(FIRST_STREAMS))));
    const after = await weigh();
    const busy = await quietly(quietMs, weigh);
    const each = (of: (weight: Weight) => number): number => (of(after) - of(before)) / streams;
    return {
      heapKb: each(({ heapBytes }) => heapBytes) / 1_000,
      rssKb: each(({ rssBytes }) => rssBytes) / 1_000,
      openingMs: each(({ processorMs }) => processorMs),
      minuteMs: ((busy - idle) / Math.max(1, quietMs)) * MINUTE_MS,
    };
  } finally {
    for (const wire of wires) wire.close();
    await server.stop();
  }
}

/** Processor time of the server while it gets no requests. */
async function quietly(ms: number, weigh: () => Promise<Weight>): Promise<number> {
  const before = await weigh();
  await delay(ms);
  return (await weigh()).processorMs - before.processorMs;
}

async function openAll(url: string, paths: readonly string[]): Promise<Wire[]> {
  const wires: Wire[] = [];
  for (let from = 0; from < paths.length; from += OPENED_AT_ONCE) {
    const opening = paths.slice(from, from + OPENED_AT_ONCE).map(async (path) => {
      const wire = new Wire(url);
      wires.push(wire);
      await wire.stream(path);
    });
    await Promise.all(opening);
  }
  await delay(SETTLE_MS);
  return wires;
}

/** The server's cost of clients that never read while their agent writes, against no clients. */
export const unreadStreams: Study = {
  name: "unread-streams",
  title: "growth of the server while turns write 40 MB, with 16 clients that never read, against none",
  unit: "MB",
  plan: (quick) => ({ warmUps: 0, rounds: quick ? 3 : 7 }),
  pairs: async () => {
    const writing = { turns: 20, stallMs: 10_000 };
    const [ours, bare] = [unreadSide({ ...writing, clients: 16 }), unreadSide({ ...writing, clients: 0 })];
    return [{ stores: "sqlite", ours, bare }];
  },
};

interface UnreadOptions {
  readonly clients: number;
  readonly turns: number;
  /** Time after which a client that does not read is disconnected: later than the end of all writes. */
  readonly stallMs: number;
}

/** Throws unless the server has disconnected them in the end. */
export function unreadSide({ clients, turns, stallMs }: UnreadOptions): Side {
  const sample = async (): Promise<Sample> => {
    const server = await startServerProcess("sqlite", { stallMs });
    const wires = Array.from({ length: clients }, () => new Wire(server.url));
    try {
      const [path = ""] = await server.ask({ ask: "open", agents: 1 });
      // Load and compile all code for a stream and a turn first.
      const reader = new Wire(server.url);
      await reader.stream(path);
      reader.close();
      await server.ask({ ask: "write", path, turns: 2 });
      for (const wire of wires) wire.ignore(path);
      const { rssBytes, processorMs } = await server.ask({ ask: "write", path, turns });
      return { value: rssBytes / 1_000_000, processorMs };
    } finally {
      for (const wire of wires) wire.close();
      await server.stop();
    }
  };
  return { name: `${clients} unread`, prepare: async () => ({ sample, close: async () => undefined }) };
}
