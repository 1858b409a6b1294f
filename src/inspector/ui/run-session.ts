import { batch, computed, signal } from "@preact/signals";
import type { FeedMessage } from "../feed/wire.ts";
import { Spending } from "../run-model/account-curve.ts";
import { isBusy, type Phase } from "../run-model/agent-moment.ts";
import { TimeAxis } from "../run-model/axis.ts";
import { type LogStart, type RunAgentRecord, RunLog, type RunRow } from "../run-model/run-log.ts";
import { type RunMoment, RunMoments, type RunState } from "../run-model/run-moments.ts";
import { type OpenSpans, Timeline } from "../run-model/timeline.ts";
import type { FeedClient, LinkState, RequestRow, SourceState } from "./feed-client.ts";
import { type LostAgent, lostAgents, nothingLost, type Owners } from "../run-model/lost-agents.ts";
import { Player } from "./player.ts";
import { Rereading, Slices } from "./slices.ts";
import { Supposing } from "./supposing.ts";

/** Most entries in a page. If there are more, `droppedAtOnce` of the oldest are dropped. */
interface WindowSize {
  readonly most: number;
  readonly droppedAtOnce: number;
}
const windowSize: WindowSize = { most: 250_000, droppedAtOnce: 50_000 };

/** A position from which a session can continue reading the run, with the state at that position. */
interface RunMark extends LogStart {
  readonly state: RunState | undefined;
  readonly open: readonly OpenSpans[];
}
const runStart: RunMark = { count: 0, cursor: 0, startedAt: null, state: undefined, open: [] };

/** The window of a run that a session holds. Default: the newest entries, and all earlier ones that fit. */
interface RunWindow {
  readonly from: RunMark;
  /** In run order; the first is the start of the run. */
  readonly marks: readonly RunMark[];
  /** Whether the window ends when it is full and does not follow new entries. */
  readonly isPast: boolean;
  readonly agents: readonly RunAgentRecord[];
  /** Number of entries of the run seen so far, in any window. */
  readonly seen: number;
}

interface SessionOptions {
  /** How far the source's clock is ahead of this machine's; `null` if time stands still, such as for a run from a file. */
  readonly aheadMs: number | null;
  readonly size?: WindowSize | undefined;
  readonly window?: RunWindow | undefined;
}

/** How often the page advances time while an agent works, in small and in large runs. */
const CLOCK_EVERY_MS = 250;
const CLOCK_LARGE_EVERY_MS = 1_000;

/** A feed counts as silent after this time. It sends a status every 1.5 s. */
const SILENT_MS = 5_000;

/** Entries received within this time are shown together, in small and in large runs. */
const SHOW_EVERY_MS = 80;
const SHOW_LARGE_EVERY_MS = 250;
const LARGE = 20_000;
const FOLDED_AT_ONCE = 128;
/** Most unfolded entries before the session stops requesting more. */
const MOST_WAITING = 20_000;
const requestTypes: ReadonlySet<string> = new Set(["request.opened", "request.decided", "turn.ended"]);
/** Least interval between reads of the requests. They are read when one was opened, decided or closed. */
const REQUESTS_EVERY_MS = 250;
/** From this many entries on, an axis takes longer to compute and is updated less often. */
const LONG_AXIS = 5_000;
const AXIS_EVERY_MS = 600;

/** A tool call that a model is writing. */
export interface WrittenCall {
  readonly index: number;
  readonly name: string;
  /** The JSON text of the arguments so far. */
  readonly text: string;
}

function withPiece(
  calls: readonly WrittenCall[],
  { index, name, offset, text }: WrittenCall & { readonly offset: number },
): readonly WrittenCall[] {
  const before = calls.find((call) => call.index === index)?.text ?? "";
  const others = calls.filter((call) => call.index !== index);
  return [...others, { index, name, text: before.slice(0, offset) + text }].toSorted((a, b) => a.index - b.index);
}

/**
 * One run in the page: its log, the moment that all views show, and its player.
 * Owns: the subscription to the feed, the pinned moment, the live texts. Does not own: the address.
 *
 * 1. All views show `moment` and nothing newer, unless their documentation states otherwise. Calls and waits that are open
 *    at the newest moment last until `present`, which advances with the source's clock while an agent works.
 * 2. A page that shows an earlier moment keeps showing it while new entries are received.
 * 3. Each new entry is folded once, a few at a time, so that the page stays responsive.
 * 4. Of a run that is too large, the session holds the newest entries; `windowAt` reads the others.
 */
export class RunSession {
  readonly runId: string;
  readonly client: FeedClient;
  readonly log: RunLog;
  readonly moments: RunMoments;
  readonly timeline: Timeline;
  readonly spending: Spending;
  readonly supposing: Supposing;
  readonly link = signal<LinkState>({ kind: "connecting" });
  /** Whether the stores answer; `undefined` before the first status. */
  readonly source = signal<SourceState | undefined>(undefined);
  readonly owners = signal<Owners>({ processes: new Map(), ofAgents: new Map() });
  readonly isCaughtUp = signal(false);
  /** Why the feed has stopped sending this run; `null` while it sends. */
  readonly gone = signal<string | null>(null);
  /** Number of entries up to the newest one shown. */
  readonly length = signal(0);
  /** Index of the first entry in memory; 0 if none were dropped. */
  readonly first = signal(0);
  /**
   * Whether it no longer follows the run: it holds an earlier window, or the reader views entries that would be dropped.
   */
  readonly isPast = signal(false);
  /** How many entries the page shows; `null` if it follows the newest. */
  readonly pinned = signal<number | null>(null);
  readonly player = new Player(this);
  readonly requests = signal<readonly RequestRow[]>([]);
  /** Changes when a live text grows. */
  readonly written = signal(0);
  readonly #learned = signal(0);
  readonly #texts = new Map<string, string>();
  /** By agent, the tool calls of the answer that it writes. */
  readonly #calls = new Map<string, readonly WrittenCall[]>();
  readonly #watch: { end(): void };
  #shown: ReturnType<typeof setTimeout> | undefined;
  #shownAt = 0;
  #isLast = false;
  #isEnded = false;
  #hasAsked = false;
  #hasLearned = false;
  #giveRoom: (() => void) | undefined;
  /** When the feed last sent a message. */
  #heardAt = 0;
  /** Identifies the window of the run. */
  readonly part: string;
  readonly #size: WindowSize;
  readonly #window: RunWindow | undefined;
  readonly #marks: RunMark[];
  /** The timeline of the dropped entries, to find the spans that are open at each mark. */
  readonly #dropped: Timeline;
  readonly #aheadMs: number | null;
  #axisAt = 0;
  #axisLength = 0;
  #axisEnd = 0;
  #axisTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #axisDue = signal(0);
  #axis: TimeAxis = new TimeAxis([], { start: 0, end: 0 });
  #requestsAsked = 0;
  #requestsShown = 0;
  readonly #requestsRead = new Rereading(() => this.readRequests(), REQUESTS_EVERY_MS);

  /**
   * The source's time at the last tick, or 0 while no agent works. It stands still while the page shows an earlier moment.
   */
  readonly #now = signal(0);
  readonly #clock: ReturnType<typeof setInterval>;

  readonly isLive = computed(() => this.pinned.value === null);
  /** Whether the shown state may be outdated, because the connection or the stores are lost. */
  readonly isStale = computed(() => this.link.value.kind !== "open" || this.source.value?.isReachable === false);
  /**
   * Agents that work according to the journal but that no living process runs. Empty unless the page shows the newest
   * moment.
   */
  readonly lost = computed((): ReadonlyMap<number, LostAgent> => {
    const owners = this.owners.value;
    if (!this.isLive.value || !this.isCaughtUp.value) return nothingLost;
    return lostAgents(this.log.agents, this.moments.at(this.length.value).agents, owners);
  });
  readonly moment = computed((): RunMoment => {
    // Recompute also when terms of accounts become known.
    const [count] = [this.pinned.value ?? this.length.value, this.#learned.value];
    const lost = this.lost.value;
    const moment = this.moments.at(count);
    if (lost.size === 0) return moment;
    const isLost = { phase: "lost" } as const;
    const agents = moment.agents.map((agent, index) => agent && (lost.has(index) ? { ...agent, ...isLost } : agent));
    return { ...moment, agents };
  });
  /** The end of the known time: the source's clock while an agent works, else the time of the last entry. */
  readonly present = computed(() => {
    const [now] = [this.#now.value, this.length.value];
    return Math.max(now, this.log.endedAt);
  });
  readonly axis = computed(() => {
    const [length, end] = [this.length.value, this.present.value, this.#axisDue.value];
    if (length === this.#axisLength && end === this.#axisEnd) return this.#axis;
    const waitMs = length < LONG_AXIS ? 0 : this.#axisAt + AXIS_EVERY_MS - performance.now();
    if (waitMs > 0) {
      this.#axisTimer ??= setTimeout(() => {
        this.#axisTimer = undefined;
        this.#axisDue.value += 1;
      }, waitMs);
      return this.#axis;
    }
    this.timeline.update(length);
    this.#axisAt = performance.now();
    this.#axisLength = length;
    this.#axisEnd = end;
    const start = this.log.first === 0 ? this.log.startedAt : this.log.timeOf(this.log.first);
    this.#axis = new TimeAxis(this.timeline.busy, { start, end, isOpen: end > this.log.endedAt });
    return this.#axis;
  });

  constructor(client: FeedClient, runId: string, { aheadMs, window, size = windowSize }: SessionOptions) {
    this.client = client;
    this.runId = runId;
    this.#size = size;
    this.#aheadMs = aheadMs;
    this.#window = window;
    this.part = `${runId} ${window?.from.count ?? 0} ${window?.isPast === true}`;
    this.#marks = window ? [...window.marks] : [runStart];
    const from = window?.from ?? runStart;
    this.log = new RunLog(from);
    this.moments = new RunMoments(this.log, from.state);
    this.timeline = new Timeline(this.log, from.open);
    this.#dropped = new Timeline(this.log, from.open);
    this.spending = new Spending(this.log);
    this.supposing = new Supposing(this);
    this.first.value = from.count;
    this.log.addAgents(window?.agents ?? []);
    this.#watch = client.watch(runId, from.cursor, {
      message: (message) => this.#take(message),
      link: (state) => {
        this.link.value = state;
      },
    });
    this.#clock = setInterval(() => {
      batch(() => this.#tick());
      this.supposing.foldOn();
    }, CLOCK_EVERY_MS);
  }

  /** The time that all views show: the moment's, or `present` while the newest moment is shown. */
  get time(): number {
    return this.isLive.value ? this.present.value : this.moment.value.time;
  }

  /** The end of the time in which an agent's activity is known. */
  endOf(agent: number): number {
    const end = this.present.peek();
    const lost = this.lost.peek().get(agent);
    return lost ? Math.min(end, lost.seenAt) : end;
  }

  /** The time that views of one agent show. */
  timeFor(agent: number): number {
    const lost = this.lost.value.get(agent);
    return lost && this.isLive.value ? Math.min(this.time, lost.seenAt) : this.time;
  }

  #tick(): void {
    const aheadMs = this.#aheadMs;
    if (aheadMs === null || this.pinned.peek() !== null || this.link.peek().kind !== "open") return;
    // The entries being read may be old.
    if (!this.isCaughtUp.peek() || this.isPast.peek()) return;
    const now = Date.now() + aheadMs;
    this.#watchSource(now);
    const source = this.source.peek();
    if (source?.isReachable === false) {
      // The time after this point is unknown.
      this.#now.value = Math.min(this.#now.peek(), source.reachedAt);
      return;
    }
    const { agents } = this.moment.peek();
    const lost = this.lost.peek();
    // Agents that wait for a lost agent do not continue.
    const isWorking = (phase: Phase): boolean => phase !== "waiting" || lost.size === 0;
    const isRunning = agents.some((agent) => agent !== undefined && isBusy(agent) && isWorking(agent.phase));
    if (!isRunning) this.#now.value = [...lost.values()].reduce((last, { seenAt }) => Math.max(last, seenAt), 0);
    else if (this.length.peek() < LONG_AXIS || now - this.#now.peek() >= CLOCK_LARGE_EVERY_MS) this.#now.value = now;
  }

  /** Treats the source as unreachable if the feed is silent over an open connection. */
  #watchSource(now: number): void {
    const source = this.source.peek();
    const isSilent = this.#giveRoom === undefined && performance.now() - this.#heardAt > SILENT_MS;
    if (source?.isReachable !== true || !isSilent) return;
    this.source.value = { isReachable: false, reachedAt: now - SILENT_MS };
  }

  end(): void {
    this.#isEnded = true;
    this.#watch.end();
    clearInterval(this.#clock);
    clearTimeout(this.#shown);
    clearTimeout(this.#axisTimer);
    this.player.pause();
    this.#requestsRead.end();
  }

  /** The answer that the agent is writing; empty if there is none or an earlier moment is shown. */
  textOf(agentId: string): string {
    return this.isLive.value ? (this.#texts.get(agentId) ?? "") : "";
  }

  /** The tool calls in the answer that the agent is writing, with their arguments so far. */
  callsOf(agentId: string): readonly WrittenCall[] {
    return this.isLive.value ? (this.#calls.get(agentId) ?? []) : [];
  }

  /** Handles a message. Returns a promise if the feed must pause; it resolves when there is room for more. */
  #take(message: FeedMessage): Promise<void> | undefined {
    this.#heardAt = performance.now();
    if (message.type === "status") this.#takeStatus(message);
    else if (message.type === "agents") this.log.addAgents(message.agents);
    else if (message.type === "rows") this.#append(message.rows as unknown as readonly RunRow[], message.isCaughtUp);
    else if (message.type === "gone") this.gone.value = message.why;
    else if (message.type === "live") this.#write(message.event);
    if (this.log.length - this.moments.count < MOST_WAITING) return undefined;
    return new Promise((resolve) => {
      this.#giveRoom = resolve;
    });
  }

  #takeStatus(status: Extract<FeedMessage, { type: "status" }>): void {
    const { isReachable, reachedAt, processes, owners, openRequests } = status;
    const known = this.owners.peek();
    batch(() => {
      this.source.value = { isReachable, reachedAt };
      this.owners.value = {
        processes: new Map(processes.map((one) => [one.processId, one])),
        ofAgents: owners ? new Map(owners.map(({ agentId, processId }) => [agentId, processId])) : known.ofAgents,
      };
      // Update the state of the source and the clock together.
      this.#tick();
    });
    const open = new Set(openRequests);
    const shown = this.requests.peek().filter(({ status: one }) => one === "open");
    const isSame = open.size === shown.length && shown.every(({ requestId }) => open.has(requestId));
    if (!isSame && isReachable && this.isCaughtUp.peek()) this.#requestsRead.ask();
  }

  #append(rows: readonly RunRow[], isCaughtUp: boolean): void {
    for (const { agentId, entries } of rows) {
      for (const { type } of entries) {
        if (type === "model.responded" || type === "model.failed" || type === "turn.ended") this.#calls.delete(agentId);
        if (type === "model.responded" || type === "turn.ended") this.#texts.delete(agentId);
        // Before the page has caught up, later entries may close these requests.
        if (requestTypes.has(type) && this.isCaughtUp.peek()) this.#requestsRead.ask();
      }
    }
    this.log.append(rows);
    this.#isLast = isCaughtUp;
    if (this.#window?.isPast === true && this.log.length - this.log.first >= this.#size.most) this.#stop();
    this.#askForTerms();
    this.#showSoon();
  }

  /** Stops following the run. */
  #stop(): void {
    this.#watch.end();
    this.isPast.value = true;
    this.#isLast = true;
  }

  /** Requests the terms of stored accounts in time: dropped entries can no longer be folded again with them. */
  #askForTerms(): void {
    if (this.#hasAsked || this.log.length < this.#size.most / 2) return;
    this.#hasAsked = true;
    this.client.storedAccounts(this.runId).then(
      ({ accounts }) => this.learn(accounts),
      () => undefined,
    );
  }

  #showSoon(): void {
    if (this.#shown !== undefined) return;
    const everyMs = this.log.length > LARGE ? SHOW_LARGE_EVERY_MS : SHOW_EVERY_MS;
    const waitMs = this.#isLast && !this.isCaughtUp.peek() ? 0 : this.#shownAt + everyMs - performance.now();
    this.#shown = setTimeout(() => void this.#foldOn(), Math.max(0, waitMs));
  }

  /** Folds new entries. Shows them once all are folded, or if nothing new was shown for a while. */
  async #foldOn(): Promise<void> {
    const slices = new Slices();
    for (let isMore = true; isMore && !this.#isEnded; ) {
      isMore = this.moments.foldOn(FOLDED_AT_ONCE);
      this.timeline.update(this.moments.count);
      const isLate = performance.now() - this.#shownAt > SHOW_LARGE_EVERY_MS;
      if (!isMore) this.#shown = undefined;
      if (!isMore || (isLate && slices.isOver)) this.#show(!isMore);
      if (this.log.length - this.moments.count < MOST_WAITING) {
        this.#giveRoom?.();
        this.#giveRoom = undefined;
      }
      await slices.pause();
    }
  }

  #show(isAll: boolean): void {
    this.#shownAt = performance.now();
    this.#dropOldest();
    batch(() => {
      this.first.value = this.log.first;
      this.length.value = this.moments.count;
      this.written.value += 1;
      if (isAll && this.#isLast && !this.isCaughtUp.peek()) {
        this.isCaughtUp.value = true;
        this.#requestsRead.ask();
      }
      if (this.#hasLearned) {
        this.#learned.value += 1;
        this.supposing.try(this.supposing.limit.peek());
      }
      this.#hasLearned = false;
      // If no agent works any more, set the clock back to the last entry.
      this.#tick();
    });
    this.supposing.foldOn();
  }

  #dropOldest(): void {
    const { most, droppedAtOnce } = this.#size;
    const { log } = this;
    while (log.length - log.first > most && !this.isPast.peek()) {
      const until = log.countUpTo(log.cursorOf(log.first + droppedAtOnce - 1));
      const pinned = this.pinned.peek();
      if (until > this.moments.count) return;
      if (pinned !== null && pinned < until) return this.#stop();
      const state = this.moments.stateAt(until);
      this.#dropped.update(until);
      this.#dropped.drop(until);
      this.moments.drop(until);
      this.timeline.drop(until);
      log.drop(until);
      if (until <= (this.#marks.at(-1)?.count ?? 0)) continue;
      this.#marks.push({
        count: until,
        cursor: log.cursorBefore,
        startedAt: log.startedAt,
        state,
        open: this.#dropped.open,
      });
    }
  }

  /** Entry indexes for `windowAt`: the window before this one, and the one after it. */
  get placeOfEarlier(): number {
    return Math.max(0, this.log.first - this.#size.most + 2 * this.#size.droppedAtOnce);
  }

  get placeOfLater(): number {
    return this.log.length;
  }

  /** Ends this session and returns one for the window that contains an entry index, or for the newest entries. */
  windowAt(place: number | "newest"): RunSession {
    const back = place === "newest" ? Number.POSITIVE_INFINITY : place - this.#size.droppedAtOnce;
    const from = this.#marks.findLast(({ count }) => count <= back) ?? runStart;
    const seen = Math.max(this.#window?.seen ?? 0, this.log.length);
    this.end();
    const window = { from, marks: this.#marks, isPast: place !== "newest", agents: this.log.agents, seen };
    return new RunSession(this.client, this.runId, { aheadMs: this.#aheadMs, size: this.#size, window });
  }

  /** The index for `windowAt` for the address of a moment outside this window; `null` if it is inside or does not exist. */
  placeOutside(address: string): number | null {
    const cursor = Number(/^\d{1,15}/.exec(address)?.[0] ?? Number.NaN);
    if (!(cursor <= this.log.cursorBefore)) return null;
    const mark = this.#marks.findLast((one) => one.cursor < cursor) ?? runStart;
    return mark.count + this.#size.droppedAtOnce;
  }

  /** Number of entries of the run seen so far, in this or another window. */
  get seen(): number {
    return Math.max(this.#window?.seen ?? 0, this.length.value);
  }

  #write(event: Extract<FeedMessage, { type: "live" }>["event"]): void {
    const { agentId } = event;
    if (event.type === "text.delta") {
      this.#texts.set(agentId, (this.#texts.get(agentId) ?? "").slice(0, event.offset) + event.text);
    } else if (event.type === "text.snapshot") {
      this.#texts.set(agentId, event.text);
      this.#calls.set(agentId, event.calls ?? []);
    } else if (event.type === "call.delta") {
      this.#calls.set(agentId, withPiece(this.#calls.get(agentId) ?? [], event));
    }
    this.#showSoon();
  }

  /** Adds the terms of stored accounts; the journal lacks some of them. */
  learn(accounts: Parameters<RunMoments["learn"]>[0]): void {
    if (!this.moments.learn(accounts)) return;
    this.#hasLearned = true;
    this.#showSoon();
  }

  /** Reads the requests from the stores, which have a decision before its agent receives it. */
  async readRequests(): Promise<void> {
    this.#requestsAsked += 1;
    const asked = this.#requestsAsked;
    const requests = await this.client.requests(this.runId);
    // A newer response may have arrived first; ignore this one then.
    if (asked < this.#requestsShown) return;
    this.#requestsShown = asked;
    this.requests.value = requests;
  }

  /** Shows the moment after `count` entries. */
  pin(count: number): void {
    this.pinned.value = Math.max(this.log.first, Math.min(count, this.length.peek()));
  }

  goLive(): void {
    this.player.pause();
    this.pinned.value = null;
    this.#tick();
  }

  /** The address of the moment: `CURSOR`, or `CURSOR.N` within its row; `null` if the page follows the newest. */
  addressOfMoment(): string | null {
    const count = this.pinned.value;
    return count === null ? null : this.log.addressOf(count);
  }

  /** The inverse; `null` for an invalid address. */
  countAt(address: string): number | null {
    const match = /^(\d{1,15})(?:\.(\d{1,6}))?$/.exec(address);
    if (!match) return null;
    const cursor = Number(match[1]);
    if (match[2] === undefined) return this.log.countUpTo(cursor);
    return this.log.countUpTo(cursor - 1) + Number(match[2]);
  }
}
