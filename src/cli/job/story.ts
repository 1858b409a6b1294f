import { type Account, addUse, type UseByModel } from "../../budget/index.ts";
import { NotFoundError } from "../../errors/index.ts";
import { ownUse, type AgentOverview, createOverview } from "../../runtime/index.ts";
import {
  type AgentRecord,
  DEFAULT_TENANT,
  eventsOf,
  type Message,
  rootOf,
  textOf,
  type TroupeEvent,
} from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { isTurnEnd, type TurnEnd } from "../view/reporter.ts";
import { allAgents } from "./find-agent.ts";

export type JournalRow = Awaited<ReturnType<Stores["readTree"]>>[number];

const rowsAtATime = 500;

/** All that a store holds of one tree of agents. Reading it takes no lease, so another process may run the tree meanwhile. */
export interface Story {
  readonly rootAgentId: string;
  readonly records: readonly AgentRecord[];
  /** Durable events in order. */
  readonly events: readonly TroupeEvent[];
  /** The agents folded from the events, in the order in which they appeared. */
  readonly agents: readonly AgentOverview[];
  readonly accounts: readonly Account[];
  readonly rows: readonly JournalRow[];
  /** All messages of the tree by id. */
  readonly messages: ReadonlyMap<string, Message>;
}

/** Throws `NotFoundError` when the store has no such agent. */
export async function readStory(stores: Stores, agentId: string): Promise<Story> {
  const rootAgentId = rootOf(agentId);
  const records = await allAgents(stores, { tenant: DEFAULT_TENANT, rootAgentId });
  if (records.length === 0) throw new NotFoundError(`there is no agent "${agentId}" in this store`);
  const rows = await allRows(stores, rootAgentId);
  const messages = new Map<string, Message>();
  for (const { agentId: of } of records) {
    for (const message of await stores.messages({ tenant: DEFAULT_TENANT, agentId: of })) {
      messages.set(message.id, message);
    }
  }
  const events = eventsOfRows(rows, records, messages);
  const overview = createOverview();
  for (const event of events) overview.trigger.noted({ event });
  const accounts = await stores.accounts(DEFAULT_TENANT, rootAgentId);
  const agents = Object.values(overview.getSnapshot().context.agents);
  return { rootAgentId, records, events, agents, accounts, rows, messages };
}

function eventsOfRows(
  rows: readonly JournalRow[],
  records: readonly AgentRecord[],
  messages: ReadonlyMap<string, Message>,
): TroupeEvent[] {
  const byId = new Map(records.map((record) => [record.agentId, record]));
  const lookUp = (messageId: string): string => textOf(messages.get(messageId)?.content ?? "");
  return rows.flatMap((row) => {
    const record = byId.get(row.agentId);
    return record === undefined ? [] : row.entries.flatMap((entry) => eventsOf(entry, record, row.cursor, lookUp));
  });
}

/** The rows of a whole tree, in order. */
async function allRows(stores: Stores, rootAgentId: string): Promise<JournalRow[]> {
  const rows: JournalRow[] = [];
  for (;;) {
    const more = await stores.readTree(DEFAULT_TENANT, rootAgentId, rows.at(-1)?.cursor ?? 0, rowsAtATime);
    rows.push(...more);
    if (more.length < rowsAtATime) return rows;
  }
}

/** The end of an agent's newest turn; undefined while it is open. */
export function lastEndOf(events: readonly TroupeEvent[], agentId: string): TurnEnd | undefined {
  const last = events.findLast(
    (event) => event.agentId === agentId && (isTurnEnd(event) || event.type === "turn.started"),
  );
  return last !== undefined && isTurnEnd(last) ? last : undefined;
}

/** Agents and accounts of a tree, or of the part below one agent. */
export interface BudgetTree {
  readonly agents: readonly AgentRecord[];
  readonly accounts: readonly Account[];
  /** By agent: the use of its own calls by model, from its journal. */
  readonly own: ReadonlyMap<string, UseByModel>;
}

/** The agent and all below it, parents first, with their accounts. */
export async function readBudgets(stores: Stores, top: AgentRecord): Promise<BudgetTree> {
  const { rootAgentId } = top;
  const records = await allAgents(stores, { tenant: DEFAULT_TENANT, rootAgentId });
  const within = new Set([top.agentId]);
  const agents = records
    .toSorted((one, other) => one.depth - other.depth || one.createdAt - other.createdAt)
    .filter(({ agentId, parentAgentId }) => {
      if (parentAgentId !== null && within.has(parentAgentId)) within.add(agentId);
      return within.has(agentId);
    });
  const accounts = await stores.accounts(DEFAULT_TENANT, rootAgentId);
  const own = new Map<string, UseByModel>();
  for (const { agentId, entries } of await allRows(stores, rootAgentId)) {
    if (within.has(agentId)) own.set(agentId, addUse(own.get(agentId) ?? {}, ownUse(entries)));
  }
  return { agents, accounts: accounts.filter(({ agentId }) => within.has(agentId)), own };
}
