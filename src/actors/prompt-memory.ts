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

interface AnsweredPrompt extends MeasuredPrompt {
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

  /** The call of this key is about to be asked for with this prompt. */
  noteAsked(key: string, prompt: MeasuredPrompt): void {
    this.#asked = { key, prompt };
  }

  /** The provider has reported this many input tokens for the call of this key. */
  noteAnswered(key: string, reported: number): void {
    if (this.#asked?.key === key) this.#answered = { ...this.#asked.prompt, reported };
    this.#asked = undefined;
  }

  /**
   * The prompt's tokens as close as they are known: where it begins with the last answered one, that one's as reported and the
   * rest as measured, raised by as much as the count was too low for the answered one. Otherwise what was measured.
   */
  tokensOf(prompt: MeasuredPrompt): number {
    const { bound, counted } = prompt;
    const before = this.#answered;
    if (before === undefined || !beginsWith(prompt.request, before.request)) return counted ?? bound;
    const restBound = Math.max(0, bound - before.bound);
    if (counted === undefined) return before.reported + restBound;
    if (before.counted === undefined) return counted;
    const rest = Math.max(0, counted - before.counted);
    const tooLow = Math.min(mostTooLow, Math.max(1, before.reported / Math.max(1, before.counted)));
    return before.reported + Math.min(Math.ceil(rest * tooLow), restBound);
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
