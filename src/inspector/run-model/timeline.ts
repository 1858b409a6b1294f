import { milliseconds } from "./event-rows.ts";
import type { RunEntry, RunLog } from "./run-log.ts";

/** Activities of an agent: `child` is a wait for subagents, `person` for a decision, `budget` for free budget. */
export const spanKinds = ["model", "retry", "queue", "tool", "child", "person", "budget", "pause"] as const;
export type SpanKind = (typeof spanKinds)[number];

/** The kinds in words, for people. */
export const spanWords: Readonly<Record<SpanKind, string>> = {
  model: "model call",
  retry: "wait before a retry",
  queue: "in a queue",
  tool: "tool",
  child: "waits for subagents",
  person: "waits for a person",
  budget: "waits for budget",
  pause: "paused",
};

export interface Span {
  readonly kind: SpanKind;
  /** Milliseconds since the epoch. */
  readonly start: number;
  /** Infinity while it is open. */
  end: number;
  /** Lane number from 0. Concurrent spans are in different lanes. */
  readonly lane: number;
  label: string;
  readonly callId: string | null;
  /** Index of its first entry in the log. */
  readonly first: number;
  /** Index of the entry that ended it; -1 while it is open. */
  last: number;
  isFailed: boolean;
  tokens: number;
  costMicros: number;
  /** Whether the price of the call is not known. */
  isUnpriced: boolean;
}

/** Time in which at least one agent worked. `end` is Infinity while the work continues. */
export interface BusyTime {
  readonly start: number;
  readonly end: number;
}

/** The status of a server's refusal, such as `429`, else the error code. */
function errorWord({ code, message }: { readonly code: string; readonly message: string }): string {
  return /^[45]\d\d\b/.exec(message)?.[0] ?? code;
}

/** Further concurrent calls share the last lane. */
const MOST_LANES = 8;

/** Kinds that count as work. Time without work is folded. */
const working: ReadonlySet<SpanKind> = new Set(["model", "tool", "retry"]);

/** The open spans of an agent at an index of the log, for a timeline that continues from that index. */
export interface OpenSpans {
  /** Index of the agent in the log. */
  readonly agent: number;
  /** By call id, or by kind. */
  readonly spans: readonly (readonly [string, Span])[];
  /** Ids of the subagents that the agent waits for. */
  readonly awaited: readonly string[];
  readonly lanes: number;
}

interface AgentSpans {
  spans: Span[];
  /** Open spans by call id, or by kind. */
  readonly open: Map<string, Span>;
  /** Number of open spans in each lane. */
  readonly inLane: number[];
  awaited: Set<string>;
  lanes: number;
}

/**
 * The spans of each agent, from the log.
 * Owns: spans. Does not own: the log, the axis.
 */
export class Timeline {
  readonly #log: RunLog;
  readonly #agents: AgentSpans[] = [];
  #read: number;
  readonly #busy: { start: number; end: number }[] = [];
  #working = 0;
  readonly #kinds = new Set<SpanKind>();

  /** `carried`: the `open` spans of an earlier timeline, from before the first entry of the log. */
  constructor(log: RunLog, carried: readonly OpenSpans[] = []) {
    this.#log = log;
    this.#read = log.first;
    for (const { agent, spans, awaited, lanes } of carried) {
      const own = this.#agentAt(agent);
      own.awaited = new Set(awaited);
      own.lanes = lanes;
      for (const [key, span] of spans) this.#take(own, key, { ...span });
    }
  }

  /** The spans that are open after all entries read so far. */
  get open(): readonly OpenSpans[] {
    return this.#agents.flatMap((own, agent) => {
      if (own.open.size === 0) return [];
      const spans = [...own.open].map(([key, span]) => [key, { ...span }] as const);
      return [{ agent, spans, awaited: [...own.awaited], lanes: own.lanes }];
    });
  }

  /** Reads new entries of the log, up to `until`. Returns whether there were any. */
  update(until = this.#log.length): boolean {
    if (this.#read >= until) return false;
    if (this.#read === this.#log.first) this.#beginBusyAt(this.#read);
    for (; this.#read < until; this.#read += 1) {
      const entry = this.#log.entry(this.#read);
      if (entry) this.#add(this.#agentAt(this.#log.agentOf(this.#read)), entry, this.#log.timeOf(this.#read));
    }
    return true;
  }

  /** Drops spans that ended before an index of the log. */
  drop(until: number): void {
    for (const agent of this.#agents) {
      if (agent) agent.spans = agent.spans.filter(({ last }) => last < 0 || last >= until);
    }
    this.#beginBusyAt(until);
  }

  /** Drops busy time before an index of the log. */
  #beginBusyAt(place: number): void {
    const start = this.#log.timeOf(place);
    const kept = this.#busy.findIndex(({ end }) => end >= start);
    this.#busy.splice(0, kept < 0 ? this.#busy.length : kept);
    const [first] = this.#busy;
    if (first) first.start = Math.max(first.start, start);
  }

  /** Busy times, sorted and without overlaps. */
  get busy(): readonly BusyTime[] {
    return this.#busy;
  }

  /** The kinds of all spans so far. */
  get kinds(): ReadonlySet<SpanKind> {
    return this.#kinds;
  }

  spansOf(agent: number): readonly Span[] {
    return this.#agents[agent]?.spans ?? [];
  }

  lanesOf(agent: number): number {
    return this.#agents[agent]?.lanes ?? 0;
  }

  *all(): Generator<Span> {
    for (const agent of this.#agents) if (agent) yield* agent.spans;
  }

  #agentAt(index: number): AgentSpans {
    const agent = this.#agents[index] ?? { spans: [], open: new Map(), inLane: [], awaited: new Set(), lanes: 0 };
    this.#agents[index] = agent;
    return agent;
  }

  #add(agent: AgentSpans, entry: RunEntry, at: number): void {
    switch (entry.type) {
      case "model.requested":
        this.#close(agent, "retry", at);
        this.#close(agent, "budget", at);
        this.#close(agent, "pause", at);
        if (entry.reservation !== null) this.#begin(agent, { key: "model", kind: "model", label: entry.model, at });
        return;
      case "model.responded": {
        const span = this.#close(agent, "model", at);
        if (!span) return;
        span.tokens = entry.usage.inputTokens + entry.usage.outputTokens;
        span.costMicros = entry.costMicros ?? 0;
        span.isUnpriced = entry.costMicros === null;
        return;
      }
      case "model.failed": {
        const failed = this.#close(agent, "model", at, true);
        const { error, retryAt, settlement } = entry;
        if (failed) {
          failed.label = `${failed.label}: ${errorWord(error)}`;
          failed.tokens = settlement?.tokens ?? 0;
          failed.costMicros = settlement?.costMicros ?? 0;
        }
        if (retryAt === null) return;
        const wait = `retry in ${milliseconds(Math.max(0, retryAt - entry.at))}`;
        const label = `${errorWord(error)} · ${entry.next ? `${entry.next.model}, ` : ""}${wait}`;
        this.#begin(agent, { key: "retry", kind: "retry", label, at });
        return;
      }
      case "intent.refused":
        if (entry.reason === "mustWait") {
          this.#begin(agent, { key: "budget", kind: "budget", label: `waits for ${entry.limit ?? "room"}`, at });
        } else if (entry.reason === "paused") this.#begin(agent, { key: "pause", kind: "pause", label: "paused", at });
        return;
      case "agent.paused":
        this.#begin(agent, { key: "pause", kind: "pause", label: "paused", at });
        return;
      case "agent.resumed":
        this.#close(agent, "pause", at);
        return;
      case "budget.freed":
        this.#close(agent, "budget", at);
        return;
      case "turn.ended":
        for (const key of agent.open.keys()) this.#close(agent, key, at);
        agent.awaited = new Set();
        return;
      default:
        this.#addOfCall(agent, entry, at);
    }
  }

  #addOfCall(agent: AgentSpans, entry: RunEntry, at: number): void {
    switch (entry.type) {
      case "tool.started": {
        const { callId, name, queue } = entry;
        this.#begin(agent, { key: callId, kind: queue === undefined ? "tool" : "queue", label: name, at, callId });
        return;
      }
      case "tool.retrying": {
        const span = this.#close(agent, entry.callId, at, true);
        if (span) span.label = `${span.label}: ${errorWord(entry.error)}`;
        return;
      }
      case "tool.billed": {
        const span = agent.open.get(entry.callId);
        if (!span) return;
        span.tokens += entry.settlement.tokens;
        span.costMicros += entry.settlement.costMicros;
        return;
      }
      case "tool.settled": {
        const isFailed = entry.outcome !== "success";
        const span = this.#close(agent, entry.callId, at, isFailed);
        if (span && isFailed) span.label = `${span.label}: ${entry.error ? errorWord(entry.error) : entry.outcome}`;
        return;
      }
      case "request.opened": {
        const { requestId, callId, name } = entry;
        this.#begin(agent, { key: requestId, kind: "person", label: `${name}: waits for a decision`, at, callId });
        return;
      }
      case "request.decided":
        this.#close(agent, entry.requestId, at, entry.verdict === "rejected" || entry.verdict === "expired");
        return;
      case "child.spawned":
        if (!entry.background) this.#await(agent, entry.childId, at);
        return;
      case "call.waiting":
        for (const childId of entry.openIds) this.#await(agent, childId, at);
        return;
      case "child.ended":
      case "child.reported":
        agent.awaited.delete(entry.childId);
        if (agent.awaited.size === 0) this.#close(agent, "child", at);
        return;
      default:
    }
  }

  #await(agent: AgentSpans, childId: string, at: number): void {
    agent.awaited.add(childId);
    const span = this.#begin(agent, { key: "child", kind: "child", label: "", at });
    span.label = `waits for ${agent.awaited.size} ${agent.awaited.size === 1 ? "subagent" : "subagents"}`;
  }

  #begin(agent: AgentSpans, given: { key: string; kind: SpanKind; label: string; at: number; callId?: string }): Span {
    const { key, kind, label, at, callId = null } = given;
    const known = agent.open.get(key);
    if (known) return known;
    let lane = 0;
    while ((agent.inLane[lane] ?? 0) > 0 && lane < MOST_LANES - 1) lane += 1;
    return this.#take(agent, key, {
      kind,
      start: at,
      end: Number.POSITIVE_INFINITY,
      lane,
      label,
      callId,
      first: this.#read,
      last: -1,
      isFailed: false,
      tokens: 0,
      costMicros: 0,
      isUnpriced: false,
    });
  }

  #take(agent: AgentSpans, key: string, span: Span): Span {
    const { kind, lane, start } = span;
    agent.inLane[lane] = (agent.inLane[lane] ?? 0) + 1;
    agent.lanes = Math.max(agent.lanes, lane + 1);
    agent.open.set(key, span);
    agent.spans.push(span);
    this.#kinds.add(kind);
    if (working.has(kind)) this.#countWork(1, start);
    return span;
  }

  #close(agent: AgentSpans, key: string, at: number, isFailed = false): Span | undefined {
    const span = agent.open.get(key);
    if (!span) return undefined;
    span.end = at;
    span.last = this.#read;
    span.isFailed = isFailed;
    agent.open.delete(key);
    agent.inLane[span.lane] = (agent.inLane[span.lane] ?? 1) - 1;
    if (working.has(span.kind)) this.#countWork(-1, at);
    return span;
  }

  /** Idle times of up to a millisecond do not end a busy time. */
  #countWork(by: 1 | -1, at: number): void {
    this.#working += by;
    const last = this.#busy.at(-1);
    if (by < 0) {
      if (last && this.#working === 0) last.end = at;
    } else if (this.#working === 1) {
      if (last && at <= last.end + 1) last.end = Number.POSITIVE_INFINITY;
      else this.#busy.push({ start: at, end: Number.POSITIVE_INFINITY });
    }
  }
}
