import type { Account, Moment } from "../../budget/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  type AgentRequest,
  agentRequestSchema,
  type Artifact,
  type Deletion,
  type InboxItem,
  type JournalRow,
  type Message,
  type Schedule,
  scheduleDueAt,
  type StoredDefinition,
  type Timer,
  type TreeWebhooks,
  type TurnRecord,
} from "../../state/index.ts";
import type { StoredRow, StoredTree, StoredTurn } from "../rules/ports.ts";
import type {
  AgentFilter,
  AgentListCursor,
  DeletionQuery,
  RequestFilter,
  ScheduleCursor,
  ScheduleFilter,
  TurnFilter,
  TurnListCursor,
} from "../rules/queries.ts";
import { definitionIn, parsed } from "../rules/stored-values.ts";
import type { ArtifactMeta, RestoredRow, StoreTables } from "../rules/tables.ts";
import { entriesOf } from "./redis-expired.ts";
import { holderMember, holdersIndex } from "./redis-indexes.ts";
import { agentParts, openedTurnPrefix, pairOf, type RedisKeys, treeParts, turnFields } from "./redis-keys.ts";
import type { RedisLists } from "./redis-lists.ts";
import type { RedisReader } from "./redis-reader.ts";
import { type RowKind, rowKinds, turnIn } from "./redis-rows.ts";
import type { TreeSession } from "./redis-session.ts";
import { RedisTables } from "./redis-tables.ts";
import type { WholeTree } from "./redis-whole-tree.ts";

/** Reads outside of commits, and export and import of trees. */
export class RedisReads extends RedisTables implements StoreTables {
  readonly #lists: RedisLists;

  constructor(keys: RedisKeys, reader: RedisReader, lists: RedisLists) {
    super(keys, reader);
    this.#lists = lists;
  }

  listAgents(filter: AgentFilter, limit: number, place?: AgentListCursor): AgentRecord[] {
    return this.ask(`agents|${limit}`, () => this.#lists.agents(filter, limit, place));
  }

  inbox({ tenant, agentId }: AgentKey): InboxItem[] {
    const tree = this.keys.treeOf(tenant, agentId);
    const whole = this.wholeOf(tree);
    if (whole) return [...(whole.agents.get(agentId)?.inbox ?? [])];
    return this.ask(`inbox|${agentId}`, () => this.reader.inbox(tree, agentId));
  }

  rowsFrom({ tenant, agentId }: AgentKey, fromSeq: number): JournalRow[] {
    const tree = this.keys.treeOf(tenant, agentId);
    return this.ask(`rows|${fromSeq}`, () =>
      this.reader.agentRows(tree, tree.ofAgent("index", agentId), agentId, fromSeq),
    );
  }

  treeRows(tenant: string, rootAgentId: string, afterCursor: number, limit: number): JournalRow[] {
    return this.ask("rows", () => this.reader.treeRows(this.keys.treeOf(tenant, rootAgentId), afterCursor, limit));
  }

  lastCursor(tenant: string, rootAgentId: string): number {
    const { meta } = this.keys.treeOf(tenant, rootAgentId);
    return this.ask("cursor", () => this.reader.number(meta, "cursor"));
  }

  messages({ tenant, agentId }: AgentKey, newest: number | undefined): Message[] {
    const tree = this.keys.treeOf(tenant, agentId);
    const keys = { messages: tree.ofAgent("messages", agentId), order: tree.ofAgent("order", agentId) };
    return this.ask("messages", () => this.reader.messages(keys, newest)).map(({ message }) => message);
  }

  messagesById({ tenant, agentId }: AgentKey, ids: readonly string[]): Message[] {
    const key = this.keys.treeOf(tenant, agentId).ofAgent("messages", agentId);
    return this.ask("messages", () => this.reader.messagesById(key, ids)).map(({ message }) => message);
  }

  artifacts({ tenant, agentId }: AgentKey): ArtifactMeta[] {
    const tree = this.keys.treeOf(tenant, agentId);
    const whole = this.wholeOf(tree);
    if (whole) return (whole.agents.get(agentId)?.artifacts ?? []).map(({ content: _content, ...meta }) => meta);
    const key = tree.ofAgent("artifacts", agentId);
    return this.ask("artifacts", () => this.reader.artifacts(key)).map(({ meta }) => meta);
  }

  artifact({ tenant, agentId }: AgentKey, artifactId: string): Artifact | undefined {
    const tree = this.keys.treeOf(tenant, agentId);
    const whole = this.wholeOf(tree);
    if (whole) return whole.agents.get(agentId)?.artifacts.find((artifact) => artifact.artifactId === artifactId);
    const keys = { artifacts: tree.ofAgent("artifacts", agentId), contents: tree.ofAgent("contents", agentId) };
    return this.ask("artifact", () => this.reader.artifact(keys, artifactId));
  }

  artifactByName(key: AgentKey, name: string, version: number | undefined): Artifact | undefined {
    const ofName = this.artifacts(key).filter((meta) => meta.name === name);
    const newest = ofName.reduce((highest, meta) => Math.max(highest, meta.version), 0);
    const wanted = ofName.find((meta) => meta.version === (version ?? newest));
    return wanted && this.artifact(key, wanted.artifactId);
  }

  requests(filter: RequestFilter, after: AgentRequest | undefined, limit: number): AgentRequest[] {
    const { tenant, agentId } = filter;
    const whole = agentId === undefined ? undefined : this.wholeOf(this.keys.treeOf(tenant, agentId));
    if (whole) return requestsIn(whole, agentId);
    return this.ask("requests", () => this.#lists.requests(filter, after, limit));
  }

  turns(filter: TurnFilter, limit: number, place?: TurnListCursor): TurnRecord[] {
    return this.ask("turns", () => this.#lists.turns(filter, limit, place));
  }

  turnsOf({ tenant, agentId }: AgentKey): StoredTurn[] {
    const tree = this.keys.treeOf(tenant, agentId);
    const { turns } = this.readWhole(tree);
    const found = [...turns.keys()].flatMap((field) =>
      field.startsWith(openedTurnPrefix) ? [field.slice(openedTurnPrefix.length)] : [],
    );
    return found
      .map((turnId) => turnFields(turnId))
      .map(([opened, changed]) => turnIn(turns.get(opened) ?? "", turns.get(changed), tree.turns))
      .sort((a, b) => a.number - b.number);
  }

  accounts(tenant: string, rootAgentId: string): Account[] {
    const tree = this.keys.treeOf(tenant, rootAgentId);
    const whole = this.wholeOf(tree);
    if (whole) return this.at(tree).all(kindsOf(whole.accountIds));
    if (!this.reading(tree)) return this.at(tree).all(kindsOf(this.writing(tree).members(this.accountIds(tree))));
    return this.ask("accounts", async () => this.reader.rows(tree, kindsOf(await this.reader.list(tree.accounts))));
  }

  definition(tenant: string, rootAgentId: string, hash: string): StoredDefinition | undefined {
    const { definitions } = this.keys.treeOf(tenant, rootAgentId);
    const text = this.ask("definition", () => this.reader.field(definitions, hash));
    return text === null ? undefined : definitionIn(text, hash, `definition ${hash} (${definitions})`);
  }

  definitionsOf(tenant: string, rootAgentId: string): StoredDefinition[] {
    const tree = this.keys.treeOf(tenant, rootAgentId);
    const found = [...this.readWhole(tree).definitions].sort(([one], [other]) => (one < other ? -1 : 1));
    return found.map(([hash, text]) => definitionIn(text, hash, `definition ${hash} (${tree.definitions})`));
  }

  dueTimers(moment: Moment, limit: number): Timer[] {
    return this.ask("due", () => this.#lists.dueTimers(moment, limit));
  }

  nextTimerAt(): number | undefined {
    return this.ask("next", () => this.#lists.nextTimerAt());
  }

  timer({ tenant, agentId }: AgentKey, timerId: string): Timer | undefined {
    const tree = this.keys.treeOf(tenant, agentId);
    return this.ask("timer", () => this.reader.timer(tree, pairOf(agentId, timerId)));
  }

  agentsOfTree(tenant: string, rootAgentId: string): AgentRecord[] {
    const tree = this.keys.treeOf(tenant, rootAgentId);
    const whole = this.readWhole(tree);
    const records = this.at(tree).all(whole.agentIds.map((agentId) => rowKinds.record(tenant, agentId)));
    // The id of a subagent belongs to the tree of another root.
    return records.filter((record) => record.rootAgentId === rootAgentId);
  }

  timersOf({ tenant, agentId }: AgentKey): Timer[] {
    const timers = this.readWhole(this.keys.treeOf(tenant, agentId)).timers.filter(
      (timer) => timer.agentId === agentId,
    );
    return timers.sort((a, b) => a.dueAt - b.dueAt || (a.id < b.id ? -1 : 1));
  }

  storedRows(tenant: string, rootAgentId: string): StoredRow[] {
    const { journal, agents } = this.readWhole(this.keys.treeOf(tenant, rootAgentId));
    const byCursor = new Map<number, StoredRow["messages"][number][]>();
    for (const { messages } of agents.values()) {
      for (const { cursor, message } of messages) {
        const ofRow = byCursor.get(cursor);
        if (ofRow) ofRow.push(message);
        else byCursor.set(cursor, [message]);
      }
    }
    return journal.map((row) => ({ ...row, messages: byCursor.get(row.cursor) ?? [] }));
  }

  removeTree(tenant: string, rootAgentId: string): void {
    const tree = this.keys.treeOf(tenant, rootAgentId);
    const { agentIds } = this.readWhole(tree);
    const session = this.writing(tree);
    for (const agentId of agentIds) {
      for (const part of agentParts) session.do("drop", { key: tree.ofAgent(part, agentId) });
    }
    for (const part of treeParts) session.do("drop", { key: tree[part] });
    session.removeAll();
  }

  purgeTree(tenant: string, rootAgentId: string): void {
    const tree = this.keys.treeOf(tenant, rootAgentId);
    const whole = this.readWhole(tree);
    const session = this.writing(tree);
    const records = this.at(tree).all(whole.agentIds.map((agentId) => rowKinds.record(tenant, agentId)));
    const requests = namesIn(whole, "request:").map((member) => [member, ""] as const);
    const turns = [...whole.turns.keys()]
      .filter((field) => field.startsWith(openedTurnPrefix))
      .map((field) => [field.slice(openedTurnPrefix.length), ""] as const);
    const listed = entriesOf(this.keys, tree, { records, requests: requests.map(([member]) => member), turns });
    const holders = namesIn(whole, "holder:").map((id) => [holderMember(id, tree.tag), ""] as const);
    const { list: held, stamps: heldStamps } = holdersIndex(this.keys, tree);
    for (const [list, stamps, members] of [...listed, [held, heldStamps, holders] as const]) {
      for (const [member] of members) {
        session.writeIndex({ kind: "leaving", keys: { list, stamps }, member, score: undefined });
      }
    }
    this.removeTree(tenant, rootAgentId);
    session.do("drop", { key: tree.projections });
    session.purge();
  }

  putDeletion(deletion: Deletion): void {
    const { tenant, idHash, deletedAt, pending } = deletion;
    const session = this.writing(this.keys.deletions(tenant));
    const { tree } = session;
    session.put(rowKinds.deletion(idHash), deletion);
    session.do("place", { key: tree.due }, idHash, String(deletedAt));
    if (pending) session.do("place", { key: tree.open }, idHash, String(deletedAt));
    else session.do("unplace", { key: tree.open }, idHash);
  }

  removeDeletion(tenant: string, idHash: string): void {
    const session = this.writing(this.keys.deletions(tenant));
    session.remove(rowKinds.deletion(idHash));
    for (const key of [session.tree.due, session.tree.open]) session.do("unplace", { key }, idHash);
  }

  deletions(query: DeletionQuery & { readonly limit: number }): Deletion[] {
    return this.ask("deletions", () => this.reader.deletions(this.keys.deletions(query.tenant), query));
  }

  restoreRows(tenant: string, rows: readonly RestoredRow[]): number[] {
    const [first] = rows;
    if (!first) return [];
    let last = this.readWhole(this.keys.treeOf(tenant, first.row.agentId)).lastCursor;
    return rows.map(({ row: { agentId, entries, messages }, cursor = last + 1 }) => {
      last = Math.max(last, cursor);
      return this.addRowAt({ tenant, agentId }, cursor, entries, messages);
    });
  }

  projections(tenant: string, rootAgentId: string): StoredTree["projections"] {
    const { projections } = this.readWhole(this.keys.treeOf(tenant, rootAgentId));
    return [...projections].map(([name, cursor]) => ({ name, cursor }));
  }

  projectionCursor(tenant: string, name: string, rootAgentId: string): number {
    const { projections } = this.keys.treeOf(tenant, rootAgentId);
    return this.ask("projection", () => this.reader.number(projections, name));
  }

  moveProjection(tenant: string, name: string, rootAgentId: string, cursor: number): void {
    const session = this.writing(this.keys.treeOf(tenant, rootAgentId));
    session.do("highest", { key: session.tree.projections }, name, String(cursor));
  }

  webhooks(tenant: string, rootAgentId: string): TreeWebhooks | undefined {
    const found = this.at(this.keys.treeOf(tenant, rootAgentId)).get(rowKinds.webhooks);
    // The id of a subagent belongs to the tree of another root.
    return found?.rootAgentId === rootAgentId ? found : undefined;
  }

  putWebhooks(webhooks: TreeWebhooks): void {
    const session = this.writing(this.keys.treeOf(webhooks.tenant, webhooks.rootAgentId));
    session.put(rowKinds.webhooks, webhooks);
    this.#listWebhooks(session, webhooks.dueAt);
  }

  removeWebhooks(tenant: string, rootAgentId: string): void {
    const session = this.writing(this.keys.treeOf(tenant, rootAgentId));
    session.remove(rowKinds.webhooks);
    this.#listWebhooks(session, undefined);
  }

  dueWebhooks(tenant: string, now: number, limit: number): TreeWebhooks[] {
    return this.ask("due webhooks", () => this.#lists.dueWebhooks(tenant, now, limit));
  }

  schedule(tenant: string, key: string): Schedule | undefined {
    return this.at(this.keys.schedulesOf(tenant)).get(rowKinds.schedule(key));
  }

  putSchedule(schedule: Schedule): void {
    const { tenant, key } = schedule;
    const session = this.writing(this.keys.schedulesOf(tenant));
    const { tree } = session;
    const dueAt = scheduleDueAt(schedule);
    session.put(rowKinds.schedule(key), schedule);
    session.do("place", { key: tree.schedules }, key, "0");
    if (dueAt === null) session.do("unplace", { key: tree.due }, key);
    else session.do("place", { key: tree.due }, key, String(dueAt));
  }

  removeSchedule(tenant: string, key: string): void {
    const session = this.writing(this.keys.schedulesOf(tenant));
    const { tree } = session;
    session.remove(rowKinds.schedule(key));
    session.do("unplace", { key: tree.schedules }, key);
    session.do("unplace", { key: tree.due }, key);
  }

  schedules(filter: ScheduleFilter, limit: number): Schedule[] {
    return this.ask("schedules", () => this.#lists.schedules(filter, limit));
  }

  dueSchedules(tenant: string, now: number, limit: number, place?: ScheduleCursor): Schedule[] {
    return this.ask("due schedules", () => this.#lists.dueSchedules(tenant, now, limit, place));
  }

  nextScheduleAt(tenant: string, after: number): number | undefined {
    return this.ask("next schedule", () => this.reader.scoreAfter(this.keys.schedulesOf(tenant).due, after));
  }

  #listWebhooks(session: TreeSession, dueAt: number | undefined): void {
    const { tree } = session;
    const keys = this.keys.index("webhooks", tree.partition, tree.tenant);
    session.writeIndex({ kind: dueAt === undefined ? "leaving" : "from", keys, member: tree.tag, score: dueAt });
  }
}

/** The names of rows that begin with the prefix, without it. */
function namesIn({ rows }: WholeTree, prefix: string): string[] {
  return [...rows.keys()].filter((field) => field.startsWith(prefix)).map((field) => field.slice(prefix.length));
}

function requestsIn({ rows }: WholeTree, agentId: string | undefined): AgentRequest[] {
  const requests = [...rows]
    .filter(([field]) => field.startsWith("request:"))
    .map(([field, { text = "" }]) => parsed(agentRequestSchema, text, `a request (${field})`));
  return requests
    .filter((request) => request.agentId === agentId)
    .sort((a, b) => a.openedAt - b.openedAt || (a.requestId < b.requestId ? -1 : 1));
}

function kindsOf(accountIds: readonly string[]): RowKind<Account>[] {
  return accountIds.map((id) => rowKinds.account(id));
}
