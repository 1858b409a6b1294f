import { type ReadonlySignal, signal } from "@preact/signals";
import type { RunLog } from "../run-model/run-log.ts";
import type { RunMoments } from "../run-model/run-moments.ts";
import { type SupposedLimit, type SupposedRun, Supposition } from "../run-model/supposed-limit.ts";
import { Slices } from "./slices.ts";

interface Supposed {
  readonly log: RunLog;
  readonly moments: RunMoments;
  readonly present: ReadonlySignal<number>;
}

const FOLDED_AT_ONCE = 256;

/**
 * A limit that the reader tries, and the outcome of the run under it.
 * Owns: the fold under that limit. Does not own: the run.
 *
 * 1. The whole run is folded, even while the page shows an earlier moment. New entries are folded as they are received.
 * 2. Until the fold under a new limit is complete, the previous outcome stays.
 */
export class Supposing {
  /** The tried limit; `null` if there is none. */
  readonly limit = signal<SupposedLimit | null>(null);
  readonly outcome = signal<SupposedRun | null>(null);
  readonly #run: Supposed;
  #supposition: Supposition | undefined;
  #isFolding = false;

  constructor(run: Supposed) {
    this.#run = run;
  }

  try(limit: SupposedLimit | null): void {
    const { log, moments } = this.#run;
    this.limit.value = limit;
    this.#supposition = limit ? new Supposition(log, moments.stateAt(log.first).accounts, limit) : undefined;
    if (limit) this.foldOn();
    else this.outcome.value = null;
  }

  /** Call when entries were added or time has passed. */
  foldOn(): void {
    if (this.#supposition && !this.#isFolding) void this.#fold();
  }

  async #fold(): Promise<void> {
    this.#isFolding = true;
    const slices = new Slices();
    for (;;) {
      const supposition = this.#supposition;
      if (!supposition) break;
      if (supposition.foldOn(this.#run.log.length, FOLDED_AT_ONCE)) await slices.pause();
      else if (supposition === this.#supposition) {
        supposition.passTime(this.#run.present.peek());
        this.#show(supposition.run);
        break;
      }
    }
    this.#isFolding = false;
  }

  #show(run: SupposedRun): void {
    const shown = this.outcome.peek();
    const isSame = shown?.end === run.end && shown.turnsOff === run.turnsOff && shown.most === run.most;
    if (!isSame) this.outcome.value = run;
  }
}
