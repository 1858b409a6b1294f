import { trafficFigures, trafficSides } from "../ours/redis-traffic.ts";
import type { Study } from "../study.ts";

const LATE = 1000;
const QUICK_LATE = 100;

/** Commands and bytes per step of a late turn, against an agent's first turn. */
export const redisTraffic: Study = {
  name: "redis-traffic",
  title: `what a step of turn ${LATE} (${QUICK_LATE} with --quick) sends to Redis, against a step of turn 1`,
  unit: "per step",
  plan: () => ({ warmUps: 1, rounds: 7 }),
  pairs: async (quick) => {
    const late = trafficSides({ turnsBefore: quick ? QUICK_LATE : LATE });
    const first = trafficSides({ turnsBefore: 0 });
    return trafficFigures.map((variant) => ({ stores: "redis", variant, ours: late[variant], bare: first[variant] }));
  },
};
