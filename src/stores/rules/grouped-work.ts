import { InvariantError } from "../../errors/index.ts";

/** How many works share one transaction, which keeps it short. */
const GROUP = 64;

/** Work that waits in a queue, and the session in which it runs. */
export interface QueuedWork<Session, Done> {
  /** Runs the work in a session. A thrown value is the work's result, unless it is a signal of the session. */
  readonly run: (session: Session) => unknown;
  /** Called with the result of the work and the outcome of the transaction. */
  readonly resolve: (result: unknown, done: Done) => void;
  readonly reject: (error: unknown) => void;
}

export interface WorkOutcome<Session, Done> {
  readonly work: QueuedWork<Session, Done>;
  readonly result?: unknown;
  readonly error?: unknown;
}

/** The session of a group of works. */
interface GroupSession {
  /** Whether further works may join the group. */
  readonly isOpen: boolean;
  /** Undoes the changes of work that throws. */
  run<T>(work: () => T): T;
}

/** Thrown by work that cannot run after others in a group; it becomes the first one of the next group. */
export class NotTogether {
  readonly why: string;

  constructor(why: string) {
    this.why = why;
  }
}

/**
 * Works that wait and run in groups, one group after the other.
 * Owns: their order. Does not own: what the works do.
 */
export class GroupQueue<Session, Done> {
  readonly #runGroup: (group: readonly QueuedWork<Session, Done>[]) => Promise<number>;
  /** Translates the error of a group for its callers. */
  readonly #onFailure: (error: unknown) => unknown;
  #waiting: QueuedWork<Session, Done>[] = [];
  #running: Promise<void> | undefined;

  /** `runGroup` settles the first works of the group, at least one, and returns how many. */
  constructor(
    runGroup: (group: readonly QueuedWork<Session, Done>[]) => Promise<number>,
    onFailure: (error: unknown) => unknown,
  ) {
    this.#runGroup = runGroup;
    this.#onFailure = onFailure;
  }

  get isIdle(): boolean {
    return this.#running === undefined;
  }

  /** Resolves when the queue is empty. */
  async idle(): Promise<void> {
    await this.#running;
  }

  add(work: QueuedWork<Session, Done>): void {
    this.#waiting.push(work);
    this.#running ??= this.#runAll();
  }

  async #runAll(): Promise<void> {
    // Works that are added in the same tick join the first group.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const group = this.#waiting.slice(0, GROUP);
      let settled = group.length;
      try {
        settled = await this.#runGroup(group);
      } catch (error) {
        const failure = this.#onFailure(error);
        for (const work of group) work.reject(failure);
      }
      this.#waiting = this.#waiting.slice(settled);
    }
    this.#running = undefined;
  }
}

/** Runs the works of a group one after the other, until one of them cannot join the group. */
export function runTogether<Session extends GroupSession, Done, Missing>(
  group: readonly QueuedWork<Session, Done>[],
  session: Session,
  isMissing: (thrown: unknown) => thrown is Missing,
): { readonly outcomes: readonly WorkOutcome<Session, Done>[]; readonly missing: readonly Missing[] } {
  const outcomes: WorkOutcome<Session, Done>[] = [];
  const missing: Missing[] = [];
  for (const work of group) {
    if (!session.isOpen) break;
    try {
      outcomes.push({ work, result: session.run(() => work.run(session)) });
    } catch (error) {
      if (isMissing(error)) missing.push(error);
      else if (error instanceof NotTogether) {
        if (outcomes.length + missing.length === 0)
          throw new InvariantError(`the first work of a group cannot run alone: ${error.why}`);
        break;
      } else outcomes.push({ work, error });
    }
  }
  return { outcomes, missing };
}

/** Answers the caller of a piece of work. */
export function settle<Session, Done>({ work, result, error }: WorkOutcome<Session, Done>, done: Done): void {
  if (error === undefined) work.resolve(result, done);
  else work.reject(error);
}
