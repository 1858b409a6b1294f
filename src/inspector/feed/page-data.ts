import type { Entry, JournalRow } from "../../state/index.ts";
import { type AgentJournal, allMessages, journalOf } from "./agent-journal.ts";
import { callIn } from "./call-detail.ts";
import { allTransitions } from "./machines.ts";
import { allPrompts } from "./prompts.ts";
import { copyOfRun } from "./run-file.ts";
import { runHead } from "./runs.ts";
import type { RunSource } from "./source.ts";
import { feedRowOf, type Visibility, shownRequest } from "./visible-values.ts";
import type { CallDetail, PageData } from "./wire.ts";

/** Most characters of JSON besides the rows. A browser holds all of it in memory, as objects. */
const MOST_CHARACTERS = 40_000_000;
/** Folding the machines takes about 0.15 ms per entry. */
const MOST_FOLDED_ENTRIES = 40_000;

/** Everything that a page shows of a run, at one moment. Prompts are left out first: each repeats the previous one. */
export async function pageData(live: RunSource, sight: Visibility): Promise<PageData> {
  const source = await copyOfRun(live);
  try {
    const { stores, tenant, runId } = source;
    const { run, agents, accounts } = await runHead(source, sight);
    const rows = await stores.readTree(tenant, runId, 0, Number.MAX_SAFE_INTEGER);
    const requests = await stores.requests({ tenant, rootAgentId: runId, limit: 10_000 });
    const journals: AgentJournal[] = [];
    for (const { agentId } of agents) journals.push(await journalOf(source, agentId));
    const room = { left: MOST_CHARACTERS };
    const entryCount = rows.reduce((sum, { entries }) => sum + entries.length, 0);
    const isFolded = entryCount <= MOST_FOLDED_ENTRIES;
    return {
      format: "troupe.page/1",
      exportedAt: Date.now(),
      namesOnly: sight.namesOnly,
      run,
      agents: byFirstRow(agents, rows),
      rows: rows.map((row) => feedRowOf(row, sight)),
      accounts,
      requests: requests.map((request) => shownRequest(request, sight)),
      transitions: isFolded ? await byAgent(journals, room, allTransitions) : undefined,
      messages: await byAgent(journals, room, (journal) => allMessages(source, journal, sight)),
      calls: await callsOf(source, { journals, sight, room }),
      prompts: await byAgent(journals, room, (journal) => allPrompts(source, journal, sight)),
    };
  } finally {
    await source.stores.close();
  }
}

/** The order in which a live page receives agents: parents first, siblings by creation. */
function byFirstRow(agents: PageData["agents"], rows: readonly JournalRow[]): PageData["agents"] {
  const places = new Map<string, number>();
  for (const [place, { agentId }] of rows.entries()) if (!places.has(agentId)) places.set(agentId, place);
  const rowIndex = ({ agentId }: PageData["agents"][number]): number => places.get(agentId) ?? rows.length;
  return agents.toSorted((one, other) => rowIndex(one) - rowIndex(other) || one.depth - other.depth);
}

interface ByteAllowance {
  left: number;
}

/** `undefined` if the values do not fit in the characters left. */
async function byAgent<Value>(
  journals: readonly AgentJournal[],
  room: ByteAllowance,
  of: (journal: AgentJournal) => Promise<Value>,
): Promise<Readonly<Record<string, Value>> | undefined> {
  const found: [string, Value][] = [];
  let { left } = room;
  for (const journal of journals) {
    const value = await of(journal);
    left -= JSON.stringify(value).length;
    if (left < 0) return undefined;
    found.push([journal.record.agentId, value]);
  }
  room.left = left;
  return Object.fromEntries(found);
}

interface CallsContext {
  readonly journals: readonly AgentJournal[];
  readonly sight: Visibility;
  readonly room: ByteAllowance;
}

async function callsOf(source: RunSource, { journals, sight, room }: CallsContext): Promise<PageData["calls"]> {
  const calls = await byAgent(journals, room, async (of) => {
    const details: CallDetail[] = [];
    for (const { entry } of of.journal.entries) {
      for (const callId of callIdsOf(entry)) details.push(await callIn({ source, sight, of }, callId));
    }
    return details;
  });
  return (
    calls && Object.fromEntries(Object.values(calls).flatMap((details) => details.map((one) => [one.callId, one])))
  );
}

function callIdsOf(entry: Entry): readonly string[] {
  return entry.type === "model.responded" ? entry.calls.map(({ callId }) => callId) : [];
}
