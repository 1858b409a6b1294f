import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { journalViolations } from "../../src/testing/simulation/journal-checks.ts";
import { isAfterTakeover } from "../checks/effect-checks.ts";
import { keyedViolations, lossViolations, lostCommits } from "../checks/loss-checks.ts";
import { spawnViolations } from "../checks/prefix-checks.ts";
import { restViolations } from "../../src/testing/simulation/rest-checks.ts";
import { witnessViolations } from "../checks/witness-checks.ts";
import { type TreeEvidence } from "../../src/testing/simulation/evidence.ts";
import { evidenceOf } from "../evidence.ts";
import { auditEnd, type Stage } from "../faults/f2-round.ts";
import type { RunEnd } from "../processes.ts";
import type { WitnessLine } from "../witness.ts";
import type { LoadLine } from "./worker.ts";

/** The results of two processes under load, and their violations. */
export interface Load {
  readonly turns: number;
  readonly completed: number;
  readonly acknowledged: number;
  /** Commands that the stores refused as retryable, whether the stores, the runtime or the caller repeated them. */
  readonly refused: number;
  /** Number of retries by callers of the runtime. */
  readonly again: number;
  /** Acknowledged commits that are missing. */
  readonly lost: number;
  readonly peakMegabytes: number;
  readonly violations: readonly string[];
}

/** An exited process and its output. */
export interface LoadEnd extends RunEnd {
  readonly lines: readonly LoadLine[];
}

export interface LoadFacts {
  /** Folder for the evidence, if there are violations. */
  readonly folder: string;
  readonly place: string;
  readonly servers: Pick<Stage, "ledger" | "model">;
  readonly processes: readonly { readonly end: LoadEnd; readonly lines: readonly WitnessLine[] }[];
  readonly mayRefuse: boolean;
  readonly mayLose: boolean;
  /** Times of Redis restarts, by `steadyNow`. */
  readonly restarts: readonly number[];
}

/** Warnings allowed while the stores are unavailable. */
const expectedWords =
  /the heartbeat could not be written: StoreUnavailable|: StoreUnavailable|TROUPE_STORES_REFUSE|node --trace-warnings/;
/** Warnings allowed and required if the stores lost writes. */
const wordsOfLoss = /Redis does not sync every write|Redis has lost acknowledged writes|the stores have lost/;

export async function auditLoad(facts: LoadFacts): Promise<Load> {
  const { folder, place, processes, mayRefuse, mayLose } = facts;
  const trees = await evidenceOf(place);
  const lines = processes.flatMap((one) => one.lines);
  const said = processes.flatMap(({ end }) => end.lines);
  const turns = said.flatMap((line) => (line.type === "begun" ? [line.agentId] : []));
  const completed = said.flatMap((line) => (line.type === "turn" && line.status === "completed" ? [line.agentId] : []));
  const again = said.filter(({ type }) => type === "again").length;
  const refused = lines.filter(({ type }) => type === "unavailable").length;
  const { lost, violations } = mayLose ? auditLosses(facts, trees, turns) : auditKept(facts, trees, completed);
  if (violations.length > 0) writeFileSync(join(folder, "evidence.json"), JSON.stringify(trees, null, 1));
  const peaks = said.flatMap((line) => (line.type === "over" ? [line.peakMegabytes] : []));
  return {
    turns: turns.length,
    completed: completed.length,
    refused,
    again,
    lost,
    violations: [
      ...processes.flatMap(({ end }) => violationText(end, { mayRefuse, mayLose })),
      ...violations,
      ...(mayRefuse || refused + again === 0 ? [] : [`${refused} commands were refused, ${again} calls tried again`]),
    ],
    acknowledged: lines.filter(({ type }) => type === "committed").length,
    peakMegabytes: Math.max(0, ...peaks),
  };
}

interface Audit {
  /** Acknowledged commits that are missing or had to be repeated. */
  readonly lost: number;
  readonly violations: readonly string[];
}

function auditKept(
  { servers, processes }: LoadFacts,
  trees: readonly TreeEvidence[],
  completed: readonly string[],
): Audit {
  const agents = trees.flatMap((tree) => tree.agents);
  const stored = new Set(trees.map(({ rootAgentId }) => rootAgentId));
  const gone = completed.filter((agentId) => !stored.has(agentId));
  return {
    lost: 0,
    violations: [
      ...trees.flatMap((tree) => auditEnd(servers, tree, isAfterTakeover(tree.agents))),
      ...witnessViolations(
        agents,
        processes.flatMap(({ lines }) => lines),
      ),
      ...gone.map((agentId) => `${agentId}: it has ended, and is gone`),
    ],
  };
}

/** Model calls and `once` calls whose commits are lost may be repeated, because no process knows of them any more. */
function auditLosses(
  { servers, processes, restarts }: LoadFacts,
  trees: readonly TreeEvidence[],
  begun: readonly string[],
): Audit {
  const stored = new Set(trees.map(({ rootAgentId }) => rootAgentId));
  const agents = trees.flatMap((tree) => tree.agents);
  const attempts = servers.ledger.log.lines();
  const told = processes.map(({ end, lines }) => ({ lines, stderr: end.stderr }));
  const lost = lostCommits(agents, told, restarts);
  return {
    lost: lost.length,
    violations: [
      ...lossViolations(lost, told, restarts),
      ...begun.filter((agentId) => !stored.has(agentId)).map((agentId) => `${agentId}: it is in no list of agents`),
      ...agents.flatMap((agent) => journalViolations(agent)),
      ...trees.flatMap((tree) => [
        ...restViolations(tree),
        ...spawnViolations(tree),
        ...keyedViolations(tree, attempts),
      ]),
    ],
  };
}

/** Checks that a process exited normally and without unexpected warnings. */
function violationText(
  { timedOut, exitCode, signal, stdout, stderr }: LoadEnd,
  { mayRefuse, mayLose }: Pick<LoadFacts, "mayRefuse" | "mayLose">,
): string[] {
  const isExpected = (line: string): boolean =>
    (mayRefuse && expectedWords.test(line)) || (mayLose && wordsOfLoss.test(line));
  const complaints = stderr.split("\n").filter((line) => line.trim() !== "" && !isExpected(line));
  const faults = complaints.length > 0 ? [`a process complained: ${complaints.join(" ").slice(0, 600)}`] : [];
  if (timedOut) faults.push(`a process had not ended after its time: ${stdout.slice(-300)}`);
  else if (exitCode !== 0) faults.push(`a process ended with exit code ${exitCode}, signal ${signal}`);
  return faults;
}
