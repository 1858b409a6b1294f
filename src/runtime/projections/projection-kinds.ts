import {
  type Entry,
  type EntryOf,
  type JournalRow,
  type Message,
  type AgentRecord,
  messagesAddedBy,
  statusOf,
} from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type {
  MessageStore,
  AgentMetadata,
  ArtifactStore,
  Projections,
  StateStore,
} from "../doors/projection-stores.ts";

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
  /** The writes for consecutive rows of one tree, to be done in order. */
  steps(rows: readonly JournalRow[]): readonly ProjectionStep[];
}

/** `stores`: the durable ones, because unsaved trees are not copied. */
export function projectionsOf(
  { messages, artifacts, state }: Projections,
  stores: Stores,
  tenant: string,
): readonly Projection[] {
  const projections: Projection[] = [];
  const add = (kind: string, name: string | undefined, words: string, steps: Projection["steps"]): void => {
    projections.push({ name: name === undefined ? kind : `${kind}/${name}`, words, steps });
  };
  if (messages) {
    add("messages", messages.name, "message store", (rows) => messageSteps(stores, tenant, messages, rows));
  }
  if (artifacts) {
    add("artifacts", artifacts.name, "artifact store", (rows) =>
      oneStep(rows, () => copyArtifacts(stores, tenant, artifacts, rows)),
    );
  }
  if (state) {
    add("state", state.name, "state store", (rows) => oneStep(rows, () => copyStates(stores, tenant, state, rows)));
  }
  return projections;
}

function oneStep(rows: readonly JournalRow[], write: () => Promise<void>): ProjectionStep[] {
  const last = rows.at(-1);
  return last ? [{ through: last.cursor, write }] : [];
}

async function copyArtifacts(
  stores: Stores,
  tenant: string,
  store: ArtifactStore,
  rows: readonly JournalRow[],
): Promise<void> {
  for (const { agentId, entries } of rows) {
    const isCleared = entries.some((entry) => entry.type === "conversation.cleared" && entry.scope === "all");
    if (isCleared) await store.clear?.(agentId);
    for (const entry of entries) {
      if (entry.type !== "artifact.saved") continue;
      const artifact = await stores.artifact({ tenant, agentId }, entry.artifactId);
      if (artifact) await store.save(agentId, artifact);
    }
  }
}

async function copyStates(
  stores: Stores,
  tenant: string,
  store: StateStore,
  rows: readonly JournalRow[],
): Promise<void> {
  for (const agentId of new Set(rows.map((row) => row.agentId))) {
    const record = await stores.readAgent({ tenant, agentId });
    if (record) await store.save(agentId, metadataOf(record));
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
 * Rows that only add messages are written together, in one `append` for each agent. A row that clears or compacts is a
 * separate step: once the cursor is past the rows before it, a repetition cannot write again what it removed.
 */
export function messageSteps(
  stores: Stores,
  tenant: string,
  store: MessageStore,
  rows: readonly JournalRow[],
): ProjectionStep[] {
  const write = new MessageWrites(stores, tenant, store);
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
  readonly #stores: Stores;
  readonly #tenant: string;
  readonly #store: MessageStore;

  constructor(stores: Stores, tenant: string, store: MessageStore) {
    this.#stores = stores;
    this.#tenant = tenant;
    this.#store = store;
  }

  async added(rows: readonly JournalRow[]): Promise<void> {
    const ids = new Map<string, string[]>();
    for (const { agentId, entries } of rows) {
      ids.set(agentId, [...(ids.get(agentId) ?? []), ...entries.flatMap(writtenBy)]);
    }
    for (const [agentId, ofAgent] of ids) await this.#append(agentId, ofAgent);
  }

  async changed({ agentId, entries }: JournalRow): Promise<void> {
    // Clears first, because the row's own messages come after the clearing and stay.
    if (entries.some(({ type }) => type === "conversation.cleared")) await this.#store.clear?.(agentId);
    const compactions = entries.filter((entry) => entry.type === "context.compacted");
    await this.#append(agentId, shownIds(entries.flatMap(writtenBy), compactions));
    for (const { through, kept, summaryMessageId } of compactions) {
      const [summary = null] = summaryMessageId === null ? [] : await this.#messages(agentId, [summaryMessageId]);
      await this.#store.compact(agentId, { through, kept, summary });
    }
  }

  async #append(agentId: string, ids: readonly string[]): Promise<void> {
    const messages = await this.#messages(agentId, [...new Set(ids)]);
    if (messages.length > 0) await this.#store.append(agentId, messages);
  }

  /** Messages that were cleared since are missing. */
  async #messages(agentId: string, ids: readonly string[]): Promise<Message[]> {
    return ids.length === 0 ? [] : await this.#stores.messagesById({ tenant: this.#tenant, agentId }, ids);
  }
}

/** Leaves out messages that the row's own compactions remove: a repeated write would append them again at the end. */
function shownIds(ids: readonly string[], compactions: readonly EntryOf<"context.compacted">[]): readonly string[] {
  let shown = ids;
  for (const { through, kept } of compactions) {
    const end = shown.indexOf(through);
    shown = shown.filter((id, index) => index > end || kept.includes(id));
  }
  return shown;
}

/** A summary is written with its compaction. */
function writtenBy(entry: Entry): readonly string[] {
  return entry.type === "context.compacted" ? [] : messagesAddedBy(entry);
}
