import { TroupeError } from "../../errors/index.ts";
import type { TreeWatching } from "../../runtime/index.ts";
import { type Given, LiveAnswers } from "./live-answers.ts";
import type { FeedMessage, FeedOwner } from "./messages.ts";
import { RunBatches } from "./run-batches.ts";
import { RunStatus } from "./run-status.ts";
import type { RunSource, Sources } from "./source.ts";
import type { Visibility } from "./visible-values.ts";

/** How long a new row is held back to be sent together with later rows, in milliseconds. */
const GATHER_MS = 20;
/** How often live text is sent, in milliseconds. */
const LIVE_MS = 50;
/** How often the stores are polled in case a notification was lost, in milliseconds. */
const POLL_MS = 2_000;
const MOST_CREDIT = 1_000;

/** The destination of one reader's messages. */
export interface FeedSink {
  /** Sends a message to the reader. */
  send(message: FeedMessage): void;
  /** Whether too much is buffered for the reader. Nothing is then sent until `RunWatch.pump` is called. */
  isFull(): boolean;
}

/** One reader's subscription to a run. */
export interface RunWatch {
  /** Allows the feed to send this many more batches. */
  grant(batches: number): void;
  /** Continues sending; call it once a full sink has room again. */
  pump(): void;
  /** Ends the subscription. */
  end(): void;
}

/**
 * The readers of one run in this process. Owns: the subscription to its tree, the batches of its rows, its live answers,
 * and the checks of its source.
 */
export class WatchedRun {
  readonly source: RunSource;
  readonly batches: RunBatches;
  readonly live = new LiveAnswers();
  readonly status: RunStatus;
  readonly #readers = new Set<RunReader>();
  readonly #watching: TreeWatching;
  readonly #poll: ReturnType<typeof setInterval>;
  readonly #stopLosses: () => void;
  #written: ReturnType<typeof setTimeout> | undefined;
  #said: ReturnType<typeof setTimeout> | undefined;

  constructor(sources: Sources, source: RunSource, sight: Visibility) {
    this.source = source;
    this.batches = new RunBatches(source, sight);
    const gone = (why: string): void => {
      for (const reader of this.#readers) reader.gone(why);
    };
    this.status = new RunStatus(
      source,
      () => {
        for (const reader of this.#readers) reader.tellStatus();
      },
      () => {
        sources.forgetRun(source);
        gone("This run was deleted.");
      },
    );
    const written = (): void => {
      this.#written ??= later(GATHER_MS, () => {
        this.#written = undefined;
        this.batches.refresh();
        for (const reader of this.#readers) reader.pump();
      });
    };
    this.#watching = sources.watch(source, {
      written: () => {
        written();
        this.status.hurry();
      },
      live: (part) => {
        if (sight.namesOnly) return;
        if (!this.live.take(part)) this.#watching.ask();
        this.#said ??= later(LIVE_MS, () => {
          this.#said = undefined;
          for (const reader of this.#readers) reader.tell();
        });
      },
    });
    this.#poll = setInterval(written, POLL_MS);
    this.#poll.unref();
    this.#stopLosses = source.stores.onRolledBack(({ tenant, rootAgentId, deletedAt }) => {
      if (tenant !== source.tenant || rootAgentId !== source.runId) return;
      if (deletedAt !== undefined) return this.status.hurry();
      gone("The stores have lost the newest rows of this run. Load the page again.");
    });
  }

  add(reader: RunReader): void {
    this.#readers.add(reader);
  }

  /** Removes a reader. Removing the last one ends the subscriptions and returns true. */
  remove(reader: RunReader): boolean {
    this.#readers.delete(reader);
    if (this.#readers.size > 0) return false;
    this.#watching.end();
    this.#stopLosses();
    this.status.end();
    clearInterval(this.#poll);
    clearTimeout(this.#written);
    clearTimeout(this.#said);
    return true;
  }

  close(): void {
    for (const reader of this.#readers) reader.end();
  }
}

function later(ms: number, work: () => void): ReturnType<typeof setTimeout> {
  const timer = setTimeout(work, ms);
  timer.unref();
  return timer;
}

/**
 * One reader of one run. Reads the journal after its cursor while it has credit.
 *
 * Invariants
 * 1. Rows are sent in journal order, each once; an agent is sent before its first row.
 * 2. A batch uses one credit; without credit nothing is sent, not even the status.
 * 3. Live text is sent only while the reader has all rows, so it never follows the end of its call.
 */
export class RunReader implements RunWatch {
  readonly #run: WatchedRun;
  readonly #sink: FeedSink;
  readonly #onEnd: (watch: RunReader) => void;
  readonly #given: Given = new Map();
  #cursor: number;
  #credit: number;
  #isCaughtUp = false;
  #isReading = false;
  #isToReadAgain = false;
  #hasEnded = false;
  #owners: readonly FeedOwner[] | undefined;

  constructor(
    run: WatchedRun,
    place: { after: number; credit: number },
    sink: FeedSink,
    onEnd: (watch: RunReader) => void,
  ) {
    this.#run = run;
    this.#cursor = place.after;
    this.#credit = place.credit;
    this.#sink = sink;
    this.#onEnd = onEnd;
    run.add(this);
    this.tellStatus();
    this.pump();
  }

  grant(batches: number): void {
    this.#credit = Math.min(MOST_CREDIT, this.#credit + batches);
    this.pump();
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#onEnd(this);
  }

  gone(why: string): void {
    if (this.#hasEnded) return;
    this.#sink.send({ type: "gone", run: this.#run.source.runId, why });
    this.end();
  }

  /** Sends new rows while the reader has credit and its sink has room. */
  pump(): void {
    this.#isToReadAgain = true;
    if (this.#isReading || this.#hasEnded) return;
    this.#isReading = true;
    void this.#read().finally(() => {
      this.#isReading = false;
      // `pump` may have been called since the loop last checked.
      if (this.#isToReadAgain && this.#mayRead()) this.pump();
      // Live text may have been received while the rows before it were read.
      else this.tell();
    });
  }

  /** Sends live text if the reader has all rows before it. */
  tell(): void {
    const { live, source } = this.#run;
    if (live.isEmpty || this.#isReading || !this.#isCaughtUp || !this.#mayRead()) return;
    for (const event of live.lackedBy(this.#given, this.#cursor)) {
      this.#sink.send({ type: "live", run: source.runId, event });
    }
  }

  /** Sends the status of the source, with its owners only if they changed. */
  tellStatus(): void {
    const { status } = this.#run.status;
    if (!status || !this.#mayRead()) return;
    const { owners, ...rest } = status;
    this.#sink.send(owners === this.#owners ? rest : { ...rest, owners });
    this.#owners = owners;
  }

  #mayRead(): boolean {
    return this.#credit > 0 && !this.#hasEnded && !this.#sink.isFull();
  }

  async #read(): Promise<void> {
    try {
      while (this.#isToReadAgain && this.#mayRead()) {
        this.#isToReadAgain = false;
        await this.#readOn();
      }
    } catch (error) {
      this.#isCaughtUp = false;
      const message = error instanceof TroupeError ? error.message : "the stores do not answer";
      if (!this.#hasEnded)
        this.#sink.send({ type: "error", code: "unavailable", message, run: this.#run.source.runId });
    }
  }

  async #readOn(): Promise<void> {
    const { batches, live, source } = this.#run;
    const run = source.runId;
    while (this.#mayRead()) {
      const { rows, agents, head, isLast } = await batches.after(this.#cursor);
      if (this.#hasEnded || (rows.length === 0 && this.#isCaughtUp)) return;
      if (agents.length > 0) this.#sink.send({ type: "agents", run, agents });
      this.#cursor = head;
      this.#isCaughtUp = isLast;
      this.#credit -= 1;
      for (const { agentId, entries } of rows) for (const entry of entries) live.note(agentId, entry);
      this.#sink.send({ type: "rows", run, rows, head, isCaughtUp: isLast });
      if (isLast) return;
    }
    this.#isToReadAgain = true;
  }
}
