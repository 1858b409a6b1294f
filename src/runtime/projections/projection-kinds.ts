import {
  type Entry,
  type EntryOf,
  type JournalRow,
  type Message,
  type AgentRecord,
  addressOf,
  messagesAddedBy,
  statusOf,
} from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { MessageStore, AgentMetadata, ArtifactStore, Projections, StateStore } from "../api/projection-stores.ts";
import type { TreeTurns } from "./tree-turns.ts";

/** The source of a write's context. */
type Turns = Pick<TreeTurns, "contextOf">;

/** A write, and the cursor that the projection has reached after it. */
export interface ProjectionStep {
  readonly through: number;
  write(): Promise<void>;
}

/** One store of the user's own, and how journal rows are written to it. */
export interface Projection {
  /** Key of its stored cursor. */
  readonly name: string;
  /** Its name in warnings. */
  readonly words: string;
  /** Deletes all that the store has of an agent. `undefined` if the store cannot. */
  readonly remove?: ((agentId: string) => Promise<void>) | undefined;
  /** The writes for consecutive rows of one tree, in order. */
  steps(rows: readonly JournalRow[], turns: Turns): readonly ProjectionStep[];
}

/** `stores`: the durable stores, because unsaved trees are not copied. */
export function projectionsOf(
  { messages, artifacts, state }: Projections,
  stores: Stores,
  tenant: string,
): readonly Projection[] {
  const projections: Projection[] = [];
  const add = (kind: string, store: Removable, words: string, steps: Projection["steps"]): void => {
    const { name } = store;
    projections.push({ name: name === undefined ? kind : `${kind}/${name}`, words, steps, remove: removerOf(store) });
  };
  if (messages) {
    add("messages", messages, "message store", (rows, turns) =>
      messageSteps(rows, new MessageWrites({ stores, tenant, store: messages, turns })),
    );
  }
  if (artifacts) {
    add("artifacts", artifacts, "artifact store", (rows, turns) =>
      oneStep(rows, () => copyArtifacts({ stores, tenant, store: artifacts, turns }, rows)),
    );
  }
  if (state) {
    add("state", state, "state store", (rows, turns) =>
      oneStep(rows, () => copyStates({ stores, tenant, store: state, turns }, rows)),
    );
  }
  return projections;
}

interface Removable {
  readonly name?: string | undefined;
  delete?(agentId: string): Promise<void>;
  clear?(agentId: string): Promise<void>;
}

/** `delete` or, without it, `clear`. */
function removerOf(store: Removable): Projection["remove"] {
  if (store.delete) return async (agentId) => await store.delete?.(agentId);
  return store.clear && (async (agentId) => await store.clear?.(agentId));
}

function oneStep(rows: readonly JournalRow[], write: () => Promise<void>): ProjectionStep[] {
  const last = rows.at(-1);
  return last ? [{ through: last.cursor, write }] : [];
}

/** One of the user's stores, and the dependencies of its writes. */
interface Copying<Store> {
  readonly stores: Stores;
  readonly tenant: string;
  readonly store: Store;
  readonly turns: Turns;
}

async function copyArtifacts(
  { stores, tenant, store, turns }: Copying<ArtifactStore>,
  rows: readonly JournalRow[],
): Promise<void> {
  for (const { agentId, entries } of rows) {
    const isCleared = entries.some((entry) => entry.type === "conversation.cleared" && entry.scope === "all");
    if (isCleared) await store.clear?.(agentId, await turns.contextOf(null));
    for (const entry of entries) {
      if (entry.type !== "artifact.saved") continue;
      const artifact = await stores.artifact({ tenant, agentId }, entry.artifactId);
      if (artifact) await store.save(agentId, artifact, await turns.contextOf(entry.turnId));
    }
  }
}

async function copyStates(
  { stores, tenant, store, turns }: Copying<StateStore>,
  rows: readonly JournalRow[],
): Promise<void> {
  const newest = new Map<string, string | null>();
  for (const { agentId, entries } of rows) {
    const turnId = entries.map((entry) => addressOf(entry).turnId).findLast((id) => id !== null);
    newest.set(agentId, turnId ?? newest.get(agentId) ?? null);
  }
  for (const [agentId, turnId] of newest) {
    const record = await stores.readAgent({ tenant, agentId });
    if (record) await store.save(agentId, metadataOf(record), await turns.contextOf(turnId));
  }
}

function metadataOf(record: AgentRecord): AgentMetadata {
  const { agentId, createdAt, lastActivity, turnCount, metadata } = record;
  return {
    agentId,
    createdAt: new Date(createdAt).toISOString(),
    lastActivity: new Date(lastActivity).toISOString(),
    turnCount,
    status: statusOf(record),
    ...(Object.keys(metadata).length > 0 ? { metadata } : {}),
  };
}

/**
 * Rows that only add messages are written together, in one `append` per turn of an agent. A row that clears or compacts is a
 * separate step: once the cursor is past the rows before it, a repeated write cannot restore removed messages.
 */
function messageSteps(rows: readonly JournalRow[], write: MessageWrites): ProjectionStep[] {
  const steps: ProjectionStep[] = [];
  let plain: JournalRow[] = [];
  const endPlain = (): void => {
    const added = plain;
    const last = added.at(-1);
    if (last) steps.push({ through: last.cursor, write: () => write.added(added) });
    plain = [];
  };
  for (const row of rows) {
    if (!row.entries.some(takesAway)) {
      plain.push(row);
      continue;
    }
    endPlain();
    steps.push({ through: row.cursor, write: () => write.changed(row) });
  }
  endPlain();
  return steps;
}

function takesAway({ type }: Entry): boolean {
  return type === "conversation.cleared" || type === "context.compacted";
}

class MessageWrites {
  readonly #copying: Copying<MessageStore>;

  constructor(copying: Copying<MessageStore>) {
    this.#copying = copying;
  }

  async added(rows: readonly JournalRow[]): Promise<void> {
    const byAgent = Map.groupBy(rows, ({ agentId }) => agentId);
    for (const [agentId, ofAgent] of byAgent) {
      const added = ofAgent.flatMap(({ entries }) => addedMessages(entries));
      await this.#append(agentId, added);
    }
  }

  async changed({ agentId, entries }: JournalRow): Promise<void> {
    const { store, turns } = this.#copying;
    // Clears first, because the row's own messages follow the clearing and stay.
    if (entries.some(({ type }) => type === "conversation.cleared")) {
      await store.clear?.(agentId, await turns.contextOf(null));
    }
    const compactions = entries.filter((entry) => entry.type === "context.compacted");
    await this.#append(agentId, shownMessages(addedMessages(entries), compactions));
    for (const { turnId, through, kept, summaryMessageId } of compactions) {
      const [summary = null] = summaryMessageId === null ? [] : await this.#messages(agentId, [summaryMessageId]);
      await store.compact(agentId, { through, kept, summary }, await turns.contextOf(turnId));
    }
  }

  /** In one call for consecutive messages of one turn. */
  async #append(agentId: string, added: readonly AddedMessage[]): Promise<void> {
    const { store, turns } = this.#copying;
    const turnOf = new Map(added.map(({ id, turnId }) => [id, turnId]));
    let group: Message[] = [];
    const messages = await this.#messages(agentId, [...turnOf.keys()]);
    for (const [index, message] of messages.entries()) {
      group.push(message);
      const turnId = turnOf.get(message.id) ?? null;
      const next = messages[index + 1];
      if (next && (turnOf.get(next.id) ?? null) === turnId) continue;
      await store.append(agentId, group, await turns.contextOf(turnId));
      group = [];
    }
  }

  /** Messages that were cleared since are missing. */
  async #messages(agentId: string, ids: readonly string[]): Promise<Message[]> {
    const { stores, tenant } = this.#copying;
    return ids.length === 0 ? [] : await stores.messagesById({ tenant, agentId }, ids);
  }
}

interface AddedMessage {
  readonly id: string;
  readonly turnId: string | null;
}

/** Leaves out messages that the row's own compactions remove, because a repeated write would append them again at the end. */
function shownMessages(
  added: readonly AddedMessage[],
  compactions: readonly EntryOf<"context.compacted">[],
): readonly AddedMessage[] {
  let shown = added;
  for (const { through, kept } of compactions) {
    const end = shown.findIndex(({ id }) => id === through);
    shown = shown.filter(({ id }, index) => index > end || kept.includes(id));
  }
  return shown;
}

/** A summary is written with its compaction. */
function addedMessages(entries: readonly Entry[]): AddedMessage[] {
  return entries
    .filter(({ type }) => type !== "context.compacted")
    .flatMap((entry) => messagesAddedBy(entry).map((id) => ({ id, turnId: addressOf(entry).turnId })));
}
