import { MachineFold } from "../../runtime/index.ts";
import { addressOf, type Entry, type JournalRow } from "../../state/index.ts";

/** A machine's way into its present state. */
export interface TransitionAt {
  /** Active paths, outermost first: `busy.working`. */
  readonly from: readonly string[];
  readonly to: readonly string[];
  /** The entry that made it. */
  readonly seq: number;
  readonly at: number;
  readonly type: Entry["type"];
}

/** How often a state was entered, and how long the machine was in it. */
export interface VisitAt {
  readonly count: number;
  /** Milliseconds of all visits, the present one until the moment that is looked at. */
  readonly ms: number;
}

/** One machine at one moment. */
export interface MachineAt {
  /** Paths of the active states, outermost first; `["busy", "busy.working"]`. */
  readonly path: readonly string[];
  /** Null: it is in its first state. */
  readonly last: TransitionAt | null;
  /** By path. States that the machine passed through within one transition are not visited. */
  readonly visits: Readonly<Record<string, VisitAt>>;
  /** Whether its turn, or its call, is over: it is shown as it was last. */
  readonly isOver: boolean;
}

/** The machines of one agent at one moment: the newest turn, and the calls of its newest round. */
export interface AgentMachinesAt {
  /** Of the last entry; 0 if there was none. */
  readonly seq: number;
  readonly at: number;
  readonly agent: MachineAt;
  readonly turn: (MachineAt & { readonly turnId: string }) | null;
  readonly calls: Readonly<Record<string, MachineAt>>;
}

/** The moment that is looked at. */
export interface MachineMoment {
  /** The last row of the tree that counts. Absent: all do. */
  readonly cursor?: number | undefined;
  /** The last entry of the agent that counts, within that row too. Absent: all do. */
  readonly seq?: number | undefined;
  /** Until when the present states have lasted, in milliseconds since the epoch. Default: the time of the last entry. */
  readonly now?: number | undefined;
}

/**
 * The machines of one agent at a moment, from the rows of its journal (`Stores.readJournal(key, 1)`). Each entry takes about
 * 0.15 ms, so an agent is folded when somebody looks at it, and never all of them.
 */
export function machinesAt(rows: readonly JournalRow[], moment: MachineMoment = {}): AgentMachinesAt {
  const { cursor = Number.POSITIVE_INFINITY, seq = Number.POSITIVE_INFINITY, now } = moment;
  const replay = new MachineReplay();
  for (const row of rows) {
    if (row.cursor > cursor) break;
    for (const entry of row.entries) if (entry.seq <= seq) replay.apply(entry);
  }
  return replay.look(now);
}

/** All transitions of an agent's machines, in order. */
export function transitionsOf(rows: readonly JournalRow[]): readonly NamedTransition[] {
  const replay = new MachineReplay();
  return rows.flatMap(({ entries }) => entries.flatMap((entry) => replay.apply(entry)));
}

/** A transition and the machine that made it: its agent (both null), a turn or a call. */
export interface NamedTransition extends TransitionAt {
  readonly turnId: string | null;
  readonly callId: string | null;
}

/** Follows one agent from its first entry on. */
class MachineReplay {
  readonly #fold = new MachineFold(null);
  readonly #agent: Track;
  #turn: { readonly turnId: string; readonly track: Track } | undefined;
  #calls = new Map<string, Track>();
  #last: { readonly seq: number; readonly at: number } = { seq: 0, at: 0 };
  #hasBegun = false;

  constructor() {
    this.#agent = new Track(this.#fold.values.agent, 0);
  }

  apply(entry: Entry): NamedTransition[] {
    const { seq, at } = entry;
    if (!this.#hasBegun) this.#agent.begin(at);
    this.#hasBegun = true;
    this.#fold.apply(entry);
    this.#last = { seq, at };
    const { agent, turn, calls } = this.#fold.values;
    const made: NamedTransition[] = [];
    const move = (track: Track, value: unknown, turnId: string | null, callId: string | null): void => {
      const transition = track.move(value, entry);
      if (transition) made.push({ ...transition, turnId, callId });
    };
    move(this.#agent, agent, null, null);
    const { turnId } = addressOf(entry);
    if (entry.type === "turn.started") {
      this.#turn = { turnId: entry.turnId, track: new Track(turn, at) };
      this.#calls = new Map();
      return made;
    }
    if (this.#turn === undefined || turnId !== this.#turn.turnId) return made;
    const { track } = this.#turn;
    const isOver = entry.type === "turn.ended";
    move(track, isOver ? this.#fold.lastTurnValue : turn, turnId, null);
    track.isOver = isOver;
    this.#followCalls(calls, entry, (track, value, callId) => move(track, value, turnId, callId));
    return made;
  }

  #followCalls(
    calls: Readonly<Record<string, unknown>>,
    entry: Entry,
    move: (track: Track, value: unknown, callId: string) => void,
  ): void {
    const ids = Object.keys(calls);
    // A new round has other calls.
    if (ids.length > 0 && !ids.every((id) => this.#calls.has(id))) this.#calls = new Map();
    for (const id of ids) {
      const track = this.#calls.get(id);
      if (track) move(track, calls[id], id);
      else this.#calls.set(id, new Track(calls[id], entry.at));
    }
  }

  look(now: number = this.#last.at): AgentMachinesAt {
    const turn = this.#turn && { turnId: this.#turn.turnId, ...this.#turn.track.look(now) };
    const isOver = this.#turn?.track.isOver ?? false;
    const calls = [...this.#calls].map(([id, track]) => {
      const call = track.look(now);
      return [id, { ...call, isOver: isOver || call.isOver }] as const;
    });
    return { ...this.#last, agent: this.#agent.look(now), turn: turn ?? null, calls: Object.fromEntries(calls) };
  }
}

/** The states of one machine so far. */
class Track {
  #path: readonly string[];
  #last: TransitionAt | null = null;
  readonly #visits = new Map<string, { count: number; ms: number; since: number | null }>();
  isOver = false;

  constructor(value: unknown, at: number) {
    this.#path = pathOf(value);
    for (const path of this.#path) this.#enter(path, at);
  }

  /** An agent is in its first state from its first entry on, as far as the journal knows. */
  begin(at: number): void {
    for (const visit of this.#visits.values()) visit.since = at;
  }

  move(value: unknown, { seq, at, type }: Entry): TransitionAt | undefined {
    const to = pathOf(value);
    const from = this.#path;
    if (to.length === from.length && to.every((path, index) => path === from[index])) return undefined;
    for (const path of from) if (!to.includes(path)) this.#leave(path, at);
    for (const path of to) if (!from.includes(path)) this.#enter(path, at);
    this.#path = to;
    this.#last = { from, to, seq, at, type };
    this.isOver = to.some((path) => finalOfCall.has(path));
    return this.#last;
  }

  look(now: number): MachineAt {
    const visits = [...this.#visits].map(([path, { count, ms, since }]) => {
      const open = since === null || this.isOver ? 0 : Math.max(0, now - since);
      return [path, { count, ms: ms + open }] as const;
    });
    return { path: this.#path, last: this.#last, visits: Object.fromEntries(visits), isOver: this.isOver };
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
