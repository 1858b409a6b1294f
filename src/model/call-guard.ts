import { ModelError } from "../errors/index.ts";
import type { ModelFailureKind } from "./call-failure.ts";

interface CallLimits {
  /** Milliseconds for the whole call. */
  readonly requestTimeoutMs: number;
  /** Milliseconds until the answer begins; absent for a whole answer, which begins when it is complete. */
  readonly headersTimeoutMs?: number | undefined;
  /** Milliseconds of silence once it has begun. */
  readonly stallTimeoutMs: number;
}

/** How long the end of a stream is waited for after its last event, in milliseconds. */
const closingGraceMs = 1_000;

/** What may end an exchange early. */
export interface Cutter {
  /** Calls the listener when the exchange must end, at once if that was before. The last listener counts. */
  onCut(listener: (reason: Error) => void): void;
  /** The same as a signal. */
  readonly signal: AbortSignal;
}

/**
 * Ends one model call early: by its caller's signal, by the time limit of the whole call, or after silence.
 * 1. The first cause wins; it tells the listener, aborts `signal` and rejects `race`.
 * 2. After `end()` no timer and no listener is left.
 */
export class CallGuard implements Cutter {
  /** Made when somebody asks for the signal, which most calls do without. */
  #controller: AbortController | undefined;
  #onCut: ((reason: Error) => void) | undefined;
  readonly #caller: AbortSignal;
  readonly #limits: CallLimits;
  readonly #total: NodeJS.Timeout;
  #silence: NodeJS.Timeout | undefined;
  #cut: ModelError | undefined;
  #rejectRace: ((error: ModelError) => void) | undefined;
  readonly #onAbort = (): void => this.#cutCall("aborted", "The model call was aborted.", this.#caller.reason);

  /** `caller` must not be aborted yet. */
  constructor(caller: AbortSignal, limits: CallLimits) {
    this.#caller = caller;
    this.#limits = limits;
    caller.addEventListener("abort", this.#onAbort, { once: true });
    const { requestTimeoutMs, headersTimeoutMs } = limits;
    const whole = `The model call took longer than ${requestTimeoutMs} ms (requestTimeoutMs).`;
    this.#total = setTimeout(() => this.#cutCall("timeout", whole), requestTimeoutMs);
    if (headersTimeoutMs === undefined) return;
    const late = `The model server did not begin to answer within ${headersTimeoutMs} ms (headersTimeoutMs).`;
    this.#silence = setTimeout(() => this.#cutCall("timeout", late), headersTimeoutMs);
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#cut !== undefined) this.#controller.abort(this.#cut);
    return this.#controller.signal;
  }

  onCut(listener: (reason: Error) => void): void {
    this.#onCut = listener;
    if (this.#cut !== undefined) listener(this.#cut);
  }

  /** Why the call was ended early; undefined if it was not. */
  get cut(): ModelError | undefined {
    return this.#cut;
  }

  /** Settles like `work`, or rejects at once when the call is ended early, even if `work` never notices. */
  race<Value>(work: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.#rejectRace = reject;
      work.then(resolve, reject);
    });
  }

  /** The answer has begun: from now on silence is limited. */
  watchSilence(): void {
    clearTimeout(this.#silence);
    const { stallTimeoutMs } = this.#limits;
    const stalled = `The model's answer stalled: nothing came for ${stallTimeoutMs} ms (stallTimeoutMs).`;
    this.#silence = setTimeout(() => this.#cutCall("stalled", stalled), stallTimeoutMs);
  }

  /** Something arrived: the silence starts again. */
  heard(): void {
    this.#silence?.refresh();
  }

  /** Only the end of the stream is missing; it is waited for briefly. */
  expectEnd(): void {
    clearTimeout(this.#silence);
    const grace = Math.min(this.#limits.stallTimeoutMs, closingGraceMs);
    this.#silence = setTimeout(() => this.#cutCall("stalled", "The stream did not end after its last event."), grace);
  }

  /** Frees the timers and the listener. Safe to call twice. */
  end(): void {
    clearTimeout(this.#total);
    clearTimeout(this.#silence);
    this.#caller.removeEventListener("abort", this.#onAbort);
    this.#rejectRace = undefined;
  }

  #cutCall(kind: ModelFailureKind, message: string, cause?: unknown): void {
    const retryable = kind !== "aborted";
    this.#cut ??= new ModelError(message, { retryable, mayHaveBeenSent: true, cause, details: { kind } });
    this.#rejectRace?.(this.#cut);
    this.#onCut?.(this.#cut);
    this.#controller?.abort(this.#cut);
  }
}
