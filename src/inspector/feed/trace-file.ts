import type { Entry } from "../../state/index.ts";
import type { Feed } from "./feed.ts";
import type { FeedRow } from "./messages.ts";

/** An event of Chrome's trace format, which `chrome://tracing` and Perfetto read. Times are in microseconds. */
export interface TraceEvent {
  /** Name of the bar or row. */
  readonly name: string;
  /** `X`: a bar with a duration; `M`: the name of a row. */
  readonly ph: "X" | "M";
  /** Kind of the bar. */
  readonly cat?: "turn" | "model" | "tool" | "request";
  /** Start, in microseconds since the epoch. */
  readonly ts: number;
  /** Length in microseconds. */
  readonly dur?: number;
  /** Always 1: all agents are shown in one group. */
  readonly pid: 1;
  /** The row; each agent has one. */
  readonly tid: number;
  /** Names and numbers shown with the bar. */
  readonly args: Readonly<Record<string, string | number | null>>;
}

interface Begun {
  readonly name: string;
  readonly cat: NonNullable<TraceEvent["cat"]>;
  readonly at: number;
  readonly tid: number;
  readonly args: TraceEvent["args"];
}

const MICROSECONDS = 1_000;

/** The turns, model calls, tool calls and requests of a run, for a trace viewer. It has only names and numbers. */
export async function traceOfRun(feed: Feed, runId: string): Promise<{ readonly traceEvents: readonly TraceEvent[] }> {
  const { agents, run } = await feed.head(runId);
  const tids = new Map(agents.map(({ agentId }, index) => [agentId, index + 1]));
  const names = agents.map(({ agentId, name }): TraceEvent => {
    const args = { name: `${name} ${agentId}` };
    return { name: "thread_name", ph: "M", ts: 0, pid: 1, tid: tids.get(agentId) ?? 0, args };
  });
  const open = new Map<string, Begun>();
  const events: TraceEvent[] = [];
  let last = run.createdAt;
  for await (const { agentId, entries } of rowsOf(feed, runId)) {
    const tid = tids.get(agentId) ?? 0;
    for (const entry of entries) {
      last = Math.max(last, entry.at);
      const started = begunBy(entry as Entry, tid);
      if (started) open.set(spanKey(started.cat, agentId, entry as Entry), started);
      const cat = endedBy(entry.type);
      const begun = cat && open.get(spanKey(cat, agentId, entry as Entry));
      if (!cat || !begun) continue;
      open.delete(spanKey(cat, agentId, entry as Entry));
      events.push(eventOf(begun, entry.at, argsAtEnd(entry as Entry)));
    }
  }
  // Open spans last until the last known time.
  for (const begun of open.values()) events.push(eventOf(begun, last, { end: "open" }));
  return { traceEvents: [...names, ...events.toSorted((one, other) => one.ts - other.ts)] };
}

async function* rowsOf(feed: Feed, runId: string): AsyncGenerator<FeedRow> {
  for (let after = 0; ; ) {
    const rows = await feed.rows(runId, after);
    yield* rows;
    const last = rows.at(-1);
    if (!last) return;
    after = last.cursor;
  }
}

function begunBy(entry: Entry, tid: number): Begun | undefined {
  const { at } = entry;
  switch (entry.type) {
    case "turn.started":
      return { name: `turn ${entry.number}`, cat: "turn", at, tid, args: { turn: entry.turnId } };
    case "model.requested":
      return {
        name: entry.model,
        cat: "model",
        at,
        tid,
        args: { turn: entry.turnId, step: entry.step, attempt: entry.attempt },
      };
    case "tool.started":
      return { name: entry.name, cat: "tool", at, tid, args: { call: entry.callId, attempt: entry.attempt } };
    case "request.opened":
      return { name: `${entry.kind} ${entry.name}`, cat: "request", at, tid, args: { request: entry.requestId } };
    default:
      return undefined;
  }
}

const ends: Readonly<Partial<Record<Entry["type"], NonNullable<TraceEvent["cat"]>>>> = {
  "turn.ended": "turn",
  "model.responded": "model",
  "model.failed": "model",
  "tool.settled": "tool",
  "tool.retrying": "tool",
  "request.decided": "request",
};

function endedBy(type: Entry["type"]): NonNullable<TraceEvent["cat"]> | undefined {
  return ends[type];
}

/** An agent has one turn and one model call at a time. */
function spanKey(cat: string, agentId: string, entry: Entry): string {
  return cat === "tool" || cat === "request" ? `${cat} ${"callId" in entry ? entry.callId : ""}` : `${cat} ${agentId}`;
}

function argsAtEnd(entry: Entry): TraceEvent["args"] {
  if (entry.type === "turn.ended") return { end: entry.stopReason, steps: entry.steps, cost: entry.costMicros };
  if (entry.type === "model.responded") {
    const { inputTokens, outputTokens } = entry.usage;
    return { end: entry.finishReason, inputTokens, outputTokens, cost: entry.costMicros };
  }
  if (entry.type === "model.failed" || entry.type === "tool.retrying") return { end: entry.error.code };
  return { end: entry.type === "tool.settled" ? entry.outcome : entry.type === "request.decided" ? entry.verdict : "" };
}

function eventOf({ name, cat, at, tid, args }: Begun, until: number, more: TraceEvent["args"]): TraceEvent {
  const dur = Math.max(0, until - at) * MICROSECONDS;
  return { name, ph: "X", cat, ts: at * MICROSECONDS, dur, pid: 1, tid, args: { ...args, ...more } };
}
