/** What a signal may end. */
interface AbortableTurns {
  abort(turnId: string, reason: string): Promise<void>;
  end(turnId: string): Promise<unknown>;
}

/** Aborts the turn with the signal; one that is aborted already keeps it from its first step (row S12). */
export async function abortWithSignal(turns: AbortableTurns, turnId: string, signal: AbortSignal): Promise<void> {
  const reason = (): string => (signal.reason instanceof Error ? signal.reason.message : String(signal.reason));
  if (signal.aborted) return await turns.abort(turnId, reason());
  const abort = (): void => {
    turns.abort(turnId, reason()).catch((error: unknown) => process.emitWarning(`turn ${turnId}: ${String(error)}`));
  };
  signal.addEventListener("abort", abort, { once: true });
  const letGo = (): void => signal.removeEventListener("abort", abort);
  turns.end(turnId).then(letGo, letGo);
}
