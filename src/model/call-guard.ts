import type { LightSignal } from "../base/index.ts";
import { ModelError } from "../errors/index.ts";
import type { ModelFailureKind } from "./call-failure.ts";
import { LONGEST_REFUSAL_MS } from "./read-answer.ts";

interface CallLimits {
  /** Milliseconds for the whole call. */
  readonly requestTimeoutMs: number;
  /** Milliseconds until the first piece of the answer; absent: only the limit of the whole call counts. */
  readonly headersTimeoutMs?: number | undefined;
  /** Milliseconds of silence after the first piece. */
  readonly stallTimeoutMs: number;
}

/** How long the end of a stream is waited for after its last event, in milliseconds. */
const closingGraceMs = 1_000;

/** What can be ended early. */
interface Cuttable {
  cut(reason: Error): void;
  /** Whether anything of the request may have reached the server. */
  readonly wasSent: boolean;
}

/** What may end an exchange early. */
export interface Cutter {
  /** Cuts the exchange when it must end, at once if that was before. The last one that is given counts. */
  watch(exchange: Cuttable): void;
  /** The same as a signal. */
  readonly signal: AbortSignal;
  /**
   * The server has refused the call: only the beginning of its answer is read, which no time limit cuts. Gives the milliseconds that
   * this may take.
   */
  refused(): number;
}

/**
 * Ends one model call early: by its caller's signal, by the time limit of the whole call, or after silence.
 * 1. The first cause wins; it cuts the exchange, aborts `signal` and rejects `race`.
 * 2. After `end()` no timer is left, and nothing listens to the caller's signal.
 */
export class CallGuard implements Cutter {
  /** Made when somebody asks for the signal, which most calls do without. */
  #controller: AbortController | undefined;
  #exchange: Cuttable | undefined;
  readonly #caller: LightSignal;
  readonly #limits: CallLimits;
  readonly #total: NodeJS.Timeout;
  readonly #endsAt: number;
  #silence: NodeJS.Timeout | undefined;
  #hasBegun = false;
  #cut: ModelError | undefined;
  #rejectRace: ((error: ModelError) => void) | undefined;
  readonly #onAbort = (): void => this.#cutCall("aborted", "The model call was aborted.", this.#caller.reason);

  /** `caller` must not be aborted yet. */
  constructor(caller: LightSignal, limits: CallLimits) {
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

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#cut !== undefined) this.#controller.abort(this.#cut);
    return this.#controller.signal;
  }

  watch(exchange: Cuttable): void {
    this.#exchange = exchange;
    if (this.#cut !== undefined) exchange.cut(this.#cut);
  }

  refused(): number {
    clearTimeout(this.#silence);
    clearTimeout(this.#total);
    return Math.max(0, Math.min(LONGEST_REFUSAL_MS, this.#endsAt - performance.now()));
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

  /** A piece of the answer has come. The silence after it is limited. */
  heard(): void {
    if (this.#hasBegun) {
      this.#silence?.refresh();
      return;
    }
    this.#hasBegun = true;
    clearTimeout(this.#silence);
    const { stallTimeoutMs } = this.#limits;
    const stalled = `The model's answer stalled: nothing came for ${stallTimeoutMs} ms (stallTimeoutMs).`;
    this.#silence = setTimeout(() => this.#cutCall("stalled", stalled), stallTimeoutMs);
  }

  /** Only the end of the stream is missing; it is waited for briefly. */
  expectEnd(): void {
    clearTimeout(this.#silence);
    this.#hasBegun = true;
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
    // A `fetch` does not tell.
    const mayHaveBeenSent = this.#exchange?.wasSent ?? true;
    this.#cut ??= new ModelError(message, { retryable, mayHaveBeenSent, cause, details: { kind } });
    this.#rejectRace?.(this.#cut);
    this.#exchange?.cut(this.#cut);
    this.#controller?.abort(this.#cut);
  }
}
