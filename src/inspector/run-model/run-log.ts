import type { Entry, EntryType } from "../../state/index.ts";

type Thin<One> = One extends Entry ? Omit<One, "epoch"> : never;
/** A journal entry as sent to a page: without its epoch, and possibly without contents. */
export type RunEntry = Thin<Entry>;
export type RunEntryOf<Type extends EntryType> = Extract<RunEntry, { type: Type }>;

/** One commit of one agent. */
export interface RunRow {
  readonly cursor: number;
  readonly agentId: string;
  readonly entries: readonly RunEntry[];
}

/** The immutable fields of an agent's record. */
export interface RunAgentRecord {
  readonly agentId: string;
  readonly name: string;
  /** Hash of its definition. */
  readonly definition: string;
  readonly parentAgentId: string | null;
  readonly parentTurnId: string | null;
  readonly parentStep: number | null;
  readonly parentCallId: string | null;
  readonly isBackground: boolean;
  readonly depth: number;
  readonly accountId: string | null;
  readonly parentAccountId: string | null;
  readonly sessionId: string | null;
  readonly createdAt: number;
  /** Where its tree left its origin, if it is a fork. */
  readonly origin?: { readonly runId: string; readonly turn: number; readonly step: number | null } | undefined;
  /** Its tools do not run: stubs give their results. */
  readonly isStubbed?: true | undefined;
}

/** An agent with its index in the log, and the indexes of its children in creation order. */
export interface RunAgent extends RunAgentRecord {
  readonly index: number;
  readonly parent: number;
  readonly children: number[];
}

/** Whether an entry of a fork was copied from its origin. */
export function isInherited({ agents: [root] }: Pick<RunLog, "agents">, { at }: Pick<RunEntry, "at">): boolean {
  return root?.origin !== undefined && at < root.createdAt;
}

/** A growing list of numbers in a typed array. */
class Column<Values extends Uint8Array | Uint32Array | Float64Array> {
  #values: Values;
  readonly #grown: (length: number) => Values;
  length = 0;

  constructor(grown: (length: number) => Values) {
    this.#grown = grown;
    this.#values = grown(1024);
  }

  push(value: number): void {
    if (this.length === this.#values.length) {
      const larger = this.#grown(this.length * 2);
      larger.set(this.#values as never);
      this.#values = larger;
    }
    this.#values[this.length] = value;
    this.length += 1;
  }

  /** 0 past the end. */
  at(index: number): number {
    return index < this.length ? (this.#values[index] ?? 0) : 0;
  }

  /** Removes the first `count` values. */
  drop(count: number): void {
    this.#values.copyWithin(0, count, this.length);
    this.length -= count;
  }
}

/** Maps texts to numbers and stores each text once. */
class Words {
  readonly texts: string[] = [];
  readonly #numbers = new Map<string, number>();

  numberOf(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    this.#numbers.set(text, this.texts.length);
    this.texts.push(text);
    return this.texts.length - 1;
  }
}

/** The start of a log that lacks the first entries of its run. */
export interface LogStart {
  /** Number of earlier entries. */
  readonly count: number;
  /** The cursor of the last earlier row. */
  readonly cursor: number;
  /** When the run began; `null` if it began with the first entry of the log. */
  readonly startedAt: number | null;
}

/**
 * The entries of a run in commit order, in columns, so that a page can hold 250,000 of them. An entry's index is its
 * number in the run, even if earlier entries were dropped.
 * Owns: entries and agents. Does not own: anything derived from them.
 *
 * 1. Rows are appended in cursor order; a row that the log already has is ignored.
 * 2. An agent is added before its first row.
 * 3. Agents stay when their entries are dropped.
 */
export class RunLog {
  /** The entries in memory; the first of them has the index `first`. */
  readonly entries: RunEntry[] = [];
  readonly agents: RunAgent[] = [];
  readonly types = new Words();
  /** Names in entries, such as tools, models, hooks and outcomes. */
  readonly words = new Words();
  readonly #byId = new Map<string, number>();
  readonly #agentOf = new Column((length) => new Uint32Array(length));
  readonly #cursorOf = new Column((length) => new Float64Array(length));
  readonly #timeOf = new Column((length) => new Float64Array(length));
  readonly #typeOf = new Column((length) => new Uint8Array(length));
  readonly #wordOf = new Column((length) => new Uint32Array(length));
  /** The cursor of the last row; 0 before the first row. */
  head: number;
  /** Index of the first entry in memory, which is also the number of earlier entries. */
  first: number;
  /** The cursor of the row before `first`; 0 if there is none. */
  cursorBefore: number;
  #startedAt: number | null;

  constructor({ count, cursor, startedAt }: LogStart = { count: 0, cursor: 0, startedAt: null }) {
    this.first = count;
    this.head = cursor;
    this.cursorBefore = cursor;
    this.#startedAt = startedAt;
  }

  /** Number of entries of the run so far, including dropped ones. */
  get length(): number {
    return this.first + this.entries.length;
  }

  /** `undefined` if the entry is not in memory. */
  entry(place: number): RunEntry | undefined {
    return this.entries[place - this.first];
  }

  /** Drops the entries before an index at which a row begins. */
  drop(until: number): void {
    this.cursorBefore = this.cursorOf(until - 1);
    const count = until - this.first;
    for (const column of [this.#agentOf, this.#cursorOf, this.#timeOf, this.#typeOf, this.#wordOf]) column.drop(count);
    this.entries.splice(0, count);
    this.first = until;
  }

  /** Adds agents, given in any order. Parents are added before their children. */
  addAgents(records: readonly RunAgentRecord[]): void {
    const coming = new Map(records.map((record) => [record.agentId, record]));
    for (const record of records) this.#addAgent(record, coming);
  }

  #addAgent(record: RunAgentRecord, coming: ReadonlyMap<string, RunAgentRecord>): void {
    const { agentId, parentAgentId } = record;
    if (this.#byId.has(agentId)) return;
    const above = parentAgentId === null ? undefined : coming.get(parentAgentId);
    if (above) this.#addAgent(above, coming);
    const parent = parentAgentId === null ? -1 : this.indexOfAgent(parentAgentId);
    const index = this.agents.length;
    this.#byId.set(agentId, index);
    this.agents.push({ ...record, index, parent, children: [] });
    this.agents[parent]?.children.push(index);
  }

  /** -1 if the agent is not known. */
  indexOfAgent(agentId: string): number {
    return this.#byId.get(agentId) ?? -1;
  }

  append(rows: readonly RunRow[]): void {
    for (const row of rows) {
      if (row.cursor <= this.head) continue;
      const agent = this.indexOfAgent(row.agentId);
      if (agent < 0) continue;
      this.head = row.cursor;
      for (const entry of row.entries) this.#add(agent, row.cursor, entry);
    }
  }

  #add(agent: number, cursor: number, entry: RunEntry): void {
    const before = this.entries.length === 0 ? entry.at : this.timeOf(this.length - 1);
    this.#startedAt ??= entry.at;
    this.entries.push(entry);
    this.#agentOf.push(agent);
    this.#cursorOf.push(cursor);
    // Clocks of processes differ, so keep times ascending.
    this.#timeOf.push(Math.max(before, entry.at));
    this.#typeOf.push(this.types.numberOf(entry.type));
    this.#wordOf.push(this.words.numberOf(wordOf(entry)));
  }

  agentOf(index: number): number {
    return this.#agentOf.at(index - this.first);
  }

  cursorOf(index: number): number {
    return this.#cursorOf.at(index - this.first);
  }

  timeOf(index: number): number {
    return this.#timeOf.at(index - this.first);
  }

  typeOf(index: number): number {
    return this.#typeOf.at(index - this.first);
  }

  wordOf(index: number): number {
    return this.#wordOf.at(index - this.first);
  }

  /** When the run began, even if its first entries are not in memory. */
  get startedAt(): number {
    return this.#startedAt ?? 0;
  }

  get endedAt(): number {
    return this.timeOf(this.length - 1);
  }

  /** Number of entries up to and including the row with that cursor. */
  countUpTo(cursor: number): number {
    return this.#firstAfter((index) => this.cursorOf(index) > cursor);
  }

  /** The address of the moment after `count` entries: `CURSOR`, or `CURSOR.N` within a row. */
  addressOf(count: number): string {
    if (count === this.first) return String(this.cursorBefore);
    const cursor = this.cursorOf(count - 1);
    if (count === this.countUpTo(cursor)) return String(cursor);
    return `${cursor}.${count - this.countUpTo(cursor - 1)}`;
  }

  /** Number of entries up to that time. */
  countUntil(time: number): number {
    return this.#firstAfter((index) => this.timeOf(index) > time);
  }

  #firstAfter(isAfter: (index: number) => boolean): number {
    let low = this.first;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isAfter(middle)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** The name by which an entry can be found: of a tool, model, hook, limit or outcome. */
function wordOf(entry: RunEntry): string {
  switch (entry.type) {
    case "tool.settled":
      return entry.outcome === "success" ? entry.name : `${entry.name} ${entry.outcome}`;
    case "call.gated":
      return entry.verdict === "allowed" ? entry.name : `${entry.name} ${entry.verdict}`;
    case "tool.started":
    case "request.opened":
    case "artifact.saved":
    case "child.reported":
      return entry.name;
    case "request.decided":
      return `${entry.name} ${entry.verdict} ${entry.by ?? ""}`;
    case "model.requested":
    case "model.responded":
    case "generate.requested":
      return entry.model;
    case "model.failed":
    case "tool.retrying":
    case "generate.failed":
    case "effect.failed":
      return entry.error.code;
    case "hook.applied":
      return `${entry.hook} ${entry.plugin}`;
    case "child.spawned":
      return entry.definition.name;
    case "child.ended":
    case "turn.ended":
      return `${entry.outcome} ${entry.stopReason}`;
    case "intent.refused":
      return `${entry.intent} ${entry.reason} ${entry.limit ?? ""}`;
    case "budget.changed":
      return entry.accountId;
    case "budget.warning":
      return entry.limit;
    case "stop.signalled":
    case "timer.due":
      return entry.signal.reason;
    case "warning":
      return entry.code;
    default:
      return "";
  }
}
