import { type Account, addUse, type UseByModel } from "../../budget/index.ts";
import { NotFoundError } from "../../errors/index.ts";
import { eventsOfRow, ownUse } from "../../runtime/index.ts";
import {
  type AgentOverview,
  type AgentRecord,
  DEFAULT_TENANT,
  type Entry,
  noteAgentEvent,
  rootOf,
  type TroupeEvent,
} from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { isTurnEnd, type TurnEnd } from "../view/reporter.ts";
import { allAgents } from "./find-agent.ts";

const rowsAtATime = 500;

/** One agent and its tree, as stored. Reading needs no lease, so another process may run the tree meanwhile. */
export interface Story {
  readonly records: readonly AgentRecord[];
  /**
   * The agents, folded from the tree's events, in order of appearance; `prompt` and `text` are empty if no texts were
   * read.
   */
  readonly agents: readonly AgentOverview[];
  readonly accounts: readonly Account[];
  /** Usage of each agent's own calls by model, keyed by agent. */
  readonly own: ReadonlyMap<string, UseByModel>;
  /** All entries of the agent itself. */
  readonly entries: readonly Entry[];
  /** The end of its newest turn; `undefined` while the turn is open. */
  readonly end: TurnEnd | undefined;
}

export interface StoryReading {
  /** Receives the tree's durable events in order, a page at a time. */
  readonly listener?: (events: readonly TroupeEvent[]) => void;
  /** Whether to read input and answer of each turn, which costs one read per turn. */
  readonly hasTexts: boolean;
}

/**
 * Reads the journal page by page, so that a long journal need not fit into memory. Throws `NotFoundError` if the store
 * has no such agent.
 */
export async function readStory(
  stores: Stores,
  agentId: string,
  { listener = () => {}, hasTexts }: StoryReading,
): Promise<Story> {
  const rootAgentId = rootOf(agentId);
  const records = await allAgents(stores, { tenant: DEFAULT_TENANT, rootAgentId });
  if (records.length === 0) throw new NotFoundError(`there is no agent "${agentId}" in this store`);
  const sources = new Map(records.map((record) => [record.agentId, record]));
  const own = new Map<string, UseByModel>();
  const entries: Entry[] = [];
  const agents = new Map<string, AgentOverview>();
  let end: TurnEnd | undefined;
  for await (const rows of pagesOf(stores, rootAgentId)) {
    const page: TroupeEvent[] = [];
    for (const row of rows) {
      if (row.agentId === agentId) entries.push(...row.entries);
      addOwnUse(own, row);
      page.push(...(await eventsOfRow(stores, DEFAULT_TENANT, row, sources, hasTexts)));
    }
    for (const event of page) {
      noteAgentEvent(agents, event);
      if (event.agentId !== agentId) continue;
      if (event.type === "turn.started") end = undefined;
      else if (isTurnEnd(event)) end = event;
    }
    listener(page);
  }
  const accounts = await stores.accounts(DEFAULT_TENANT, rootAgentId);
  return { records, agents: [...agents.values()], accounts, own, entries, end };
}

type JournalRow = Awaited<ReturnType<Stores["readTree"]>>[number];

/** The rows of a whole tree in order, a page at a time. */
async function* pagesOf(stores: Stores, rootAgentId: string): AsyncGenerator<readonly JournalRow[]> {
  for (let after = 0; ; ) {
    const rows = await stores.readTree(DEFAULT_TENANT, rootAgentId, after, rowsAtATime);
    yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < rowsAtATime) return;
    after = last.cursor;
  }
}

function addOwnUse(own: Map<string, UseByModel>, { agentId, entries }: JournalRow): void {
  const use = ownUse(entries);
  if (Object.keys(use).length > 0) own.set(agentId, addUse(own.get(agentId) ?? {}, use));
}

/** Agents and accounts of a tree or subtree. */
export interface BudgetTree {
  readonly agents: readonly AgentRecord[];
  readonly accounts: readonly Account[];
  /** Usage of each agent's own calls by model from its journal, keyed by agent. */
  readonly own: ReadonlyMap<string, UseByModel>;
}

/** The agent and its subagents, parents first, with their accounts. */
export function budgetsOf(top: AgentRecord, { records, accounts, own }: Pick<Story, "records" | "accounts" | "own">) {
  const within = new Set([top.agentId]);
  const agents = records
    .toSorted((one, other) => one.depth - other.depth || one.createdAt - other.createdAt)
    .filter(({ agentId, parentAgentId }) => {
      if (parentAgentId !== null && within.has(parentAgentId)) within.add(agentId);
      return within.has(agentId);
    });
  return { agents, accounts: accounts.filter(({ agentId }) => within.has(agentId)), own } satisfies BudgetTree;
}

/** Like `budgetsOf`, read from the store. */
export async function readBudgets(stores: Stores, top: AgentRecord): Promise<BudgetTree> {
  const { rootAgentId } = top;
  const records = await allAgents(stores, { tenant: DEFAULT_TENANT, rootAgentId });
  const accounts = await stores.accounts(DEFAULT_TENANT, rootAgentId);
  const own = new Map<string, UseByModel>();
  for await (const rows of pagesOf(stores, rootAgentId)) for (const row of rows) addOwnUse(own, row);
  return budgetsOf(top, { records, accounts, own });
}
