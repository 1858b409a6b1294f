import { faultPoint } from "../base/index.ts";
import {
  type Compaction,
  compactionDue,
  type CompactionInput,
  type CompactionStrategy,
  dropOldest,
  takeCompaction,
  withPatches,
} from "../context/index.ts";
import { AgentStopError, ContextTooLongError, LeaseLostError, TurnInterruptedError } from "../errors/index.ts";
import { type EntryOf, type Message, stepMetadata, type TurnState } from "../state/index.ts";
import type { Redact } from "../tools/index.ts";
import { generateFor, settleAbandonedRun } from "./generate.ts";
import { appendWarnings, type Host, isWarnedOf } from "./host.ts";
import { patchesOf } from "./prompt.ts";
import { contextPercentOf } from "./run-context.ts";
import { storedErrorOf } from "./stored-error.ts";
import { debugError } from "./user-errors.ts";

/**
 * Code of the warning that a strategy has failed. A failed strategy is not tried again in the turn, unless the prompt is too
 * long.
 */
const COMPACTION_FAILED = "compaction_failed";

/**
 * Keeps the conversation within the model's window: compacts it if the definition has `autoCompact`, and only warns if it has a
 * limit alone. Compaction is user code with journalled results: a committed compaction does not run again. If a strategy fails,
 * the turn emits a warning and continues with the whole conversation or, if the model refused that as too long, without the
 * oldest messages. Throws `ContextTooLongError` if the model refused the prompt as too long and nothing more can be left out.
 */
export async function compactIfDue(host: Host, turnId: string, signal: AbortSignal): Promise<void> {
  const turn = host.turn(turnId);
  if (!turn) return;
  const { maxMessages, autoCompact } = host.definition;
  const isTooLong = wasTooLong(host, turn);
  const messages = host.history().length;
  const contextPercent = contextPercentOf(host, turn);
  const isDue =
    turn.compactions === 0 &&
    turn.attempt === 0 &&
    !isWarnedOf(host, turnId, COMPACTION_FAILED) &&
    compactionDue({ messages, maxMessages, contextPercent, ...autoCompact });
  if (!autoCompact) {
    warnOfLength(host, turnId);
    return;
  }
  if (isTooLong || isDue) await compactNow(host, { turn, isTooLong }, signal);
}

/** Compacts the conversation by the definition's strategy; appends nothing if the strategy leaves it as it is. */
export async function compactNow(
  host: Host,
  { turn, isTooLong }: { readonly turn: TurnState; readonly isTooLong: boolean },
  signal: AbortSignal,
): Promise<void> {
  const { turnId } = turn;
  const { autoCompact } = host.definition;
  if (!autoCompact) return;
  await host.committed();
  if (signal.aborted) return;
  const run = `compact:${turn.compactions}`;
  const step = turn.attempt > 0 ? turn.step : turn.step + 1;
  const { strategy, keep } = autoCompact;
  const view = host.history();
  const patches = patchesOf(host, turn);
  const inputWith = (callSignal: AbortSignal): CompactionInput => ({
    messages: view,
    shown: (messages) => withPatches(messages, patches),
    keep,
    turnId,
    isTooLong,
    signal: callSignal,
    generate: generateFor(host, turnId, step, `${run}@${step}`, callSignal),
  });
  const key = `${turnId}:${step}:${run}`;
  const outcome = await host.inFlight.run(key, signal, (callSignal) =>
    tried(strategy, inputWith(callSignal), host.redactorOf(turnId)),
  );
  if (signal.aborted) return;
  settleAbandonedRun(host, { turnId, step }, (one) => one === `${run}@${step}`);
  faultPoint("compact.effect");
  const isFallback = outcome.compaction === null && isTooLong;
  const used = isFallback ? dropOldest() : strategy;
  const compaction = isFallback ? await used.compact(inputWith(signal)) : outcome.compaction;
  if (!compaction && isTooLong) throw new ContextTooLongError(tooLong(turn.compactions));
  if (outcome.failure !== undefined) {
    const effect = compaction
      ? "the oldest messages are left out instead"
      : "the turn continues with the whole conversation";
    const why = host.redactorOf(turnId)(outcome.failure);
    const message = `the strategy "${strategy.name}" could not compact the conversation; ${effect}: ${why}`;
    appendWarnings(host, turnId, [{ code: COMPACTION_FAILED, message }]);
  }
  if (!compaction) return;
  const { through, summary, keepIds = [] } = compaction;
  const message = summary === null ? undefined : summaryMessage(host, turnId, step, run, summary);
  const dropped = view.findIndex(({ id }) => id === through) + 1 - keepIds.length;
  host.append(
    {
      type: "context.compacted",
      turnId,
      step,
      strategy: used.name,
      through,
      summaryMessageId: message?.id ?? null,
      kept: [...keepIds],
      messages: Math.max(0, dropped),
    },
    { messages: message ? [message] : [] },
  );
  faultPoint("compact.result");
}

interface Outcome {
  readonly compaction: Compaction | null;
  /** The reason why the strategy has failed. */
  readonly failure?: string;
}

/**
 * Errors of the strategy and invalid results are failures. A stop, a refused model call and the loss of the agent end the turn
 * instead.
 */
async function tried(strategy: CompactionStrategy, input: CompactionInput, redact: Redact): Promise<Outcome> {
  try {
    return { compaction: takeCompaction(strategy, await strategy.compact(input), input.messages) };
  } catch (error) {
    const isEnd = error instanceof AgentStopError || error instanceof TurnInterruptedError;
    if (isEnd || error instanceof LeaseLostError) throw error;
    debugError(`the compaction strategy "${strategy.name}"`, error, redact);
    return { compaction: null, failure: storedErrorOf(error).message };
  }
}

/**
 * Whether the model refused the last attempt of this call as too long, and nothing has been compacted since. Not if a model with a
 * larger window is called next.
 */
export function wasTooLong(host: Host, turn: TurnState): boolean {
  const last = host
    .memory(turn.turnId)
    .entries.findLast(
      (entry): entry is EntryOf<"model.failed" | "context.compacted"> =>
        entry.type === "model.failed" || entry.type === "context.compacted",
    );
  return turn.attempt > 0 && last?.type === "model.failed" && last.error.code === "context_length" && !last.next;
}

/** Warns once per turn if the conversation exceeds the definition's limit and is not compacted. */
export function warnOfLength(host: Host, turnId: string, more: readonly Message[] = []): void {
  const { maxMessages, autoCompact } = host.definition;
  const messages = host.history().length + more.length;
  if (autoCompact || maxMessages === undefined || messages <= maxMessages) return;
  const message = `the conversation has ${messages} messages, the limit is ${maxMessages}; set autoCompact to compact it`;
  appendWarnings(host, turnId, [{ code: "messages_limit", message }]);
}

function summaryMessage(host: Host, turnId: string, step: number, run: string, summary: string): Message {
  return {
    id: `${turnId}:${step}:${run}`,
    role: "user",
    createdAt: host.clock.now(),
    content: summary,
    origin: "compaction",
    metadata: stepMetadata(host.identity.agentId, { turnId, step, isTrace: true }),
  };
}

/** How many times a prompt that stays too long for the model is compacted before the turn fails (F25). */
export const COMPACTIONS_WITHOUT_PROGRESS = 2;

/** The error message for a prompt that the model refuses as too long. */
export function tooLong(compactions: number): string {
  const tried = compactions === 0 ? "" : `, also after ${compactions} compactions`;
  return `the conversation is too long for the model${tried}; start a new one with clear() or resetConversation(); to prevent this, use a larger context window, a smaller history or autoCompact`;
}
