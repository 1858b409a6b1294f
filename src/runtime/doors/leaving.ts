import { anyRule, type Clock, type Door, holdProcess, optionsOf } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";

/** Less than Docker waits between asking a process to end and ending it. */
export const DEFAULT_SHUTDOWN_MS = 8_000;

export interface RuntimeShutdownOptions {
  /** Whole milliseconds from 0 to 2^31-1 within which all is over, whether or not the stores answer. Default 8,000. */
  readonly timeoutMs?: number | undefined;
}

/** An agent that a runtime could not leave as it should when its time was over. */
export interface LeftBehind {
  readonly agentId: string;
  /** Its open turn, if there is one. */
  readonly turnId: string | null;
  /** Why, and what becomes of it, in words. */
  readonly reason: string;
}

/** Throws `InvalidInputError` for what is no time; `what` is the call it was given to. */
export function leavingMsOf(what: string, timeoutMs: number): number {
  if (Number.isSafeInteger(timeoutMs) && timeoutMs >= 0 && timeoutMs < 2 ** 31) return timeoutMs;
  throw new InvalidInputError(
    `${what}({ timeoutMs }): ${String(timeoutMs)} is no whole number of milliseconds from 0 to 2147483647`,
  );
}

const shutdownDoor: Door<RuntimeShutdownOptions> = { rules: { timeoutMs: anyRule }, instead: { ms: "timeoutMs" } };

/** Undefined: the default. Throws `InvalidInputError` for what is no time. */
export function shutdownMsOf(given?: RuntimeShutdownOptions): number | undefined {
  const { timeoutMs } = optionsOf<RuntimeShutdownOptions>(given, "shutdown()", shutdownDoor);
  return timeoutMs === undefined ? undefined : leavingMsOf("shutdown", timeoutMs);
}

/** What is left to do when nothing more is stored takes at most so long, in milliseconds. */
const LONGEST_NOTICE_MS = 2_000;

/** How much of the time before its end is kept for what comes after a step: storing, giving back, closing the queues. */
const KEPT_FOR_LATER = { store: 1, giveBack: 0.5, queues: 0.25, stores: 0 } as const;

/**
 * The time in which a runtime leaves.
 * Owns: how long each step may take. Does not own: the steps.
 *
 * Invariant: a step that is not over in its time goes on unheard; the next one begins.
 */
export class LeavingTime {
  readonly #clock: Clock;
  readonly #end: number;
  readonly #noticeMs: number;

  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock;
    this.#end = clock.elapsed() + timeoutMs;
    this.#noticeMs = Math.min(LONGEST_NOTICE_MS, Math.floor(timeoutMs / 2));
  }

  /** Rejects as the work does; false when it was not over in its time. */
  async spend(step: keyof typeof KEPT_FOR_LATER, work: Promise<unknown>): Promise<boolean> {
    const over = new AbortController();
    const left = this.#end - this.#clock.elapsed() - this.#noticeMs * KEPT_FOR_LATER[step];
    // What has been settled already wins, also where no time is left.
    const late = this.#clock.sleep(Math.max(0, left), over.signal).then(() => false);
    const letGo = holdProcess();
    const done = work.then(() => true);
    // It may still fail when nobody listens any more.
    done.catch(() => undefined);
    try {
      return await Promise.race([done, late]);
    } finally {
      over.abort();
      letGo();
    }
  }
}

/** Says whom a runtime has left behind, where it has. */
export function warnOfLeft(leftBehind: readonly LeftBehind[]): void {
  if (leftBehind.length === 0) return;
  const named = leftBehind.slice(0, MOST_NAMED).map(({ agentId, turnId, reason }) => `${turnId ?? agentId}: ${reason}`);
  const others = leftBehind.length > MOST_NAMED ? `; and ${leftBehind.length - MOST_NAMED} more` : "";
  process.emitWarning(`this runtime has left agents behind: ${named.join("; ")}${others}`, {
    code: "TROUPE_LEFT_BEHIND",
  });
}

/** Agents that one warning names. */
const MOST_NAMED = 20;
