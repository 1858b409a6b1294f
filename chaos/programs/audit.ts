import type { Stores } from "../../src/index.ts";
import { DEFAULT_TENANT, type JournalRow } from "../../src/state/index.ts";
import { treeIn } from "../../src/testing/simulation/evidence.ts";
import { isGivenUp } from "./calm-model.ts";
import { entriesOf } from "./evidence-lines.ts";
import { faultsOf } from "./faults-of.ts";
import type { Program } from "./program.ts";
import type { WorldLine } from "./world.ts";

const ROWS = 100_000;

/** Programs that were played together, and the world's log of them. */
export interface Played {
  readonly stores: Stores;
  /** Programs by root agent id. */
  readonly programs: ReadonlyMap<string, Program>;
  readonly lines: readonly WorldLine[];
  readonly deaths: number;
  /** Whether workers ran their turns. */
  readonly isQueued: boolean;
}

/** The results of programs. */
export interface PlayedResult {
  readonly programs: number;
  /** Number of programs that finished and were not given up by their queue. */
  readonly succeeded: number;
  readonly failures: readonly Failure[];
  readonly agents: number;
  readonly turns: number;
  readonly calls: number;
  readonly deaths: number;
}

/** A program with violations. */
export interface Failure {
  readonly root: string;
  readonly program: Program;
  readonly faults: readonly string[];
}

/** Checks the stored data of programs against the rules. */
export async function audit({ stores, programs, lines, deaths, isQueued }: Played): Promise<PlayedResult> {
  const ofRoot = Map.groupBy(lines, ({ root }) => root);
  const failures: Failure[] = [];
  let [succeeded, agents, turns, calls] = [0, 0, 0, 0];
  for (const [root, program] of programs) {
    const own = ofRoot.get(root) ?? [];
    if (!own.some(({ type }) => type === "done")) {
      const complaints = own.flatMap((line) => (line.type === "fault" ? [line.text] : []));
      failures.push({ root, program, faults: [`never at rest: ${await stateOf(stores, root)}`, ...complaints] });
      continue;
    }
    const tree = await treeIn(stores, root);
    const rows: JournalRow[] = program.isWatched ? await stores.readTree(DEFAULT_TENANT, root, 0, ROWS) : [];
    const ended = { program, tree, rows, lines: own, died: deaths > 0 || isQueued, isQueued };
    const faults = faultsOf(ended);
    const ends = tree.agents.flatMap((agent) => entriesOf(agent, "turn.ended"));
    const isPlayed = !ends.some((end) => isGivenUp(ended, end));
    agents += tree.agents.length;
    turns += ends.length;
    calls += ends.reduce((sum, { toolCalls }) => sum + toolCalls, 0);
    if (faults.length > 0) failures.push({ root, program, faults });
    else if (isPlayed) succeeded += 1;
  }
  return { programs: programs.size, succeeded, failures, agents, turns, calls, deaths };
}

/** The unfinished work of a program, to help find the cause. */
async function stateOf(stores: Stores, rootAgentId: string): Promise<string> {
  const tree = await stores.listAgents({ tenant: DEFAULT_TENANT, rootAgentId });
  const states = await Promise.all(
    tree.map(async ({ agentId, status, openTurnId, queuedTurnIds, pause, abort }) => {
      const inbox = (await stores.inbox({ tenant: DEFAULT_TENANT, agentId })).map(({ key }) => key);
      return JSON.stringify({ agentId, status, openTurnId, queuedTurnIds, pause, abort, inbox });
    }),
  );
  return states.join(" ");
}
