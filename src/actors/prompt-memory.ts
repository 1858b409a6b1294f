import type { Message, ModelRequest } from "../state/index.ts";

/** A prompt as it was measured here: by its bytes, or counted. */
export interface MeasuredPrompt {
  readonly request: ModelRequest;
  /** Its upper bound by bytes. */
  readonly bound: number;
  /** Its tokens as counted here; absent: only its bytes were measured. */
  readonly counted?: number;
}

/**
 * Tokenizers differ by no more than this on any human text; a larger difference is a fixed addition of the provider.
 */
const mostTooLow = 2;

interface AnsweredPrompt extends MeasuredPrompt {
  /** Its tokens as the provider reported them. */
  readonly reported: number;
}

/**
 * The last answered prompt of a live agent. A conversation grows at its end, so most prompts begin with the one before, whose
 * tokens the provider has reported. It is not stored.
 */
export class PromptMemory {
  #asked: { readonly key: string; readonly prompt: MeasuredPrompt } | undefined;
  #answered: AnsweredPrompt | undefined;
  /** The provider's report divided by the count made here, for the last prompt that was counted: at least 1. */
  #tooLow = 1;

  /** A call with this key is about to be proposed with this prompt. */
  noteAsked(key: string, prompt: MeasuredPrompt): void {
    this.#asked = { key, prompt };
  }

  /** The provider has reported so many input tokens for the call with this key. */
  noteAnswered(key: string, reported: number): void {
    const asked = this.#asked;
    this.#asked = undefined;
    if (asked?.key !== key) return;
    const { counted } = asked.prompt;
    this.#answered = { ...asked.prompt, reported };
    if (counted !== undefined) this.#tooLow = Math.min(mostTooLow, Math.max(1, reported / Math.max(1, counted)));
  }

  /** The last answered prompt, if this one begins with it. */
  startOf(request: ModelRequest): AnsweredPrompt | undefined {
    const before = this.#answered;
    return before !== undefined && beginsWith(request, before.request) ? before : undefined;
  }

  /**
   * The best estimate of the prompt's tokens. If it begins with the last answered prompt (`start`): that one's tokens as reported,
   * and the rest as measured, raised by the error of the last count, at most its bytes. Otherwise as measured.
   */
  tokensOf({ request, bound, counted }: MeasuredPrompt, start = this.startOf(request)): number {
    if (start === undefined) return counted ?? bound;
    const restBound = Math.max(0, bound - start.bound);
    if (counted === undefined) return start.reported + restBound;
    // If the start was not counted, the rest is the whole less the start's report.
    const rest =
      start.counted === undefined
        ? counted * this.#tooLow - start.reported
        : Math.max(0, counted - start.counted) * this.#tooLow;
    return start.reported + Math.min(Math.max(0, Math.ceil(rest)), restBound);
  }
}

/** Whether the prompt has the same tools and format, and its first messages are those of the other. */
function beginsWith(request: ModelRequest, before: ModelRequest): boolean {
  if (request.messages.length < before.messages.length) return false;
  if (!isSame(request.tools ?? [], before.tools ?? [])) return false;
  if (!isSame(request.responseFormat, before.responseFormat)) return false;
  return before.messages.every((message, index) => isSameMessage(request.messages[index], message));
}

function isSameMessage(one: Message | undefined, other: Message): boolean {
  if (one === other) return true;
  if (one === undefined || one.role !== other.role) return false;
  // Instructions and edited messages are new objects for each call; ids and times are not sent.
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
