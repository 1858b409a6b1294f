import { MachineFold } from "../../runtime/index.ts";
import { addressOf, type Entry, type JournalRow, type Json } from "../../state/index.ts";

/** One transition of a machine. */
export interface TransitionAt {
  /** Cursor of the entry's row. */
  readonly cursor: number;
  readonly seq: number;
  readonly at: number;
  readonly machine: "agent" | "turn" | "toolCall";
  /** The id of the agent, turn or call. */
  readonly id: string;
  /** States as XState writes them: a name, or an object from a parent state to its child. */
  readonly from: Json;
  readonly to: Json;
  /** Type of the entry that caused the transition. */
  readonly entry: Entry["type"];
  /** Name of the guard that selected the transition; `null` if it has no guard. */
  readonly guard: string | null;
}

/** How often a state was entered, and how long the machine was in it. */
export interface VisitAt {
  readonly count: number;
  /** Milliseconds of all visits; the current visit counts until the moment. */
  readonly ms: number;
}

/** One machine at one moment. */
export interface MachineAt {
  /** The current state as XState writes it. */
  readonly value: Json;
  /** Paths of the active states, outermost first; `["busy", "busy.working"]`. */
  readonly path: readonly string[];
  /** The last transition; `null` if the machine is still in its first state. */
  readonly last: TransitionAt | null;
  /** By path. States that are passed through within one transition do not count. */
  readonly visits: Readonly<Record<string, VisitAt>>;
  /** Whether the turn or call is over. The machine then shows its last state. */
  readonly isOver: boolean;
}

/** The machines of one agent at one moment: the agent, its newest turn, and the calls of that turn's newest round. */
export interface AgentMachinesAt {
  readonly agentId: string;
  /** Number of the last entry and cursor of its row; 0 if there was none. */
  readonly seq: number;
  readonly cursor: number;
  readonly at: number;
  /** The last transition of any of them; `null` before the first one. */
  readonly last: TransitionAt | null;
  readonly agent: MachineAt;
  readonly turn: (MachineAt & { readonly turnId: string }) | null;
  readonly calls: readonly (MachineAt & { readonly callId: string; readonly name: string })[];
}

/** The moment at which to show the machines. */
export interface MachineMoment {
  /** Cursor of the last row to fold. Default: all rows. */
  readonly cursor?: number | undefined;
  /** Number of the agent's last entry to fold, also within that row. Default: all entries. */
  readonly seq?: number | undefined;
  /** The end of the current visits, in milliseconds since the epoch. Default: the time of the last entry. */
  readonly now?: number | undefined;
}

/** The states of an agent's machines at one moment, without their times. */
export interface MachineStates {
  readonly agent: { readonly value: Json };
  readonly turn: { readonly turnId: string; readonly value: Json } | null;
  readonly calls: readonly { readonly callId: string; readonly name: string; readonly value: Json }[];
  /** The last transition of any of them; `null` before the first one. */
  readonly last: TransitionAt | null;
}

/**
 * The machines of one agent at a moment, from the rows of its journal (`Stores.readJournal(key, 1)`). Folding takes about
 * 0.15 ms per entry, so fold only the agents that are shown.
 */
export function machinesAt(agentId: string, rows: readonly JournalRow[], moment: MachineMoment = {}): AgentMachinesAt {
  const { cursor = Number.POSITIVE_INFINITY, seq = Number.POSITIVE_INFINITY, now } = moment;
  const history = new MachineHistory(agentId);
  for (const row of rows) {
    if (row.cursor > cursor) break;
    for (const entry of row.entries) if (entry.seq <= seq) history.apply(entry, row.cursor);
  }
  return history.look(now);
}

/** All transitions of an agent's machines, in order. */
export function transitionsOf(agentId: string, rows: readonly JournalRow[]): readonly TransitionAt[] {
  const history = new MachineHistory(agentId);
  for (const { entries, cursor } of rows) for (const entry of entries) history.apply(entry, cursor);
  return history.transitions;
}

/** A machine entered a state, or began in its first state. */
interface Step {
  readonly cursor: number;
  readonly machine: TransitionAt["machine"];
  readonly id: string;
  readonly value: Json;
  /** Whether this step begins a new round of calls. */
  readonly endsRound?: boolean;
}

/**
 * The machines of one agent, from its first entry. Each entry is folded once; the states at an earlier moment are looked
 * up without folding again.
 */
export class MachineHistory {
  readonly #agentId: string;
  readonly #fold = new MachineFold(null);
  readonly #agent: Track;
  #turn: Track | undefined;
  #calls = new Map<string, Track>();
  readonly #names = new Map<string, string>();
  #moment = { seq: 0, cursor: 0, at: 0 };
  readonly #transitions: TransitionAt[] = [];
  readonly #ofAgent: Step[];
  /** Steps of turns and calls. */
  readonly #ofTurns: Step[] = [];
  /** The index in `#ofTurns` at which each turn begins. */
  readonly #turnsBegin: { readonly cursor: number; readonly place: number }[] = [];

  constructor(agentId: string) {
    this.#agentId = agentId;
    this.#agent = new Track("agent", agentId, this.#fold.values.agent);
    this.#ofAgent = [{ cursor: 0, machine: "agent", id: agentId, value: this.#fold.values.agent as Json }];
  }

  /** All transitions so far, in order. */
  get transitions(): readonly TransitionAt[] {
    return this.#transitions;
  }

  apply(entry: Entry, cursor: number): void {
    const { seq, at } = entry;
    this.#moment = { seq, cursor, at };
    this.#agent.begin(at);
    this.#fold.apply(entry);
    const { agent, turn, calls } = this.#fold.values;
    const move = (track: Track, value: unknown): void => {
      const before = this.#fold.heardBefore(track === this.#agent ? "" : track.id);
      const guard = (): string | null => (before ? guardOf(before, entry) : null);
      const transition = track.move(value, { entry, cursor, guard });
      if (!transition) return;
      this.#transitions.push(transition);
      const { machine, id, to } = transition;
      (track === this.#agent ? this.#ofAgent : this.#ofTurns).push({ cursor, machine, id, value: to });
    };
    move(this.#agent, agent);
    if (entry.type === "turn.started") {
      this.#turn = new Track("turn", entry.turnId, turn);
      this.#turn.begin(at);
      this.#calls = new Map();
      this.#turnsBegin.push({ cursor, place: this.#ofTurns.length });
      this.#ofTurns.push({ cursor, machine: "turn", id: entry.turnId, value: turn as Json });
    } else if (this.#turn && addressOf(entry).turnId === this.#turn.id) {
      const isOver = entry.type === "turn.ended";
      move(this.#turn, isOver ? this.#fold.lastTurnValue : turn);
      this.#turn.isOver = isOver;
      this.#followCalls(calls, entry, { cursor, move });
    }
  }

  #followCalls(
    calls: Readonly<Record<string, unknown>>,
    { at }: Entry,
    { cursor, move }: { readonly cursor: number; readonly move: (track: Track, value: unknown) => void },
  ): void {
    const ids = Object.keys(calls);
    // A call id that is not tracked yet begins a new round.
    let endsRound = !ids.every((id) => this.#calls.has(id));
    if (endsRound) this.#calls = new Map();
    for (const id of ids) {
      const known = this.#calls.get(id);
      const track = known ?? new Track("toolCall", id, calls[id]);
      if (!known) {
        this.#ofTurns.push({ cursor, machine: "toolCall", id, value: calls[id] as Json, endsRound });
        endsRound = false;
      }
      track.begin(at);
      this.#calls.set(id, track);
      this.#names.set(id, this.#fold.call(id)?.name ?? "");
      move(track, calls[id]);
      if (finalOfCall.has(track.path.at(-1) ?? "")) track.isOver = true;
    }
  }

  /** The machines after the last entry, with the times spent in states; `now` is the end of the current visits. */
  look(now: number = this.#moment.at): AgentMachinesAt {
    const turn = this.#turn;
    const isOver = turn?.isOver ?? false;
    return {
      agentId: this.#agentId,
      ...this.#moment,
      last: this.#transitions.at(-1) ?? null,
      agent: this.#agent.look(now),
      turn: turn ? { turnId: turn.id, ...turn.look(now) } : null,
      calls: [...this.#calls].map(([callId, track]) => {
        const call = track.look(now);
        return { callId, name: this.#names.get(callId) ?? "", ...call, isOver: isOver || call.isOver };
      }),
    };
  }

  /** The states after all rows up to a cursor. */
  at(cursor: number): MachineStates {
    const calls = new Map<string, Json>();
    let turn: MachineStates["turn"] = null;
    const begin = this.#turnsBegin[countUpTo(this.#turnsBegin, cursor) - 1]?.place ?? 0;
    const end = countUpTo(this.#ofTurns, cursor);
    for (let place = begin; place < end; place += 1) {
      const { machine, id, value, endsRound = false } = this.#ofTurns[place] as Step;
      if (endsRound) calls.clear();
      if (machine === "turn") turn = { turnId: id, value };
      else calls.set(id, value);
    }
    return {
      agent: { value: this.#ofAgent[countUpTo(this.#ofAgent, cursor) - 1]?.value ?? null },
      turn,
      calls: [...calls].map(([callId, value]) => ({ callId, name: this.#names.get(callId) ?? "", value })),
      last: this.#transitions[countUpTo(this.#transitions, cursor) - 1] ?? null,
    };
  }
}

/** How many items of a list sorted by cursor are at or before the cursor. */
export function countUpTo(list: readonly { readonly cursor: number }[], cursor: number): number {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((list[middle]?.cursor ?? 0) <= cursor) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The entry that may have moved a machine. `guard` is called only if it did. */
interface Cause {
  readonly entry: Entry;
  readonly cursor: number;
  readonly guard: () => string | null;
}

/** The state history of one machine. */
class Track {
  readonly id: string;
  readonly #machine: TransitionAt["machine"];
  #value: Json;
  #path: readonly string[];
  #last: TransitionAt | null = null;
  #hasBegun = false;
  readonly #visits = new Map<string, { count: number; ms: number; since: number | null }>();
  isOver = false;

  constructor(machine: TransitionAt["machine"], id: string, value: unknown) {
    this.#machine = machine;
    this.id = id;
    this.#value = value as Json;
    this.#path = pathOf(value);
    for (const path of this.#path) this.#enter(path, 0);
  }

  get path(): readonly string[] {
    return this.#path;
  }

  /** Starts the clock of the first state; has no effect once it has started. */
  begin(at: number): void {
    if (!this.#hasBegun) for (const visit of this.#visits.values()) visit.since = at;
    this.#hasBegun = true;
  }

  move(value: unknown, { entry, cursor, guard }: Cause): TransitionAt | undefined {
    const { seq, at, type } = entry;
    const to = pathOf(value);
    const from = this.#path;
    if (to.length === from.length && to.every((path, index) => path === from[index])) return undefined;
    for (const path of from) if (!to.includes(path)) this.#leave(path, at);
    for (const path of to) if (!from.includes(path)) this.#enter(path, at);
    const names = { machine: this.#machine, id: this.id };
    this.#last = { cursor, seq, at, ...names, from: this.#value, to: value as Json, entry: type, guard: guard() };
    this.#path = to;
    this.#value = value as Json;
    return this.#last;
  }

  look(now: number): MachineAt {
    const visits = [...this.#visits].map(([path, { count, ms, since }]) => {
      const open = since === null || this.isOver ? 0 : Math.max(0, now - since);
      return [path, { count, ms: ms + open }] as const;
    });
    return {
      value: this.#value,
      path: this.#path,
      last: this.#last,
      visits: Object.fromEntries(visits),
      isOver: this.isOver,
    };
  }

  #enter(path: string, at: number): void {
    const { count, ms } = this.#visits.get(path) ?? { count: 0, ms: 0 };
    this.#visits.set(path, { count: count + 1, ms, since: at });
  }

  #leave(path: string, at: number): void {
    const visit = this.#visits.get(path);
    if (!visit || visit.since === null) return;
    visit.ms += Math.max(0, at - visit.since);
    visit.since = null;
  }
}

const finalOfCall: ReadonlySet<string> = new Set(["settled", "outcomeUnknown"]);

/** The active states of a machine's value: `{ busy: "working" }` gives `busy` and `busy.working`. */
function pathOf(value: unknown, above = ""): readonly string[] {
  if (typeof value === "string") return [`${above}${value}`];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, below]) => [`${above}${name}`, ...pathOf(below, `${above}${name}.`)]);
}

type HeardBefore = NonNullable<ReturnType<MachineFold["heardBefore"]>>;

/**
 * The name of the guard that selected the transition of an entry; `null` if the transition has no guard. Guards are pure
 * functions of the state in which the machine received the entry, so they are evaluated again. Guards that are combined
 * by `and` are joined by ` & `, as in the charts.
 */
export function guardOf({ machine, snapshot }: HeardBefore, entry: Entry): string | null {
  const chosen = machine.getTransitionData(snapshot, entry).filter(({ target }) => target !== undefined);
  return chosen.map(({ guard }) => guardName(guard)).find((name) => name !== "") ?? null;
}

/** `and([…])` returns a function with the combined guards in `guards`. */
function guardName(guard: unknown): string {
  if (typeof guard === "string") return guard;
  if (typeof guard === "object" && guard !== null && "type" in guard) return String(guard.type);
  const { guards = [] } = (guard ?? {}) as { readonly guards?: readonly unknown[] };
  return guards.map(guardName).join(" & ");
}
