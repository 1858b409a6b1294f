import { ModelError } from "../errors/index.ts";
import type { ModelFailureKind } from "./call-failure.ts";
import { LONGEST_REFUSAL_MS } from "./read-answer.ts";

interface CallLimits {
  /** Milliseconds for the complete call. */
  readonly requestTimeoutMs: number;
  /** Milliseconds until the first piece of the answer. Default: only `requestTimeoutMs` applies. */
  readonly headersTimeoutMs?: number | undefined;
  /** Milliseconds without data after the first piece. */
  readonly stallTimeoutMs: number;
}

/** Time to wait for the end of a stream after its last event, in milliseconds. */
const closingGraceMs = 1_000;

/**
 * Ends one model call early: when its caller aborts it, when it exceeds its time limit, or when no data arrives.
 * 1. Only the first cause counts; it aborts `signal` and rejects `race`.
 * 2. After `end()` no timer is running, and no listener remains on the caller's signal.
 */
export class CallGuard {
  /** Whether bytes of the request may have reached the server; `undefined` if unknown. */
  wasSent: boolean | undefined;
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal;
  readonly #limits: CallLimits;
  readonly #total: NodeJS.Timeout;
  readonly #endsAt: number;
  #silence: NodeJS.Timeout | undefined;
  #hasBegun = false;
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
    this.#endsAt = performance.now() + requestTimeoutMs;
    this.#total = setTimeout(() => this.#cutCall("timeout", whole), requestTimeoutMs);
    if (headersTimeoutMs === undefined) return;
    const late = `The model server did not begin to answer within ${headersTimeoutMs} ms (headersTimeoutMs).`;
    this.#silence = setTimeout(() => this.#cutCall("timeout", late), headersTimeoutMs);
  }

  /** Aborted when the call must end; its reason is the `ModelError`. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * Stops the time limits after the server refused the call, since only the beginning of the error body is read. Returns the milliseconds
   * that reading may take.
   */
  refused(): number {
    clearTimeout(this.#silence);
    clearTimeout(this.#total);
    return Math.max(0, Math.min(LONGEST_REFUSAL_MS, this.#endsAt - performance.now()));
  }

  /** Why the call was ended early; `undefined` if it was not. */
  get cut(): ModelError | undefined {
    return this.#cut;
  }

  /** Settles like `work`, or rejects at once when the call is ended early, even if `work` ignores the signal. */
  race<Value>(work: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.#rejectRace = reject;
      work.then(resolve, reject);
    });
  }

  /** Restarts the stall timeout after a piece of the answer. */
  heard(): void {
    if (this.#hasBegun) {
      this.#silence?.refresh();
      return;
    }
    this.#hasBegun = true;
    clearTimeout(this.#silence);
    const { stallTimeoutMs } = this.#limits;
    const stalled = `The model's answer stalled: no data for ${stallTimeoutMs} ms (stallTimeoutMs).`;
    this.#silence = setTimeout(() => this.#cutCall("stalled", stalled), stallTimeoutMs);
  }

  /** Stops the stall timeout until the next piece of the answer. */
  pause(): void {
    clearTimeout(this.#silence);
    this.#hasBegun = false;
  }

  /** Replaces the stall timeout by a short wait for the end of the stream. */
  expectEnd(): void {
    clearTimeout(this.#silence);
    this.#hasBegun = true;
    const grace = Math.min(this.#limits.stallTimeoutMs, closingGraceMs);
    this.#silence = setTimeout(() => this.#cutCall("stalled", "The stream did not end after its last event."), grace);
  }

  /** Clears the timers and removes the listener. Safe to call twice. */
  end(): void {
    clearTimeout(this.#total);
    clearTimeout(this.#silence);
    this.#caller.removeEventListener("abort", this.#onAbort);
    this.#rejectRace = undefined;
  }

  #cutCall(kind: ModelFailureKind, message: string, cause?: unknown): void {
    const retryable = kind !== "aborted";
    const mayHaveBeenSent = this.wasSent ?? true;
    this.#cut ??= new ModelError(message, { retryable, mayHaveBeenSent, cause, details: { kind } });
    this.#rejectRace?.(this.#cut);
    this.#controller.abort(this.#cut);
  }
}
