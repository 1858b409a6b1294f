import { computed, effect, signal } from "@preact/signals";
import type { FeedMessage } from "../feed/wire.ts";
import { isBusy } from "../run-model/agent-moment.ts";
import { RunLog, type RunRow } from "../run-model/run-log.ts";
import { RunMoments } from "../run-model/run-moments.ts";
import { TimeAxis } from "../run-model/axis.ts";
import { Timeline } from "../run-model/timeline.ts";
import type { FeedClient, LinkState, RequestRow } from "./feed-client.ts";

export const speeds = [1, 2, 5, 10, 30, 100] as const;

const CLOCK_EVERY_MS = 1_000;

/** Entries that come within this time are shown together. */
const SHOW_EVERY_MS = 80;
const requestTypes: ReadonlySet<string> = new Set(["request.opened", "request.decided", "turn.ended"]);
/** The axis of a large run takes longer to make anew. */
const AXIS_EVERY_MS = 600;

/**
 * One run as the page holds it: the log, the moment at which all views look, playing.
 * Owns: the subscription to the feed, the pinned moment, the texts that are being written. Does not own: the address.
 *
 * 1. All views show `moment` and nothing newer, except those that say so.
 * 2. Who looks at the past stays there, whatever comes in.
 */
export class RunSession {
  readonly runId: string;
  readonly client: FeedClient;
  readonly log = new RunLog();
  readonly moments = new RunMoments(this.log);
  readonly timeline = new Timeline(this.log);
  readonly link = signal<LinkState>({ kind: "connecting" });
  readonly isCaughtUp = signal(false);
  /** Why nothing more comes; null: it goes on. */
  readonly gone = signal<string | null>(null);
  /** How many entries there are. */
  readonly length = signal(0);
  /** The entries at which the page looks; null: always the newest. */
  readonly pinned = signal<number | null>(null);
  readonly isPlaying = signal(false);
  readonly speed = signal<(typeof speeds)[number]>(1);
  readonly requests = signal<readonly RequestRow[]>([]);
  /** Changes when a text is written on. */
  readonly written = signal(0);
  readonly #requestChanges = signal(0);
  readonly #learned = signal(0);
  readonly #texts = new Map<string, string>();
  readonly #watch: { end(): void };
  #shown: ReturnType<typeof setTimeout> | undefined;
  #axisAt = 0;
  #axisLength = 0;
  #axis: TimeAxis = new TimeAxis([], 0, 0);
  #frame = 0;
  #stopRequests: () => void;

  /** The clock of the source while somebody works and the newest is shown; else the time of the last entry. */
  readonly now = signal(0);
  readonly #clock: ReturnType<typeof setInterval>;

  readonly isLive = computed(() => this.pinned.value === null);
  readonly moment = computed(() => {
    // Another moment too when terms of accounts become known.
    const [count] = [this.pinned.value ?? this.length.value, this.#learned.value];
    return this.moments.at(count);
  });
  readonly axis = computed(() => {
    const length = this.length.value;
    this.timeline.update();
    const isDue = performance.now() - this.#axisAt > AXIS_EVERY_MS || length < 5_000 || this.isCaughtUp.value;
    if (length === this.#axisLength || !isDue) return this.#axis;
    this.#axisAt = performance.now();
    this.#axisLength = length;
    this.#axis = new TimeAxis(this.timeline.all(), this.log.startedAt, this.log.endedAt);
    return this.#axis;
  });

  /** `aheadMs`: how far the source's clock is ahead of this machine's; null: the run is over, its clock stands still. */
  constructor(client: FeedClient, runId: string, aheadMs: number | null) {
    this.client = client;
    this.runId = runId;
    this.#watch = client.watch(runId, 0, {
      message: (message) => this.#take(message),
      link: (state) => {
        this.link.value = state;
      },
    });
    this.#stopRequests = this.#followRequests();
    this.#clock = setInterval(() => this.#tick(aheadMs), CLOCK_EVERY_MS);
  }

  /** The time at which all views look: of the moment, or the clock while the newest is shown and somebody works. */
  get time(): number {
    return this.isLive.value ? Math.max(this.now.value, this.moment.value.time) : this.moment.value.time;
  }

  #tick(aheadMs: number | null): void {
    if (aheadMs === null || this.pinned.peek() !== null || this.link.peek().kind !== "open") return;
    const { agents } = this.moment.peek();
    if (agents.some((agent) => agent !== undefined && isBusy(agent))) this.now.value = Date.now() + aheadMs;
    else this.now.value = 0;
  }

  end(): void {
    this.#watch.end();
    clearInterval(this.#clock);
    clearTimeout(this.#shown);
    this.pause();
    this.#stopRequests();
  }

  /** The answer that the agent is writing; empty: it writes none. Only at the newest moment. */
  textOf(agentId: string): string {
    return this.isLive.value ? (this.#texts.get(agentId) ?? "") : "";
  }

  #take(message: FeedMessage): void {
    if (message.type === "agents") this.log.addAgents(message.agents);
    else if (message.type === "rows") this.#append(message.rows as unknown as readonly RunRow[], message.isCaughtUp);
    else if (message.type === "gone") this.gone.value = message.why;
    else if (message.type === "live") this.#write(message.event);
  }

  #append(rows: readonly RunRow[], isCaughtUp: boolean): void {
    for (const { agentId, entries } of rows) {
      for (const { type } of entries) {
        if (type === "model.responded" || type === "turn.ended") this.#texts.delete(agentId);
        if (requestTypes.has(type)) this.#requestChanges.value += 1;
      }
    }
    this.log.append(rows);
    if (isCaughtUp) {
      this.#show();
      this.isCaughtUp.value = true;
      return;
    }
    this.#shown ??= setTimeout(() => this.#show(), this.isCaughtUp.peek() ? SHOW_EVERY_MS : SHOW_EVERY_MS * 4);
  }

  #show(): void {
    clearTimeout(this.#shown);
    this.#shown = undefined;
    this.length.value = this.log.length;
    this.written.value += 1;
  }

  #write(event: Extract<FeedMessage, { type: "live" }>["event"]): void {
    const { agentId } = event;
    if (event.type === "text.delta") {
      this.#texts.set(agentId, (this.#texts.get(agentId) ?? "").slice(0, event.offset) + event.text);
    } else if (event.type === "text.snapshot") this.#texts.set(agentId, event.text);
    this.#shown ??= setTimeout(() => this.#show(), SHOW_EVERY_MS);
  }

  /** The requests are read anew when one was opened, decided or closed. */
  #followRequests(): () => void {
    return effect(() => {
      if (!this.isCaughtUp.value || this.#requestChanges.value < 0) return;
      this.client.requests(this.runId).then(
        (requests) => {
          this.requests.value = requests;
        },
        () => undefined,
      );
    });
  }

  /** Takes the terms of stored accounts, some of which no entry has. */
  learn(accounts: Parameters<RunMoments["learn"]>[0]): void {
    if (this.moments.learn(accounts)) this.#learned.value += 1;
  }

  /** Looks at the moment after `count` entries. */
  pin(count: number): void {
    this.pinned.value = Math.max(0, Math.min(count, this.log.length));
  }

  goLive(): void {
    this.pause();
    this.pinned.value = null;
  }

  stepEvent(by: number): void {
    this.pause();
    this.pin((this.pinned.peek() ?? this.log.length) + by);
  }

  /** Goes to the previous or next model call, of one agent or of any. */
  stepStep(direction: 1 | -1, agent: number): void {
    this.pause();
    const { entries } = this.log;
    let index = (this.pinned.peek() ?? entries.length) - 1 + direction;
    while (index >= 0 && index < entries.length) {
      const isOfAgent = agent < 0 || this.log.agentOf(index) === agent;
      if (isOfAgent && entries[index]?.type === "model.requested") break;
      index += direction;
    }
    this.pin(index + 1);
  }

  play(): void {
    const axis = this.axis.peek();
    let count = this.pinned.peek() ?? this.log.length;
    if (count >= this.log.length) count = 0;
    let place = axis.placeOf(count === 0 ? this.log.startedAt : this.log.timeOf(count - 1));
    let before = performance.now();
    this.pin(count);
    this.isPlaying.value = true;
    const tick = (now: number): void => {
      place += (now - before) * this.speed.peek();
      before = now;
      const next = Math.max(count, this.log.countUntil(axis.timeAt(place)));
      if (next !== count) this.pin(next);
      count = next;
      if (place >= axis.length) this.goLive();
      else this.#frame = requestAnimationFrame(tick);
    };
    this.#frame = requestAnimationFrame(tick);
  }

  pause(): void {
    cancelAnimationFrame(this.#frame);
    this.isPlaying.value = false;
  }

  /** The address of the moment: `CURSOR`, or `CURSOR.N` within its row; null: the newest. */
  addressOfMoment(): string | null {
    const count = this.pinned.value;
    if (count === null) return null;
    if (count === 0) return "0";
    const cursor = this.log.cursorOf(count - 1);
    if (count === this.log.countUpTo(cursor)) return String(cursor);
    return `${cursor}.${count - this.log.countUpTo(cursor - 1)}`;
  }

  /** The inverse; null for an address that is none. */
  countAt(address: string): number | null {
    const match = /^(\d{1,15})(?:\.(\d{1,6}))?$/.exec(address);
    if (!match) return null;
    const cursor = Number(match[1]);
    if (match[2] === undefined) return this.log.countUpTo(cursor);
    return this.log.countUpTo(cursor - 1) + Number(match[2]);
  }
}
