import type { Moment } from "../../budget/index.ts";
import { type AgentKey, type InboxItem, inboxItemSchema, type Timer, timerSchema } from "../../state/index.ts";
import { isDue } from "../rules/queries.ts";
import {
  CorruptTimers,
  integerOf,
  parsed,
  type Row,
  textColumn,
  textOrNullOf,
  wellFormed,
} from "../rules/stored-values.ts";
import type { ProcessRow } from "../rules/tables.ts";
import { KeyedCache } from "./keyed-cache.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import type { AgentSlot } from "./sqlite-heads.ts";
import type { Statement } from "./sqlite-statement.ts";

/** Timers and registered processes. */
export class SqlitePending {
  readonly #damaged = new CorruptTimers();
  readonly #statements: Readonly<
    Record<
      | "setTimer"
      | "clearTimer"
      | "timers"
      | "timer"
      | "dueTimers"
      | "nextTimer"
      | "process"
      | "processes"
      | "putProcess"
      | "removeProcess",
      Statement
    >
  >;

  constructor(connection: SqliteConnection) {
    this.#statements = {
      setTimer: connection.prepare(
        `INSERT INTO timers (agent, timer_id, due_at, timer) VALUES (?, ?, ?, ?)
         ON CONFLICT (agent, timer_id) DO UPDATE SET due_at = excluded.due_at, timer = excluded.timer`,
      ),
      clearTimer: connection.prepare("DELETE FROM timers WHERE agent = ? AND timer_id = ?"),
      timers: connection.prepare("SELECT timer FROM timers WHERE agent = ? ORDER BY due_at, timer_id"),
      timer: connection.prepare("SELECT timer FROM timers WHERE agent = ? AND timer_id = ?"),
      dueTimers: connection.prepare(
        `SELECT agent_id, timer_id, timer FROM timers JOIN agents ON agents.id = timers.agent
         WHERE due_at <= ? ORDER BY due_at`,
      ),
      nextTimer: connection.prepare("SELECT due_at FROM timers ORDER BY due_at LIMIT 1"),
      process: connection.prepare("SELECT * FROM processes WHERE process_id = ?"),
      processes: connection.prepare("SELECT * FROM processes"),
      putProcess: connection.prepare(
        `INSERT INTO processes (process_id, pid, boot_id, start_time, heartbeat_at, clock_offset) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (process_id) DO UPDATE SET pid = excluded.pid, boot_id = excluded.boot_id,
           start_time = excluded.start_time, heartbeat_at = excluded.heartbeat_at,
           clock_offset = excluded.clock_offset`,
      ),
      removeProcess: connection.prepare("DELETE FROM processes WHERE process_id = ?"),
    };
  }

  setTimer(slot: AgentSlot, timer: Timer): void {
    this.#statements.setTimer.run(slot.id, wellFormed(timer.id, "timer id"), timer.dueAt, JSON.stringify(timer));
  }

  clearTimer(slot: AgentSlot, timerId: string): void {
    this.#statements.clearTimer.run(slot.id, wellFormed(timerId, "timer id"));
  }

  timers(slot: AgentSlot): Timer[] {
    return this.#statements.timers.all(slot.id).map((row) => timerIn(row));
  }

  timer(slot: AgentSlot, timerId: string): Timer | undefined {
    const row = this.#statements.timer.get(slot.id, wellFormed(timerId, "timer id"));
    return row && timerIn(row);
  }

  dueTimers(moment: Moment, limit: number): Timer[] {
    const due: Timer[] = [];
    // Wall-clock and steady time differ: a timer before the later of the two may not be due.
    for (const row of this.#statements.dueTimers.iterate(Math.max(moment.now, moment.steady))) {
      if (due.length >= limit) break;
      const timer = this.#damaged.skipCorrupt(() => {
        const of = textColumn(row, "agent_id", "a timer");
        return timerIn(row, `timer ${textColumn(row, "timer_id", "a timer")} of agent ${of}`);
      });
      if (timer && isDue(timer, moment)) due.push(timer);
    }
    return due;
  }

  nextTimerAt(): number | undefined {
    const row = this.#statements.nextTimer.get();
    return row && integerOf(row, "due_at", "a timer");
  }

  process(processId: string): ProcessRow | undefined {
    const row = this.#statements.process.get(wellFormed(processId, "process id"));
    return row && processIn(row);
  }

  processes(): ProcessRow[] {
    return this.#statements.processes.all().map(processIn);
  }

  putProcess({ processId, pid, bootId, startTime, heartbeatAt, clockOffset }: ProcessRow): void {
    const id = wellFormed(processId, "process id");
    this.#statements.putProcess.run(id, pid, bootId, startTime, heartbeatAt, clockOffset);
  }

  removeProcess(processId: string): void {
    this.#statements.removeProcess.run(wellFormed(processId, "process id"));
  }
}

/** Number of cached inboxes; each is complete. */
const CAPACITY = 4000;

interface KnownInbox {
  /** The integer key of its agent; another agent may have the same id. */
  readonly agent: number;
  /** The generation in which the items match the file. */
  readonly generation: number;
  /** By key, in their order. */
  readonly items: Map<string, InboxItem>;
}

export class SqliteInbox {
  readonly #connection: SqliteConnection;
  readonly #statements: Readonly<Record<"add" | "items" | "remove", Statement>>;
  readonly #known = new KeyedCache<KnownInbox>(CAPACITY);

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.#statements = {
      add: connection.prepare("INSERT INTO inbox (agent, item_key, item) VALUES (?, ?, ?)"),
      items: connection.prepare("SELECT item_key, item FROM inbox WHERE agent = ? ORDER BY id"),
      remove: connection.prepare("DELETE FROM inbox WHERE agent = ? AND item_key = ?"),
    };
  }

  add(slot: AgentSlot, item: InboxItem): boolean {
    const key = wellFormed(item.key, "inbox key");
    const { items } = this.#of(slot);
    if (items.has(key)) return false;
    this.#statements.add.run(slot.id, key, JSON.stringify(item));
    items.set(key, item);
    return true;
  }

  rest(keys: readonly AgentKey[]): void {
    this.#known.dropTrees(keys, (agentId) => agentId);
  }

  items(slot: AgentSlot): InboxItem[] {
    return [...this.#of(slot).items.values()];
  }

  size(slot: AgentSlot): number {
    return this.#of(slot).items.size;
  }

  remove(slot: AgentSlot, itemKeys: readonly string[]): void {
    const { items } = this.#of(slot);
    for (const key of itemKeys) {
      if (items.delete(wellFormed(key, "inbox key"))) this.#statements.remove.run(slot.id, key);
    }
  }

  #of(slot: AgentSlot): KnownInbox {
    const { tenant, agentId } = slot.record.value;
    const known = this.#known.get(tenant, agentId);
    if (known?.agent === slot.id && this.#connection.isCurrent(known.generation)) return known;
    const where = `the inbox of agent ${agentId}`;
    const items = this.#statements.items
      .all(slot.id)
      .map(
        (row) =>
          [textColumn(row, "item_key", where), parsed(inboxItemSchema, textColumn(row, "item", where), where)] as const,
      );
    const inbox: KnownInbox = { agent: slot.id, generation: this.#connection.generation, items: new Map(items) };
    this.#known.set(tenant, agentId, inbox);
    return inbox;
  }
}

/** Finds the inboxes that are not empty. */
export class SqlitePosts {
  readonly #posted: Statement;

  constructor(connection: SqliteConnection) {
    this.#posted = connection.prepare("SELECT tenant, agent_id FROM agents WHERE id IN (SELECT agent FROM inbox)");
  }

  among(keys: readonly AgentKey[]): AgentKey[] {
    const place = "the list of agents with something in their inbox";
    const posted = new Map<string, Set<string>>();
    for (const row of this.#posted.all()) {
      const tenant = textColumn(row, "tenant", place);
      posted.set(tenant, (posted.get(tenant) ?? new Set()).add(textColumn(row, "agent_id", place)));
    }
    return keys.filter(({ tenant, agentId }) => posted.get(tenant)?.has(agentId));
  }
}

function processIn(row: Row): ProcessRow {
  const processId = textColumn(row, "process_id", "a process");
  const where = `process ${processId}`;
  return {
    processId,
    pid: integerOf(row, "pid", where),
    bootId: textColumn(row, "boot_id", where),
    startTime: textOrNullOf(row, "start_time", where),
    heartbeatAt: integerOf(row, "heartbeat_at", where),
    clockOffset: integerOf(row, "clock_offset", where),
  };
}

function timerIn(row: Row, where = "a timer"): Timer {
  return parsed(timerSchema, textColumn(row, "timer", where), where);
}

const where = "the list of agents with something to do";

/** The cost of each query grows only with the size of its result. */
export const candidateQueries = {
  nextHolder: "SELECT holder FROM heads WHERE work = 'open' AND holder > ? ORDER BY holder LIMIT 1",
  atWork: "SELECT agent FROM heads WHERE work = 'open' AND holder IS ? AND agent > ? ORDER BY agent LIMIT ?",
  posted: "SELECT DISTINCT agent FROM inbox WHERE agent > ? ORDER BY agent LIMIT ?",
  agent: "SELECT tenant, agent_id FROM agents WHERE id = ?",
} as const;

/** Lists agents that may be unattended, from the index of open work and from the inboxes. */
export class SqliteCandidates {
  readonly #statements: Readonly<Record<"nextHolder" | "atWork" | "posted" | "agent", Statement>>;

  constructor(connection: SqliteConnection) {
    const { nextHolder, atWork, posted, agent } = candidateQueries;
    this.#statements = {
      nextHolder: connection.prepare(nextHolder),
      atWork: connection.prepare(atWork),
      posted: connection.prepare(posted),
      agent: connection.prepare(agent),
    };
  }

  /** In the order of their integer keys, after `start`; `page`: how many are read at once. */
  *after(tenant: string, isLiving: (processId: string) => boolean, start: number, page: number): Generator<AgentKey> {
    const lost = this.#deadHolders(isLiving);
    for (let after = start; ; ) {
      const pages = [
        this.#statements.posted.all(after, page),
        ...lost.map((holder) => this.#statements.atWork.all(holder, after, page)),
      ].map((rows) => rows.map((row) => integerOf(row, "agent", where)));
      // Ids after the end of a full page may also be in the next page of another query.
      const end = Math.min(...pages.map((ids) => (ids.length < page ? Number.POSITIVE_INFINITY : (ids.at(-1) ?? 0))));
      const found = [...new Set(pages.flat())].filter((id) => id <= end).sort((one, other) => one - other);
      for (const id of found) {
        const row = this.#statements.agent.get(id);
        if (row && textColumn(row, "tenant", where) === tenant)
          yield { tenant, agentId: textColumn(row, "agent_id", where) };
      }
      if (end === Number.POSITIVE_INFINITY) return;
      after = end;
    }
  }

  /** The dead holders of open work, and `null` for no holder; each is found with one index lookup. */
  #deadHolders(isLiving: (processId: string) => boolean): (string | null)[] {
    const lost: (string | null)[] = [null];
    for (let holder = ""; ; ) {
      const row = this.#statements.nextHolder.get(holder);
      const next = row ? textOrNullOf(row, "holder", where) : null;
      if (next === null) return lost;
      if (!isLiving(next)) lost.push(next);
      holder = next;
    }
  }
}
