import type { EntryType } from "../../state/index.ts";
import type { RunAgent, RunEntry, RunEntryOf, RunLog } from "./run-log.ts";

/** Groups of entry types, to filter a list of entries. */
export const eventGroups = ["turn", "model", "tool", "subagent", "budget", "request", "hook", "agent"] as const;
export type EventGroup = (typeof eventGroups)[number];

export type EventTone = "plain" | "work" | "good" | "bad" | "warning" | "person" | "quiet";

/** One entry in words. */
export interface EventText {
  /** The entry type in words, without a name. */
  readonly title: string;
  /** The name of a tool, model or child; may be empty. */
  readonly name: string;
  readonly detail: string;
  readonly tone: EventTone;
}

const groupByType: Readonly<Partial<Record<EntryType, EventGroup>>> = {
  "model.requested": "model",
  "model.responded": "model",
  "model.failed": "model",
  "generate.requested": "model",
  "generate.responded": "model",
  "generate.failed": "model",
  "call.gated": "tool",
  "tool.started": "tool",
  "tool.retrying": "tool",
  "tool.noted": "tool",
  "tool.billed": "tool",
  "tool.settled": "tool",
  "call.reviewed": "tool",
  "call.expired": "tool",
  "context.expanded": "tool",
  "context.loaded": "tool",
  "artifact.saved": "tool",
  "child.spawned": "subagent",
  "child.ended": "subagent",
  "child.ordered": "subagent",
  "child.awaited": "subagent",
  "child.reported": "subagent",
  "call.waiting": "subagent",
  "budget.warning": "budget",
  "budget.freed": "budget",
  "budget.changed": "budget",
  "intent.refused": "budget",
  "timer.due": "budget",
  "request.opened": "request",
  "request.decided": "request",
  "turn.waiting": "request",
  "hook.applied": "hook",
  "hooks.settled": "hook",
  "messages.released": "hook",
  "agent.starting": "agent",
  "agent.started": "agent",
  "agent.pausing": "agent",
  "agent.paused": "agent",
  "agent.resumed": "agent",
  "agent.shutdown": "agent",
  "conversation.seeded": "agent",
  "conversation.cleared": "agent",
};

export function groupOf(type: EntryType): EventGroup {
  return groupByType[type] ?? "turn";
}

export interface EventFilter {
  /** In lower case. Each word must occur in the type, the agent or the text of the row. */
  readonly text: string;
  /** Indexes of the agents whose entries are wanted; `null` for all agents. */
  readonly agents: ReadonlySet<number> | null;
  /** The wanted groups of entries; empty for all groups. */
  readonly groups: ReadonlySet<EventGroup>;
}

/** The indexes of the entries that pass the filter, in order; `null` if the filter is empty. */
export function filteredEvents(log: RunLog, filter: EventFilter): Uint32Array | null {
  return new EventPlaces(log, filter).update();
}

/**
 * The indexes of the entries that pass a filter, updated as entries are added. Checks columns first and row texts last.
 * When the reader types on, only entries that passed the previous filter are checked, so it keeps up with each key.
 */
export class EventPlaces {
  readonly #log: RunLog;
  readonly #filter: EventFilter;
  readonly #types: Answers<string>;
  readonly #parts: readonly Part[];
  /** The indexes that passed a wider filter; `undefined` if all entries must be checked. */
  #among: Uint32Array | undefined;
  #read: number;
  #places = new Uint32Array(1_024);
  #length = 0;

  /** `before`: the indexes of the previous filter. */
  constructor(log: RunLog, filter: EventFilter, before?: EventPlaces) {
    const { groups, text } = filter;
    this.#log = log;
    this.#filter = filter;
    const isTypedOn = before !== undefined && before.#log === log && isWider(before.#filter, filter);
    this.#among = isTypedOn ? (before.update() ?? undefined) : undefined;
    this.#read = this.#among ? log.length : log.first;
    this.#types = new Answers((type) => groups.size === 0 || groups.has(groupOf(type as EntryType)));
    const parts = text.split(/\s+/).filter((part) => part !== "");
    this.#parts = parts.map((part) => ({
      part,
      types: new Answers((type) => type.includes(part)),
      words: new Answers((word) => word.toLowerCase().includes(part)),
      agents: new Answers(({ name, agentId }) => `${name} ${agentId}`.toLowerCase().includes(part)),
    }));
  }

  /** Checks the new entries. Leaves out entries that the log has dropped. */
  update(): Uint32Array | null {
    const { text, agents, groups } = this.#filter;
    if (text === "" && agents === null && groups.size === 0) return null;
    const log = this.#log;
    const wanted = this.#types.of(log.types.texts);
    const matches = this.#parts.map((part) => ({
      part: part.part,
      types: part.types.of(log.types.texts),
      words: part.words.of(log.words.texts),
      agents: part.agents.of(log.agents),
    }));
    const look = (place: number): void => {
      if (agents?.has(log.agentOf(place)) === false) return;
      const type = log.typeOf(place);
      if (wanted[type] !== true) return;
      let row: string | undefined;
      for (const { part, types, words, agents } of matches) {
        if (types[type] === true || words[log.wordOf(place)] === true || agents[log.agentOf(place)] === true) continue;
        row ??= rowText(log, place);
        if (!row.includes(part)) return;
      }
      this.#add(place);
    };
    for (const place of this.#among ?? []) look(place);
    this.#among = undefined;
    for (let place = Math.max(this.#read, log.first); place < log.length; place += 1) look(place);
    this.#read = log.length;
    const places = this.#places.subarray(0, this.#length);
    return log.first === 0 ? places : places.subarray(countBelow(places, log.first));
  }

  #add(place: number): void {
    if (this.#length === this.#places.length) {
      const larger = new Uint32Array(this.#length * 2);
      larger.set(this.#places);
      this.#places = larger;
    }
    this.#places[this.#length] = place;
    this.#length += 1;
  }
}

/** Whether everything that passes the second filter passes the first, because only its text was extended. */
function isWider(one: EventFilter, other: EventFilter): boolean {
  const isOfSame = one.agents === other.agents && one.groups === other.groups;
  return isOfSame && one.text !== "" && other.text.startsWith(one.text);
}

/** The text of an entry's row, in lower case. */
function rowText(log: RunLog, place: number): string {
  const entry = log.entry(place);
  if (!entry) return "";
  const { title, name, detail } = eventText(entry);
  return `${title} ${name} ${detail}`.toLowerCase();
}

interface Part {
  readonly part: string;
  readonly types: Answers<string>;
  readonly words: Answers<string>;
  readonly agents: Answers<RunAgent>;
}

/** A predicate's results for each item of a growing list, evaluated once per item. */
class Answers<Item> {
  readonly #ask: (item: Item) => boolean;
  readonly #answers: boolean[] = [];

  constructor(ask: (item: Item) => boolean) {
    this.#ask = ask;
  }

  of(items: readonly Item[]): readonly boolean[] {
    for (let next = this.#answers.length; next < items.length; next += 1) {
      this.#answers.push(this.#ask(items[next] as Item));
    }
    return this.#answers;
  }
}

/** How many of the ascending indexes are below a number. */
export function countBelow(places: Uint32Array, number: number): number {
  let low = 0;
  let high = places.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((places[middle] ?? 0) >= number) high = middle;
    else low = middle + 1;
  }
  return low;
}

export function eventText(entry: RunEntry): EventText {
  switch (entry.type) {
    case "agent.starting":
      return text("agent starting", { tone: "quiet" });
    case "agent.started":
      return text("agent ready", { tone: "quiet" });
    case "agent.pausing":
      return text("pausing", { detail: `by ${entry.by}`, tone: "warning" });
    case "agent.paused":
      return text("paused", { tone: "warning" });
    case "agent.resumed":
      return text("resumed", { detail: `by ${entry.by}` });
    case "agent.shutdown":
      return text("agent shut down", { tone: "quiet" });
    case "turn.started":
      return text(`turn ${entry.number} started`, { name: entry.model.name, tone: "work" });
    case "turn.ended":
      return turnEnded(entry);
    case "instructions.resolved":
      return text("instructions resolved", { tone: "quiet" });
    case "hook.applied":
      return text("hook applied", { name: entry.hook, detail: `by ${entry.plugin}` });
    case "hooks.settled":
      return text("hooks settled", { detail: entry.phase, tone: "quiet" });
    case "context.compacted":
      return text("context compacted", { name: entry.strategy, detail: `${entry.messages} messages replaced` });
    case "conversation.cleared":
      return text("conversation cleared", { detail: `by ${entry.by}`, tone: "warning" });
    case "stop.signalled":
    case "timer.due":
      return text("stop signalled", { name: entry.signal.reason, detail: entry.signal.message, tone: "warning" });
    case "warning":
      return text("warning", { name: entry.code, detail: entry.message, tone: "warning" });
    case "effect.failed":
      return text("effect failed", { name: entry.effect, detail: entry.error.message, tone: "bad" });
    case "output.checked":
      return text(entry.callId === undefined ? "output checked" : "answer of a tool", {
        detail: entry.valid ? (entry.callId ?? "valid") : (entry.issues ?? "not valid"),
        tone: entry.valid ? "plain" : "warning",
      });
    case "budget.warning":
      return text("budget warning", { name: entry.limit, detail: `${entry.used} of ${entry.max}`, tone: "warning" });
    case "budget.changed":
      return text("budget changed", { detail: changedLimits(entry), tone: "person" });
    case "budget.freed":
      return text("budget freed");
    case "intent.refused":
      return refused(entry);
    default:
      return modelText(entry) ?? callText(entry) ?? text(entry.type, { tone: "quiet" });
  }
}

/** Whether an entry records a failure. */
export function isFailure(entry: RunEntry): boolean {
  return eventText(entry).tone === "bad";
}

function limitText(value: number | boolean | undefined): string {
  return typeof value === "number" ? grouped(value) : String(value ?? "none");
}

/** The changed limits in their units: `maxTokens 5,000 → 9,000`. */
function changedLimits({ limits, before }: RunEntryOf<"budget.changed">): string {
  const names = Object.keys({ ...before, ...limits }) as (keyof typeof limits)[];
  return names
    .filter((name) => limits[name] !== before[name])
    .map((name) => `${name} ${limitText(before[name])} → ${limitText(limits[name])}`)
    .join(", ");
}

function modelText(entry: RunEntry): EventText | undefined {
  switch (entry.type) {
    case "model.requested": {
      const again = entry.attempt > 1 ? `, attempt ${entry.attempt}` : "";
      const last = entry.last ? ", last permitted call" : "";
      const of = entry.provider === undefined ? "" : `, provider ${entry.provider}`;
      const detail = `step ${entry.step}${again}${of}${last}, ${grouped(entry.ask.promptTokens)} tokens counted`;
      return text("model requested", { name: entry.model, detail, tone: "work" });
    }
    case "model.responded": {
      const { inputTokens, outputTokens } = entry.usage;
      const calls = entry.calls.length === 0 ? "" : `, asks for ${entry.calls.map(({ name }) => name).join(", ")}`;
      const detail = `${grouped(inputTokens)} tokens in, ${grouped(outputTokens)} out, ${milliseconds(entry.durationMs)}${calls}`;
      return text("model responded", { name: entry.model, detail, tone: "good" });
    }
    case "model.failed":
      return text("model failed", { name: entry.error.code, detail: entry.error.message, tone: "bad" });
    case "generate.requested":
      return text("side call requested", { name: entry.model, tone: "work" });
    case "generate.responded":
      return text("side call responded", { detail: entry.run, tone: "good" });
    case "generate.failed":
      return text("side call failed", { name: entry.error.code, detail: entry.error.message, tone: "bad" });
    default:
      return undefined;
  }
}

function callText(entry: RunEntry): EventText | undefined {
  switch (entry.type) {
    case "call.gated":
      return entry.verdict === "allowed"
        ? text("call allowed", { name: entry.name, tone: "quiet" })
        : text(`call ${entry.verdict}`, { name: entry.name, detail: entry.message ?? "", tone: "bad" });
    case "tool.started": {
      const detail = entry.stubbed ? "stubbed" : entry.queue === undefined ? "" : `in the queue ${entry.queue}`;
      return text("tool started", { name: entry.name, detail, tone: "work" });
    }
    case "tool.retrying":
      return text("tool retries", { name: entry.error.code, detail: entry.error.message, tone: "warning" });
    case "tool.noted":
      return text("tool noted", { tone: "quiet" });
    case "tool.billed":
      return text("tool billed", {
        name: entry.settlement.reservation.model,
        detail: `${entry.settlement.tokens} tokens`,
        tone: "good",
      });
    case "tool.settled":
      return entry.outcome === "success"
        ? text("tool done", { name: entry.name, detail: doneDetail(entry), tone: "good" })
        : text(`tool ${entry.outcome}`, { name: entry.name, detail: entry.error?.message ?? "", tone: "bad" });
    case "child.spawned":
      return text("subagent spawned", {
        name: entry.definition.name,
        detail: entry.background ? "in the background" : "",
        tone: "work",
      });
    case "child.ended":
    case "child.reported":
      return text("subagent ended", { detail: entry.stopReason, tone: entry.outcome === "failed" ? "bad" : "good" });
    case "call.waiting":
      return text("call waits", { detail: `for ${entry.openIds.length} subagents` });
    case "request.opened":
      return text(`${entry.kind} asked for`, { name: entry.name, detail: entry.prompt, tone: "person" });
    case "request.decided":
      return text(`request ${entry.verdict}`, {
        name: entry.name,
        detail: entry.by === null ? "" : `by ${entry.by}`,
        tone: "person",
      });
    case "turn.steered":
      return text("input arrived", { detail: `seen by step ${entry.step}`, tone: "person" });
    case "turn.waiting":
      return text("turn waits for a decision", { tone: "person" });
    case "artifact.saved":
      return text("artifact saved", { name: entry.name, detail: `version ${entry.version ?? 1}, ${entry.size} bytes` });
    default:
      return undefined;
  }
}

function text(title: string, rest: Partial<Omit<EventText, "title">> = {}): EventText {
  return { title, name: "", detail: "", tone: "plain", ...rest };
}

function turnEnded(entry: RunEntryOf<"turn.ended">): EventText {
  const why = entry.signal?.message ?? entry.error?.message ?? "";
  const tone = entry.outcome === "completed" ? "good" : entry.outcome === "failed" ? "bad" : "warning";
  return text(`turn ${entry.number} ${entry.outcome}`, { name: entry.stopReason, detail: why, tone });
}

function refused(entry: RunEntryOf<"intent.refused">): EventText {
  const limit = entry.limit ?? "";
  const title = entry.reason === "mustWait" ? "waits for room" : `refused: ${entry.reason}`;
  return text(title, {
    name: limit,
    detail: `${entry.intent}${entry.max === undefined ? "" : `, ${entry.used} of ${entry.max} used`}`,
    tone: "warning",
  });
}

/** Digits in groups of three. */
export function grouped(amount: number): string {
  return String(amount).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** A duration in its most readable unit. */
export function milliseconds(amount: number): string {
  if (amount < 1_000) return `${Math.round(amount)} ms`;
  if (amount < 60_000) return `${(amount / 1_000).toFixed(amount < 10_000 ? 2 : 1)} s`;
  const seconds = Math.round(amount / 1_000);
  const minutes = Math.floor(seconds / 60);
  const [large, small] =
    minutes < 60 ? [`${minutes} min`, `${seconds % 60} s`] : [`${Math.floor(minutes / 60)} h`, `${minutes % 60} min`];
  return small.startsWith("0 ") ? large : `${large} ${small}`;
}

/** Stubs are numbered from 1 for people. */
function doneDetail({ durationMs, stub }: RunEntryOf<"tool.settled">): string {
  return typeof stub === "number" ? `by stub ${stub + 1}` : milliseconds(durationMs);
}
