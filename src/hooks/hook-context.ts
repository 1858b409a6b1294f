import type { ModelResponse, TraceEntry } from "../state/index.ts";
import type { Auth, GenerateInput, RunAgent } from "../tools/index.ts";

/** What a hook knows of the run it takes part in. */
export interface HookContext {
  readonly agent: RunAgent;
  readonly turnId: string;
  /** The step it belongs to, from 1. */
  readonly step: number;
  /** The user's prompt of this turn, as text. */
  readonly prompt: string;
  /** Who started the turn; null: nobody was named. */
  readonly actorId: string | null;
  /** Who the turn is for, with credentials where they are there. Not for storing: they are in no journal. */
  readonly auth: Auth | undefined;
  /** How full the model's context window was after the last answer, 0 to 100; null when that is not known. */
  readonly contextPercent: number | null;
  /** What happened in this turn so far (row H5). */
  readonly trace: readonly TraceEntry[];
  /** Aborted when the turn is stopped. */
  readonly signal: AbortSignal;
  /** A model call on the agent's budget; journalled, so a rerun with the same prompt gets the first answer. */
  readonly generate: (request: GenerateInput) => Promise<ModelResponse>;
  /**
   * Shows a `warning` event to whoever watches: `code` is for programs, `message` for people. One code is shown once per
   * turn, whatever its message; false when it had been shown already.
   */
  readonly emitWarning: (code: string, message: string) => boolean;
}
