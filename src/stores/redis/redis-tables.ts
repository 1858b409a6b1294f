import {
  type AgentKey,
  type AgentRecord,
  type AgentRequest,
  type Artifact,
  type Entry,
  type InboxItem,
  JOURNAL_VERSION,
  type Message,
  type StoredDefinition,
  type Timer,
} from "../../state/index.ts";
import type { Committed, SteerMeaning } from "../rules/outcomes.ts";
import type { StoredTurn } from "../rules/ports.ts";
import { wellFormed } from "../rules/stored-values.ts";
import type { AddedRow, ArtifactMeta, Head, KeyMeaning, Tables, TurnChange } from "../rules/tables.ts";
import { RedisAgents } from "./redis-agents.ts";
import { watchHead, watchPosts } from "./redis-indexes.ts";
import { fields, ofOwner, pairOf, requestMember, type TreeKeys, turnFields, turnIndexes } from "./redis-keys.ts";
import { type PlacedArtifact, rowKinds } from "./redis-rows.ts";
import type { Collection, TreeSession } from "./redis-session.ts";

/** The rows of commits, commands and leases in the current session. */
export class RedisTables extends RedisAgents implements Tables {
  override putAgent(record: AgentRecord): void {
    const isNewTree = record.parentAgentId === null && this.agent(record) === undefined;
    super.putAgent(record);
    // A new agent soon gets an item, and its index entries are written anyway.
    if (isNewTree) watchPosts(this.ofAgent(record), this.keys);
  }

  override putHead(key: AgentKey, head: Head, outcome?: Committed): void {
    const before = this.head(key);
    super.putHead(key, head, outcome);
    watchHead(this.ofAgent(key), this.keys, before, head);
  }

  addToInbox(key: AgentKey, item: InboxItem): boolean {
    const session = this.ofAgent(key);
    const inbox = session.tree.ofAgent("inbox", key.agentId);
    if (session.isInInbox(inbox, item.key)) return false;
    const text = JSON.stringify(item);
    session.do("item", { key: inbox }, wellFormed(item.key, "inbox key"), text, fields.head(key.agentId));
    session.noteInbox(inbox, item.key, true);
    watchPosts(session, this.keys);
    return true;
  }

  inboxSize({ tenant, agentId }: AgentKey): number {
    const tree = this.keys.treeOf(tenant, agentId);
    const inbox = tree.ofAgent("inbox", agentId);
    return this.writing(tree).inboxSize(inbox);
  }

  removeFromInbox({ tenant, agentId }: AgentKey, itemKeys: readonly string[]): void {
    const session = this.writing(this.keys.treeOf(tenant, agentId));
    const inbox = session.tree.ofAgent("inbox", agentId);
    for (const itemKey of itemKeys) {
      session.do("take", { key: inbox }, itemKey);
      session.noteInbox(inbox, itemKey, false);
    }
  }

  addRow(key: AgentKey, entries: readonly Entry[], messages: readonly Message[]): AddedRow {
    return { cursor: this.addRowAt(key, undefined, entries, messages) };
  }

  /** Adds a row under the given cursor or the next one. The next one is known only after the write; until then the result is negative. */
  protected addRowAt(
    key: AgentKey,
    cursor: number | undefined,
    entries: readonly Entry[],
    messages: readonly Message[],
  ): number {
    const session = this.ofAgent(key);
    const agentRedisKey = (part: "index" | "messages" | "order"): { key: string } => ({
      key: session.tree.ofAgent(part, key.agentId),
    });
    const lastSeq = String(entries.at(-1)?.seq ?? 0);
    const text = JSON.stringify(entries);
    const version = String(JOURNAL_VERSION);
    const ended = endIn(entries);
    session.do("entries", agentRedisKey("index"), String(cursor ?? ""), lastSeq, key.agentId, version, text, ...ended);
    for (const message of messages) {
      session.do(
        "message",
        agentRedisKey("messages"),
        agentRedisKey("order"),
        wellFormed(message.id, "message id"),
        JSON.stringify(message),
      );
    }
    return cursor ?? session.nextRow();
  }

  clearMessages(key: AgentKey): void {
    const session = this.ofAgent(key);
    for (const part of ["messages", "order"] as const)
      session.do("drop", { key: session.tree.ofAgent(part, key.agentId) });
  }

  putArtifact(key: AgentKey, artifact: Artifact): void {
    const session = this.ofAgent(key);
    const { content, ...meta } = artifact;
    wellFormed(meta.artifactId, "artifact id");
    const collection = this.#artifacts(session.tree, key.agentId);
    const members = session.members(collection);
    const known = members.find((one) => one.meta.artifactId === meta.artifactId);
    const ordinal = known?.ordinal ?? (members.at(-1)?.ordinal ?? 0) + 1;
    const placed = { ordinal, meta };
    session.do("put", { key: collection.key }, meta.artifactId, `${ordinal}|${JSON.stringify(meta)}`);
    const contents = session.tree.ofAgent("contents", key.agentId);
    session.do("put", { key: contents }, meta.artifactId, JSON.stringify(content));
    session.replace(collection, known ? members.map((one) => (one === known ? placed : one)) : [...members, placed]);
  }

  artifactMeta(key: AgentKey, artifactId: string): ArtifactMeta | undefined {
    return this.#artifactsOf(key).find(({ meta }) => meta.artifactId === artifactId)?.meta;
  }

  newestVersion(key: AgentKey, name: string): number {
    const ofName = this.#artifactsOf(key).filter(({ meta }) => meta.name === name);
    return ofName.reduce((newest, { meta }) => Math.max(newest, meta.version), 0);
  }

  clearArtifacts(key: AgentKey): void {
    const session = this.ofAgent(key);
    for (const part of ["artifacts", "contents"] as const) {
      session.do("drop", { key: session.tree.ofAgent(part, key.agentId) });
    }
    session.replace(this.#artifacts(session.tree, key.agentId), []);
  }

  request({ tenant, agentId }: AgentKey, requestId: string): AgentRequest | undefined {
    return this.at(this.keys.treeOf(tenant, agentId)).get(rowKinds.request(agentId, requestId));
  }

  putRequest(request: AgentRequest): void {
    const { agentId, rootAgentId, requestId, openedAt, status, tenant, ownerId, decidedWith } = request;
    const session = this.ofAgent(request);
    const { tree } = session;
    const before = this.request(request, requestId);
    session.put(rowKinds.request(agentId, requestId), request);
    if (decidedWith) {
      session.put(rowKinds.meaning(rootAgentId, decidedWith.key), { turnId: decidedWith.turnId, requestId });
    }
    const member = requestMember(request);
    const places = [[tenant], ...(ownerId === undefined ? [] : [[tenant, ...ofOwner(ownerId)]])];
    const index = (list: "requests" | "open", kind: "at" | "leaving"): void => {
      const score = kind === "at" ? openedAt : undefined;
      for (const of of places) {
        session.writeIndex({ kind, keys: this.keys.index(list, tree.partition, ...of), member, score });
      }
    };
    if (!before) {
      session.do("place", { key: tree.requests }, member, String(openedAt));
      index("requests", "at");
    }
    const isOpen = status === "open";
    if (isOpen === (before?.status === "open")) return;
    index("open", isOpen ? "at" : "leaving");
    if (isOpen) session.do("place", { key: tree.open }, member, String(openedAt));
    else session.do("unplace", { key: tree.open }, member);
    const row = this.headRow(request);
    const others = row.open.filter((id) => id !== requestId);
    this.putHeadRow(request, { ...row, open: isOpen ? [...others, requestId] : others });
  }

  openRequestsOf(key: AgentKey, turnId: string): AgentRequest[] {
    const open = this.headRow(key).open.map((requestId) => rowKinds.request(key.agentId, requestId));
    return this.at(this.keys.treeOf(key.tenant, key.agentId))
      .all(open)
      .filter((request) => request.turnId === turnId);
  }

  putTurn(turn: StoredTurn): void {
    const session = this.ofAgent(turn);
    const { agentId, turnId, key, hash } = turn;
    const [opened] = turnFields(turnId);
    session.do("put", { key: session.tree.turns }, opened, JSON.stringify(turn));
    if (key !== null && hash !== null) session.put(rowKinds.meaning(agentId, key), { turnId, hash });
    this.#listTurn(session, turn, turn);
  }

  moveTurn(key: AgentKey, turnId: string, change: TurnChange): void {
    const session = this.ofAgent(key);
    const [, changed] = turnFields(turnId);
    session.do("put", { key: session.tree.turns }, changed, JSON.stringify(change));
    const { ownerId, sessionId } = this.agent(key) ?? { ownerId: null, sessionId: null };
    this.#listTurn(session, { turnId, ownerId, sessionId }, change);
  }

  putSteer(key: AgentKey, steerId: string, meaning: SteerMeaning): void {
    this.ofAgent(key).put(rowKinds.meaning(key.agentId, steerId), meaning);
  }

  meaningOf({ tenant, agentId }: AgentKey, text: string): KeyMeaning | undefined {
    return this.at(this.keys.treeOf(tenant, agentId)).get(rowKinds.meaning(agentId, text));
  }

  #listTurn(
    session: TreeSession,
    { turnId: member, ...place }: Pick<StoredTurn, "turnId" | "ownerId" | "sessionId">,
    { status, changedAt }: TurnChange,
  ): void {
    const { tree } = session;
    // All lists are read in ascending order, so the newest changes get the lowest scores.
    const at = { kind: "at", member, score: -changedAt, isUnstamped: true } as const;
    session.do("place", { key: tree.changes }, member, String(-changedAt));
    for (const keys of turnIndexes(this.keys, tree, place)) session.writeIndex({ ...at, keys });
    const unfinished = this.keys.index("unfinished", tree.partition, tree.tenant);
    const isUnfinished = status === "queued" || status === "open";
    session.writeIndex({ ...at, keys: unfinished, ...(isUnfinished ? {} : { kind: "leaving", score: undefined }) });
  }

  keepDefinition(tenant: string, rootAgentId: string, definition: StoredDefinition): void {
    const hash = wellFormed(definition.hash, "hash of a definition");
    this.writing(this.keys.treeOf(tenant, rootAgentId)).keepDefinition(hash, () => JSON.stringify(definition));
  }

  setTimer(timer: Timer): void {
    const session = this.ofAgent(timer);
    const { tree } = session;
    const id = pairOf(timer.agentId, timer.id);
    session.do("put", { key: tree.timers }, id, JSON.stringify(timer));
    session.do("place", { key: tree.due }, id, String(timer.dueAt));
    const known = session.get(rowKinds.timersFrom);
    if (known !== undefined && known <= timer.dueAt) return;
    session.put(rowKinds.timersFrom, timer.dueAt);
    session.writeIndex({
      kind: "from",
      keys: this.keys.index("timers", tree.partition),
      member: tree.tag,
      score: timer.dueAt,
    });
  }

  clearTimer({ tenant, agentId }: AgentKey, timerId: string): void {
    const session = this.writing(this.keys.treeOf(tenant, agentId));
    const id = pairOf(agentId, timerId);
    session.do("take", { key: session.tree.timers }, id);
    session.do("unplace", { key: session.tree.due }, id);
  }

  #artifactsOf({ tenant, agentId }: AgentKey): readonly PlacedArtifact[] {
    const tree = this.keys.treeOf(tenant, agentId);
    return this.writing(tree).members(this.#artifacts(tree, agentId));
  }

  #artifacts(tree: TreeKeys, agentId: string): Collection<readonly PlacedArtifact[]> {
    const field = fields.artifacts(agentId);
    const key = tree.ofAgent("artifacts", agentId);
    return { field, key, empty: [], load: () => this.reader.artifactMembers(tree, key, field) };
  }
}

/** The turn that ends in a row and the id of its answer, for processes that wait for the answer; empty if there is none. */
function endIn(entries: readonly Entry[]): readonly [turnId: string, messageId: string] {
  const end = entries.findLast(({ type }) => type === "turn.ended");
  if (end?.type !== "turn.ended" || end.outputMessageId === null) return ["", ""];
  return [wellFormed(end.turnId, "turn id"), wellFormed(end.outputMessageId, "message id")];
}
