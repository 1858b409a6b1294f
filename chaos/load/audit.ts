import { witnessViolations } from "../checks/witness-checks.ts";
import { evidenceOf } from "../evidence.ts";
import { auditEnd, type Stage } from "../faults/f2-round.ts";
import type { WitnessLine } from "../witness.ts";
import type { LoadEnd } from "./run-load.ts";

/** What two processes have done under load, and what is wrong with it. */
export interface Load {
  readonly turns: number;
  readonly completed: number;
  readonly acknowledged: number;
  /** Commands that the stores refused as ones to be tried again, whoever tried them again. */
  readonly refused: number;
  /** How often whoever called the runtime had to try again. */
  readonly again: number;
  readonly peakMegabytes: number;
  readonly violations: readonly string[];
}

export interface LoadFacts {
  readonly place: string;
  readonly servers: Pick<Stage, "ledger" | "model">;
  readonly ends: readonly LoadEnd[];
  readonly lines: readonly WitnessLine[];
  readonly mayRefuse: boolean;
}

/** What a process may say while its stores are away. */
const expectedWords = /the heartbeat could not be written: StoreUnavailable|: StoreUnavailable|node --trace-warnings/;

export async function auditLoad({ place, servers, ends, lines, mayRefuse }: LoadFacts): Promise<Load> {
  const trees = await evidenceOf(place);
  const agents = trees.flatMap((tree) => tree.agents);
  const said = ends.flatMap((end) => end.lines);
  const turns = said.flatMap((line) => (line.type === "begun" ? [line.agentId] : []));
  const completed = said.flatMap((line) => (line.type === "turn" && line.status === "completed" ? [line.agentId] : []));
  const again = said.filter(({ type }) => type === "again").length;
  const refused = lines.filter(({ type }) => type === "unavailable").length;
  const stored = new Set(trees.map(({ rootAgentId }) => rootAgentId));
  const violations = [
    ...ends.flatMap((end) => wordsOf(end, mayRefuse)),
    ...trees.flatMap((tree) => auditEnd(servers, tree)),
    ...witnessViolations(agents, lines),
    ...completed.filter((agentId) => !stored.has(agentId)).map((agentId) => `${agentId}: it has ended, and is gone`),
    ...(mayRefuse || refused + again === 0 ? [] : [`${refused} commands were refused, ${again} calls tried again`]),
  ];
  const peaks = said.flatMap((line) => (line.type === "over" ? [line.peakMegabytes] : []));
  return {
    turns: turns.length,
    completed: completed.length,
    refused,
    again,
    violations,
    acknowledged: lines.filter(({ type }) => type === "committed").length,
    peakMegabytes: Math.max(0, ...peaks),
  };
}

/** Whether it came to its end, and what it complained of meanwhile. */
function wordsOf({ timedOut, exitCode, signal, stdout, stderr }: LoadEnd, mayRefuse: boolean): string[] {
  const complaints = stderr
    .split("\n")
    .filter((line) => line.trim() !== "" && !(mayRefuse && expectedWords.test(line)));
  const faults = complaints.length > 0 ? [`a process complained: ${complaints.join(" ").slice(0, 600)}`] : [];
  if (timedOut) faults.push(`a process had not ended after its time: ${stdout.slice(-300)}`);
  else if (exitCode !== 0) faults.push(`a process ended with exit code ${exitCode}, signal ${signal}`);
  return faults;
}
