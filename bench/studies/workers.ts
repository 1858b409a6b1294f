import type { Study } from "../study.ts";
import { bareJobsSide, localSide, workedSide } from "../workers/stations.ts";

/** Turns of one and of ten model calls, 64 at a time, over two workers, against BullMQ jobs that do nothing. */
export const workers: Study = {
  name: "workers",
  title: "turns/s through Redis and BullMQ over two workers, against bare BullMQ jobs that do nothing",
  unit: "turns/s",
  plan: (quick) => (quick ? { warmUps: 1, rounds: 5 } : { warmUps: 2, rounds: 15 }),
  pairs: async (quick) => {
    const load = { count: quick ? 150 : 400, atOnce: 64, as: "rate" } as const;
    const bare = bareJobsSide({ ...load, count: load.count * 4 });
    return [
      { stores: "redis", variant: "one call", ours: workedSide("once", load), bare },
      { stores: "redis", variant: "ten calls", ours: workedSide("ten", load), bare },
    ];
  },
};

/** One turn at a time through a worker, against the same turn in the requesting process. */
export const workersLatency: Study = {
  name: "workers-latency",
  title: "one turn at a time over two workers, against the same in one process, both on Redis",
  unit: "ms/turn",
  plan: (quick) => (quick ? { warmUps: 1, rounds: 5 } : { warmUps: 2, rounds: 15 }),
  pairs: async (quick) => {
    const load = { count: quick ? 10 : 30, atOnce: 1, as: "time" } as const;
    return (["once", "ten"] as const).map((agent) => ({
      stores: "redis",
      variant: agent === "once" ? "one call" : "ten calls",
      ours: workedSide(agent, load),
      bare: localSide(agent, load),
    }));
  },
};
