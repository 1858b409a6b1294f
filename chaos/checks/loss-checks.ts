import { rootOf } from "../../src/state/index.ts";
import type { AgentEvidence, TreeEvidence } from "../../src/testing/simulation/evidence.ts";
import type { Attempt } from "../ledger/effect-ledger.ts";
import type { WitnessLine } from "../witness.ts";
import { ownersOfLife } from "./witness-checks.ts";

type Commit = Extract<WitnessLine, { type: "committed" }>;

/** The stores' answers to one process, and the process's standard error. */
export interface ToldProcess {
  readonly lines: readonly WitnessLine[];
  readonly stderr: string;
}

/** A commit that was acknowledged in one life of Redis and is missing in the next. */
export interface LostCommit {
  readonly process: ToldProcess;
  readonly commit: Commit;
  readonly life: number;
}

/**
 * For a Redis that was killed and restarted without its last writes: the acknowledged commits that are missing in the
 * journals or had to be repeated. `restarts`: when Redis was restarted, by the clock of the witnesses.
 */
export function lostCommits(
  agents: readonly AgentEvidence[],
  processes: readonly ToldProcess[],
  restarts: readonly number[],
): LostCommit[] {
  const known = new Map(agents.map(({ agentId, entries }) => [agentId, entries]));
  const commits = processes.flatMap((process) =>
    process.lines.flatMap((line) =>
      line.type === "committed" ? [{ process, commit: line, life: lifeOf(line, restarts) }] : [],
    ),
  );
  /** The last life in which an entry was acknowledged. */
  const lastLives = new Map<string, number>();
  for (const { commit, life } of commits) {
    for (const place of placesOf(commit)) lastLives.set(place, Math.max(life, lastLives.get(place) ?? 0));
  }
  return commits.filter(({ commit, life }) => {
    const entries = known.get(commit.agentId) ?? [];
    const isStored = seqsOf(commit).every((seq) => entries[seq - 1]?.epoch === commit.epoch);
    return !isStored || placesOf(commit).some((place) => (lastLives.get(place) ?? life) > life);
  });
}

/**
 * The invariants despite losses: entries are lost only when Redis dies, each process that notices a loss reports it, and
 * within one life of Redis every entry has one owner and one position (F5, `everysec`).
 */
export function lossViolations(
  lost: readonly LostCommit[],
  processes: readonly ToldProcess[],
  restarts: readonly number[],
): string[] {
  const untold = lost.filter(({ process, commit }) => !isTold(process, commit));
  const causeless = lost.filter(({ life }) => life === restarts.length);
  const lives = Map.groupBy(
    processes.flatMap(({ lines }) => lines.filter((line) => isOfOneLife(line, restarts))),
    (line) => lifeOf(line, restarts),
  );
  return [
    ...[...new Set(untold.map(({ commit }) => commit.agentId))].map(
      (agentId) => `${agentId}: a process had seen lost entries of it and did not report the loss`,
    ),
    ...causeless.map(({ commit }) => `${commit.agentId}: seq ${commit.first} was lost, and Redis had not died`),
    ...[...lives.values()].flatMap((lines) => ownersOfLife(lines)),
  ];
}

/** Every effect at a keyed receiver belongs to a call in the journal, so none was repeated under another key. */
export function keyedViolations({ rootAgentId, agents }: TreeEvidence, attempts: readonly Attempt[]): string[] {
  const settled = new Set(
    agents.flatMap(({ entries }) => entries.flatMap((entry) => (entry.type === "tool.settled" ? [entry.callId] : []))),
  );
  const own = attempts.filter(({ key }) => key.startsWith(rootAgentId) && /^[#~]/.test(key.slice(rootAgentId.length)));
  const effects = Map.groupBy(
    own.filter(({ effect, applied }) => effect === "keyed" && applied),
    ({ key }) => key,
  );
  return [...effects].flatMap(([key, done]) => [
    ...(done.length > 1 ? [`${key}: a keyed call had ${done.length} effects`] : []),
    ...(settled.has(key) ? [] : [`${key}: a keyed effect without a call in the journal`]),
  ]);
}

/** Number of Redis restarts before the request. */
function lifeOf({ sentAt }: WitnessLine, restarts: readonly number[]): number {
  return restarts.filter((restart) => restart <= sentAt).length;
}

/** `undefined` for a request that was sent in one life and answered in the next. */
function isOfOneLife({ at, sentAt }: WitnessLine, restarts: readonly number[]): boolean {
  return !restarts.some((restart) => restart > sentAt && restart <= at);
}

function seqsOf({ first, last }: Commit): number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
}

function placesOf(commit: Commit): string[] {
  return seqsOf(commit).map((seq) => `${commit.agentId} ${seq}`);
}

/** If many trees lose entries at once, the warning on stderr names only some; a listener gets an event for each. */
function isTold({ lines, stderr }: ToldProcess, { agentId, sentAt }: Commit): boolean {
  const root = rootOf(agentId);
  return (
    lines.some((line) => line.type === "rolledBack" && line.agentId === root && line.at >= sentAt) ||
    stderr.includes(`lost entries of agent ${agentId} `)
  );
}
