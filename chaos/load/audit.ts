import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { journalViolations } from "../checks/journal-checks.ts";
import { keyedViolations, lossViolations, lostCommits } from "../checks/loss-checks.ts";
import { spawnViolations } from "../checks/prefix-checks.ts";
import { restViolations } from "../checks/rest-checks.ts";
import { witnessViolations } from "../checks/witness-checks.ts";
import { evidenceOf, type TreeEvidence } from "../evidence.ts";
import { auditEnd, type Stage } from "../faults/f2-round.ts";
import type { RunEnd } from "../processes.ts";
import type { WitnessLine } from "../witness.ts";
import type { LoadLine } from "./worker.ts";

/** What two processes have done under load, and what is wrong with it. */
export interface Load {
  readonly turns: number;
  readonly completed: number;
  readonly acknowledged: number;
  /** Commands that the stores refused as retryable, whether the stores, the runtime or the caller tried them again. */
  readonly refused: number;
  /** How often the caller of the runtime had to try again. */
  readonly again: number;
  /** Acknowledged commits that are gone. */
  readonly lost: number;
  readonly peakMegabytes: number;
  readonly violations: readonly string[];
}

/** A process that has ended, and what it wrote. */
export interface LoadEnd extends RunEnd {
  readonly lines: readonly LoadLine[];
}

export interface LoadFacts {
  /** Where the evidence is left, if anything is wrong. */
  readonly folder: string;
  readonly place: string;
  readonly servers: Pick<Stage, "ledger" | "model">;
  readonly processes: readonly { readonly end: LoadEnd; readonly lines: readonly WitnessLine[] }[];
  readonly mayRefuse: boolean;
  readonly mayLose: boolean;
  /** When Redis was started again, by `steadyNow`. */
  readonly restarts: readonly number[];
}

/** What a process may say while its stores are away. */
const expectedWords =
  /the heartbeat could not be written: StoreUnavailable|: StoreUnavailable|TROUPE_STORES_REFUSE|node --trace-warnings/;
/** What it may say, and has to, of those that forget. */
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
  /** Acknowledged commits that are gone, or had to be made again. */
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
      ...trees.flatMap((tree) => auditEnd(servers, tree)),
      ...witnessViolations(
        agents,
        processes.flatMap(({ lines }) => lines),
      ),
      ...gone.map((agentId) => `${agentId}: it has ended, and is gone`),
    ],
  };
}

/** Model calls and `once` calls whose commits are lost may be made again, because no process knows of them any more. */
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

/** Whether it came to its end, and what it complained of meanwhile. */
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
