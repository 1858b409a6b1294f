import { z } from "zod";
import { textOrNullSchema, textSchema } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type Message, type ModelResponse, take } from "../state/index.ts";
import type { GenerateInput } from "../tools/index.ts";
import { isSummary } from "./turns-and-rounds.ts";

/** The input of a strategy. */
export interface CompactionInput {
  /** The messages visible to the model so far, oldest first; the summary of an earlier compaction comes first. */
  readonly messages: readonly Message[];
  /** The given messages as `beforeLlm` hooks edited them, without those that hooks removed. */
  readonly shown: (messages: readonly Message[]) => readonly Message[];
  /** How many of the newest messages to leave unchanged. Default: the strategy's own number. */
  readonly keep?: number | undefined;
  /** The open turn: its task stays visible. */
  readonly turnId: string;
  /** The model has refused the prompt as too long: hide as many messages as possible, even below `keep`. Default false. */
  readonly isTooLong?: boolean | undefined;
  /** Makes a model call on the agent's budget; the call is journalled. */
  readonly generate: (request: GenerateInput) => Promise<ModelResponse>;
  /** Aborted when the turn is stopped. */
  readonly signal: AbortSignal;
}

/** The result of a compaction strategy: which messages stay visible, and the summary that replaces the others. */
export interface Compaction {
  /** Id of the last message that is hidden from the model. */
  readonly through: string;
  /** Replaces all messages up to `through`; `null` to hide them without a summary. */
  readonly summary: string | null;
  /** Messages before `through` that stay visible to the model: the open turn's task. Default none. */
  readonly keepIds?: readonly string[];
}

/** Shortens a conversation for the model. The store keeps all messages. */
export interface CompactionStrategy {
  /** 1 to 1,000 characters; used in the definition's hash and in events. */
  readonly name: string;
  /** Chooses the messages to hide; resolves to `null` if no message can be hidden. */
  compact(input: CompactionInput): Promise<Compaction | null>;
}

const compactionSchema = z.object({
  through: textSchema,
  summary: textOrNullSchema,
  keepIds: z.array(textSchema).optional(),
});

/**
 * Validates the result of a strategy for these messages; `undefined` counts as `null`.
 * @throws InvalidInputError that names the mistake.
 */
export function takeCompaction(
  { name }: CompactionStrategy,
  given: unknown,
  messages: readonly Message[],
): Compaction | null {
  if (given === null || given === undefined) return null;
  const what = `the result of the compaction strategy "${name}"`;
  const { through, summary, keepIds = [] } = take(compactionSchema, given, what);
  if (!messages.some(({ id }) => id === through)) {
    throw new InvalidInputError(
      `${what} is invalid: through is ${JSON.stringify(through)}; expected the id of one of its input messages`,
    );
  }
  if (summary?.trim() === "") {
    throw new InvalidInputError(`${what} is invalid: its summary is empty; use null for no summary`);
  }
  return { through, summary, keepIds };
}

/** The last compaction of a conversation, from its `context.compacted` entry. */
export interface CompactedView {
  readonly through: string;
  readonly summaryMessageId: string | null;
  readonly kept: readonly string[];
}

/**
 * The messages of a conversation that are visible to the model: the summary, the kept messages, and all after `through`.
 * Summaries of earlier compactions are included in the last one, or were hidden with it. In the store a summary has the position
 * at which it was written, which is later than its position in the view.
 */
export function viewOf(history: readonly Message[], compaction: CompactedView | null): readonly Message[] {
  if (!compaction) return history;
  const { through, summaryMessageId, kept } = compaction;
  const keptIds = new Set(kept);
  // An unknown `through` is older than the loaded history.
  const end = history.findIndex(({ id }) => id === through);
  const summary: Message[] = [];
  const before: Message[] = [];
  const after: Message[] = [];
  for (const [index, message] of history.entries()) {
    if (message.id === summaryMessageId) summary.push(message);
    else if (isSummary(message)) continue;
    else if (index > end) after.push(message);
    else if (keptIds.has(message.id)) before.push(message);
  }
  return [...summary, ...before, ...after];
}

export interface CompactionDue {
  /** Messages of the conversation that are visible to the model. */
  readonly messages: number;
  /** A compaction is due with more messages than this. Default: no limit. */
  readonly maxMessages?: number | undefined;
  /** How full the model's context window was after its last answer, from 0 to 100; `null` if unknown. */
  readonly contextPercent: number | null;
  /** A compaction is due from this percentage on. Default 80. */
  readonly atPercent?: number | undefined;
}

/** Whether the conversation should be compacted before the next model call. */
export function compactionDue({ messages, maxMessages, contextPercent, atPercent = 80 }: CompactionDue): boolean {
  if (maxMessages !== undefined && messages > maxMessages) return true;
  return contextPercent !== null && contextPercent >= atPercent;
}
