import type { Contender } from "../contender.ts";
import { studyOf } from "../conversations.ts";
import { type Scenario, scenarios } from "../scenario.ts";
import type { Study } from "../study.ts";

export const studyGroups = ["scenarios", "growth"] as const;
export type StudyGroup = (typeof studyGroups)[number];

/** A study that is loaded only when it is selected; `--self` of the bare loop needs no runtime. */
export interface ListedStudy {
  readonly name: string;
  /** Name by which several studies can be selected together. */
  readonly group?: StudyGroup;
  /** The scenario, if other libraries can take part. */
  readonly scenario?: Scenario;
  readonly load: (peers?: readonly Contender[]) => Promise<Study>;
  /** Returns why the study cannot run on this machine; `undefined` if it can. Default: it always can. */
  readonly lacks?: () => Promise<string | undefined>;
}

const lacksPostgres = async () => (await import("../ours/open-stores.ts")).lacksPostgres();
const lacksRedis = async () => (await import("../ours/open-stores.ts")).lacksRedis();

const agents = { full: 8, quick: 4 };

/** All studies, in report order. */
export const studies: readonly ListedStudy[] = [
  ...scenarios.map(
    (scenario): ListedStudy => ({
      name: scenario.name,
      group: "scenarios",
      scenario,
      load: async (peers) => studyOf(scenario, peers),
    }),
  ),
  { name: "persisted", load: async () => (await import("./persisted.ts")).persisted },
  { name: "limits-on", load: async () => (await import("./limits-on.ts")).limitsOn },
  { name: "step-counts", load: async () => (await import("./step-counts.ts")).stepCounts },
  { name: "reserve-settle", load: async () => (await import("./reserve-settle.ts")).reserveSettle },
  {
    name: "turn-200",
    load: async () =>
      (await import("./late-turn.ts")).lateTurn({ turn: 200, agents, turnsPerSample: 2, withFullHistory: true }),
  },
  {
    name: "turn-5000",
    load: async () =>
      (await import("./late-turn.ts")).lateTurn({
        turn: 5000,
        agents: { full: 2, quick: 1 },
        turnsPerSample: 10,
        withFullHistory: false,
      }),
  },
  {
    name: "redis-turn",
    load: async () => (await import("./turns-on-servers.ts")).redisTurn,
    lacks: lacksRedis,
  },
  {
    name: "postgres-turn",
    load: async () => (await import("./turns-on-servers.ts")).postgresTurn,
    lacks: lacksPostgres,
  },
  {
    name: "redis-traffic",
    load: async () => (await import("./redis-traffic.ts")).redisTraffic,
    lacks: lacksRedis,
  },
  {
    name: "redis-reserve-settle",
    load: async () => (await import("./redis-reserve-settle.ts")).redisReserveSettle,
    lacks: lacksRedis,
  },
  { name: "workers", load: async () => (await import("./workers.ts")).workers, lacks: lacksRedis },
  { name: "workers-latency", load: async () => (await import("./workers.ts")).workersLatency, lacks: lacksRedis },
  { name: "served-turn", load: async () => (await import("./served.ts")).servedTurn },
  { name: "serving", load: async () => (await import("./serving.ts")).serving },
  { name: "served-requests", load: async () => (await import("./served.ts")).servedRequests },
  { name: "idle-streams", load: async () => (await import("./idle-streams.ts")).idleStreams, lacks: lacksRedis },
  {
    name: "idle-streams-minute",
    load: async () => (await import("./idle-streams.ts")).idleStreamsMinute,
    lacks: lacksRedis,
  },
  { name: "unread-streams", load: async () => (await import("./idle-streams.ts")).unreadStreams },
  { name: "watched", load: async () => (await import("./watched.ts")).watched },
  { name: "show", load: async () => (await import("./show.ts")).show },
  { name: "growth-turns", group: "growth", load: async () => (await import("./growth-turns.ts")).growthTurns },
  { name: "growth-agents", group: "growth", load: async () => (await import("./growth-agents.ts")).growthAgents },
  { name: "growth-children", group: "growth", load: async () => (await import("./growth-children.ts")).growthChildren },
  { name: "growth-tools", group: "growth", load: async () => (await import("./growth-tools.ts")).growthTools },
  { name: "idle-10000", load: async () => (await import("./idle.ts")).idle },
  { name: "idle-turn-10000", load: async () => (await import("./idle.ts")).idleAfterTurn },
  { name: "cold-start", load: async () => (await import("./cold-start.ts")).coldStart },
];
