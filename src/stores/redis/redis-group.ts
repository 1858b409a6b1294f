import { InvariantError } from "../../errors/index.ts";
import { Missing, NotTogether } from "./redis-answers.ts";
import type { TreeSession } from "./redis-session.ts";

/** A piece of work that waits for its tree. */
export interface WaitingWork {
  /** Runs it over a session; what it throws is its own failure, unless it is one of the session's signals. */
  readonly run: (session: TreeSession) => unknown;
  /** Its result, with what the script gave. */
  readonly resolve: (result: unknown, cursorBefore: number) => void;
  readonly reject: (error: unknown) => void;
}

interface Outcome {
  readonly work: WaitingWork;
  readonly result?: unknown;
  readonly error?: unknown;
}

/** Runs the pieces of a group one after the other, as far as they can be told together. */
export function workOff(
  group: readonly WaitingWork[],
  session: TreeSession,
): { readonly outcomes: readonly Outcome[]; readonly missing: readonly Missing[] } {
  const outcomes: Outcome[] = [];
  const missing: Missing[] = [];
  for (const work of group) {
    if (!session.isOpen) break;
    try {
      outcomes.push({ work, result: session.run(() => work.run(session)) });
    } catch (error) {
      if (error instanceof Missing) missing.push(error);
      else if (error instanceof NotTogether) {
        if (outcomes.length + missing.length === 0)
          throw new InvariantError(`a piece of work does not go with itself: ${error.why}`);
        break;
      } else outcomes.push({ work, error });
    }
  }
  return { outcomes, missing };
}

/** Tells whoever waits for a piece of work what came of it. */
export function settle({ work, result, error }: Outcome, cursorBefore: number): void {
  if (error === undefined) work.resolve(result, cursorBefore);
  else work.reject(error);
}
