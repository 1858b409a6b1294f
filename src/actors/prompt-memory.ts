import type { Message, ModelRequest } from "../state/index.ts";

/** A prompt as it was measured here: by its bytes, or counted. */
export interface MeasuredPrompt {
  readonly request: ModelRequest;
  /** Its upper bound by bytes. */
  readonly bound: number;
  /** What was counted; absent: only its bytes were measured. */
  readonly counted?: number;
}

/** Tokenizers differ by no more on any text that people write; what goes beyond it the provider has added by itself, once. */
const mostTooLow = 2;

export interface AnsweredPrompt extends MeasuredPrompt {
  /** Its tokens as the provider has reported them. */
  readonly reported: number;
}

/**
 * What a live agent knows of its last answered prompt. A conversation grows at its end, so most prompts begin with the one before,
 * of which the provider itself has told how many tokens it has. It is of use while the agent lives here, and not kept.
 */
export class PromptMemory {
  #asked: { readonly key: string; readonly prompt: MeasuredPrompt } | undefined;
  #answered: AnsweredPrompt | undefined;
  /** How often the last count that was made would fit into what the provider reported for the same prompt: 1 and more. */
  #tooLow = 1;

  /** The call of this key is about to be asked for with this prompt. */
  noteAsked(key: string, prompt: MeasuredPrompt): void {
    this.#asked = { key, prompt };
  }

  /** The provider has reported this many input tokens for the call of this key. */
  noteAnswered(key: string, reported: number): void {
    const asked = this.#asked;
    this.#asked = undefined;
    if (asked?.key !== key) return;
    const { counted } = asked.prompt;
    this.#answered = { ...asked.prompt, reported };
    if (counted !== undefined) this.#tooLow = Math.min(mostTooLow, Math.max(1, reported / Math.max(1, counted)));
  }

  /** The last answered prompt, where this one begins with it. */
  startOf(request: ModelRequest): AnsweredPrompt | undefined {
    const before = this.#answered;
    return before !== undefined && beginsWith(request, before.request) ? before : undefined;
  }

  /**
   * The prompt's tokens as close as they are known: where it begins with the last answered one (`start`), that one's as reported
   * and the rest as measured, raised by as much as the last count was too low, and never above its bytes. Otherwise what was
   * measured.
   */
  tokensOf({ request, bound, counted }: MeasuredPrompt, start = this.startOf(request)): number {
    if (start === undefined) return counted ?? bound;
    const restBound = Math.max(0, bound - start.bound);
    if (counted === undefined) return start.reported + restBound;
    // Where the start itself was not counted, the rest is what the whole has beyond its report.
    const rest =
      start.counted === undefined
        ? counted * this.#tooLow - start.reported
        : Math.max(0, counted - start.counted) * this.#tooLow;
    return start.reported + Math.min(Math.max(0, Math.ceil(rest)), restBound);
  }
}

/** Whether all that stands in a prompt before its messages is the same, and its first messages are those of the other. */
function beginsWith(request: ModelRequest, before: ModelRequest): boolean {
  if (request.messages.length < before.messages.length) return false;
  if (!isSame(request.tools ?? [], before.tools ?? [])) return false;
  if (!isSame(request.responseFormat, before.responseFormat)) return false;
  return before.messages.every((message, index) => isSameMessage(request.messages[index], message));
}

function isSameMessage(one: Message | undefined, other: Message): boolean {
  if (one === other) return true;
  if (one === undefined || one.role !== other.role) return false;
  // Instructions and edited messages are made anew for each call; ids and times are not sent.
  return isSame(sentParts(one), sentParts(other));
}

function sentParts(message: Message): readonly unknown[] {
  const { content } = message;
  if (message.role === "assistant") return [content, message.toolCalls ?? null, message.reasoning ?? null];
  return message.role === "tool" ? [content, message.providerId] : [content];
}

function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
