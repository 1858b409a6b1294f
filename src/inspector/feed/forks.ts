import { forkPoints } from "../../runtime/index.ts";
import type { AgentRecord } from "../../state/index.ts";
import { byAge, formatAgentCursor } from "../../stores/index.ts";
import { journalOf } from "./agent-journal.ts";
import type { RunForkPoint, RunForks } from "./answers.ts";
import { runRowOf } from "./runs.ts";
import { actorOf, agentKeyIn, type RunSource } from "./source.ts";
import type { Visibility } from "./visible-values.ts";

const ROOTS_AT_A_TIME = 200;
/** Most roots that are searched for forks, the newest first. */
const MOST_LOOKED_AT = 2_000;
/** Most runs of a family in one answer. */
const MOST_RUNS = 100;
/** Most origins above a run that are followed. */
const MOST_ORIGINS = 50;

/** The forks of a run, those of its origins, and the points at which it can be forked. */
export async function forksOf(source: RunSource, sight: Visibility): Promise<RunForks> {
  const { forks } = actorOf(source) ?? {};
  const [{ family, isWhole }, points] = await Promise.all([familyOf(source), pointsOf(source)]);
  return {
    family: await Promise.all(family.map((root) => runRowOf({ source, digests: source.digests }, root, sight))),
    isWhole,
    points,
    models: forks ? [...forks.models] : null,
  };
}

async function familyOf(source: RunSource): Promise<{ family: AgentRecord[]; isWhole: boolean }> {
  const first = await firstOrigin(source);
  const { roots, isWhole } = await forkedSince(source, first);
  const byOrigin = Map.groupBy(roots, ({ forkedFrom }) => forkedFrom?.agentId);
  const family: AgentRecord[] = [];
  const seen = new Set<string>();
  const add = (root: AgentRecord): void => {
    if (seen.has(root.agentId) || family.length >= MOST_RUNS) return;
    seen.add(root.agentId);
    family.push(root);
    for (const fork of (byOrigin.get(root.agentId) ?? []).toSorted((one, other) => byAge(other, one))) add(fork);
  };
  add(first);
  // Siblings of a run whose origin is deleted have no run above them.
  const lost = first.forkedFrom?.agentId;
  if (lost !== undefined) for (const sibling of byOrigin.get(lost) ?? []) add(sibling);
  // The run itself is always shown, also if it is not among those that were looked at.
  if (!seen.has(source.runId)) family.push(source.root);
  return { family, isWhole: isWhole && family.length < MOST_RUNS };
}

/** The oldest origin that is still stored; the run itself if it is not a fork. */
async function firstOrigin(source: RunSource): Promise<AgentRecord> {
  let first = source.root;
  for (let steps = 0; steps < MOST_ORIGINS && first.forkedFrom; steps += 1) {
    const above = await source.stores.readAgent(agentKeyIn(source, first.forkedFrom.agentId));
    if (!above) break;
    first = above;
  }
  return first;
}

/** The forks among the roots that are as young as a run, which all its forks are. */
async function forkedSince(
  { stores, tenant }: RunSource,
  first: AgentRecord,
): Promise<{ roots: AgentRecord[]; isWhole: boolean }> {
  const roots: AgentRecord[] = [];
  // The siblings of a run without a stored origin may be older.
  const since = first.forkedFrom ? 0 : first.createdAt;
  for (let seen = 0, after: string | undefined; seen < MOST_LOOKED_AT; seen += ROOTS_AT_A_TIME) {
    const page = await stores.listAgents({ tenant, rootsOnly: true, order: "newest", limit: ROOTS_AT_A_TIME, after });
    roots.push(...page.filter(({ forkedFrom }) => forkedFrom !== undefined));
    const last = page.at(-1);
    if (page.length < ROOTS_AT_A_TIME || !last || last.createdAt < since) return { roots, isWhole: true };
    after = formatAgentCursor(last);
  }
  return { roots, isWhole: false };
}

/** The points of the root agent. The end of an open turn is none: nothing could be changed there. */
async function pointsOf(source: RunSource): Promise<RunForkPoint[]> {
  const { runId } = source;
  const { journal } = await journalOf(source, runId);
  const seqs = new Map<string, number>();
  const inputs = new Map<string, string>();
  for (const { entry } of journal.entries) {
    if (entry.type === "model.requested") {
      const key = `${entry.turnId}:${entry.step}`;
      if (!seqs.has(key)) seqs.set(key, entry.seq);
    }
    const [id] = entry.type === "turn.started" ? entry.inputMessageIds : [];
    if (entry.type === "turn.started" && id !== undefined) inputs.set(entry.turnId, id);
  }
  const rows = journal.rows.map((row) => ({ ...row, messages: [] }));
  return forkPoints({ rootAgentId: runId, rows }).flatMap(({ turn, step, turnId, isOpen, at, cursor, model }) => {
    if (step === null && isOpen) return [];
    const seq = step === null ? null : (seqs.get(`${turnId}:${step}`) ?? null);
    return [{ turn, step, at, cursor, model, seq, inputId: inputs.get(turnId) ?? null }];
  });
}
