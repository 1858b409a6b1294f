import { reading, wordsOfThrown } from "../../base/index.ts";

/** What a signal may end. */
interface AbortableTurns {
  abort(turnId: string, reason: string): Promise<void>;
  end(turnId: string): Promise<unknown>;
}

/** A caller's signal, as it is heard of here. */
export interface HeardSignal {
  /** Our own: aborted with the reason in words. */
  readonly signal: AbortSignal;
  readonly letGo: () => void;
}

/** Listens before anything is accepted: a signal that cannot be listened to is refused. Throws `InvalidInputError`. */
export function hearSignal(given: AbortSignal, what = "executeTurn(): signal"): HeardSignal {
  const own = new AbortController();
  const abort = (): void => own.abort(wordsOfThrown(given.reason));
  reading(what, () => {
    if (given.aborted) abort();
    else given.addEventListener("abort", abort, { once: true });
  });
  const letGo = (): void => {
    try {
      given.removeEventListener("abort", abort);
    } catch {
      // It is its caller's own, and nothing more of it is needed.
    }
  };
  return { signal: own.signal, letGo };
}

/** Aborts the turn with the signal; one that is aborted already keeps it from its first step (row S12). */
export async function abortWithSignal(turns: AbortableTurns, turnId: string, heard: HeardSignal): Promise<void> {
  const { signal, letGo } = heard;
  const reason = (): string => String(signal.reason);
  if (signal.aborted) return await turns.abort(turnId, reason());
  const abort = (): void => {
    turns.abort(turnId, reason()).catch((error: unknown) => process.emitWarning(`turn ${turnId}: ${String(error)}`));
  };
  signal.addEventListener("abort", abort, { once: true });
  turns.end(turnId).then(letGo, letGo);
}
