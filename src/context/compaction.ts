import { z } from "zod";
import { textOrNullSchema, textSchema } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type Message, type ModelResponse, take } from "../state/index.ts";
import type { GenerateInput } from "../tools/index.ts";
import { isSummary } from "./turns-and-rounds.ts";

/** The input of a strategy. */
export interface CompactionInput {
  /** The messages that the model could see until now, oldest first; the summary of an earlier compaction is the first. */
  readonly messages: readonly Message[];
  /** The given messages as `beforeLlm` hooks edited them, without those that hooks removed. */
  readonly shown: (messages: readonly Message[]) => readonly Message[];
  /** How many of the newest messages to leave as they are. Default: the strategy's own number. */
  readonly keep?: number | undefined;
  /** The open turn: its task stays visible. */
  readonly turnId: string;
  /** The model has refused the prompt as too long: hide as much as possible, even below `keep`. Default false. */
  readonly isTooLong?: boolean | undefined;
  /** A model call on the agent's budget; it is journalled. */
  readonly generate: (request: GenerateInput) => Promise<ModelResponse>;
  /** Aborted when the turn is stopped. */
  readonly signal: AbortSignal;
}

/** What a compaction strategy gives: the messages that stay, and what stands for the others. */
export interface Compaction {
  /** Id of the last message that the model no longer sees. */
  readonly through: string;
  /** Replaces all messages up to `through`; `null` to hide them without a summary. */
  readonly summary: string | null;
  /** Messages before `through` that the model still sees: the open turn's task. Default none. */
  readonly keepIds?: readonly string[];
}

/** How a conversation is made shorter for the model. The store keeps everything. */
export interface CompactionStrategy {
  /** 1 to 1,000 characters; part of the definition's hash and of events. */
  readonly name: string;
  /** Chooses what to hide; resolves to `null` if no message can be hidden. */
  compact(input: CompactionInput): Promise<Compaction | null>;
}

const compactionSchema = z.object({
  through: textSchema,
  summary: textOrNullSchema,
  keepIds: z.array(textSchema).optional(),
});

/**
 * The checked result of a strategy that was given these messages; undefined counts as null.
 * @throws InvalidInputError with what does not fit.
 */
export function takeCompaction(
  { name }: CompactionStrategy,
  given: unknown,
  messages: readonly Message[],
): Compaction | null {
  if (given === null || given === undefined) return null;
  const what = `what the compaction strategy "${name}" gave`;
  const { through, summary, keepIds = [] } = take(compactionSchema, given, what);
  if (!messages.some(({ id }) => id === through)) {
    throw new InvalidInputError(
      `${what} cannot be taken: through is ${JSON.stringify(through)}; it must be the id of a message that it was given`,
    );
  }
  if (summary?.trim() === "") {
    throw new InvalidInputError(`${what} cannot be taken: its summary is empty; give null for no summary`);
  }
  return { through, summary, keepIds };
}

/** The last compaction of a conversation, as its `context.compacted` entry has it. */
export interface CompactedView {
  readonly through: string;
  readonly summaryMessageId: string | null;
  readonly kept: readonly string[];
}

/**
 * The messages of a conversation that the model may see: the summary, the kept messages, and all after `through`.
 * Summaries of earlier compactions are part of the last one, or were hidden with it. In the store a summary is at the
 * place where it was written, later than here.
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
  /** Messages of the conversation that the model may see. */
  readonly messages: number;
  /** With more messages a compaction is due. Default: no limit. */
  readonly maxMessages?: number | undefined;
  /** How full the model's context window was after its last answer, 0 to 100; `null` if not known. */
  readonly contextPercent: number | null;
  /** From this percentage on a compaction is due. Default 80. */
  readonly atPercent?: number | undefined;
}

/** Whether the conversation should be compacted before the next model call. */
export function compactionDue({ messages, maxMessages, contextPercent, atPercent = 80 }: CompactionDue): boolean {
  if (maxMessages !== undefined && messages > maxMessages) return true;
  return contextPercent !== null && contextPercent >= atPercent;
}
