import type { ModelError } from "../errors/index.ts";
import type { AssistantMessage, Message, ModelRequest } from "../state/index.ts";

/*
 * Reasoning that is encrypted or signed can be read only by the account that it was written for. After a change of keys or of the
 * organization the server refuses every prompt that contains it, and every later turn sends the history again.
 */

const texts: readonly RegExp[] = [
  // OpenAI
  /encrypted content\b.{0,200}could not be (?:verified|decrypted)/is,
  /item with id 'rs_[^']*' not found/i,
  // Anthropic
  /invalid `?signature`? in `?thinking`? block/i,
];

/** Whether a server refused a call because of reasoning in its prompt. */
export function refusesReasoning({ message, details }: ModelError): boolean {
  return details?.["providerCode"] === "invalid_encrypted_content" || texts.some((text) => text.test(message));
}

/** Most messages that are remembered. */
const MOST_MESSAGES = 10_000;
/** One copy per message, because token counts and texts of messages are cached by object. */
const copies = new WeakMap<Message, Message>();

/** The messages whose reasoning a server has refused, in this process. */
export class RefusedReasoning {
  readonly #ids = new Set<string>();

  /** Remembers all reasoning of this prompt. Returns whether there was any. */
  add({ messages }: ModelRequest): boolean {
    const ids = messages.filter(hasReasoning).map(({ id }) => id);
    if (this.#ids.size + ids.length > MOST_MESSAGES) this.#ids.clear();
    for (const id of ids) this.#ids.add(id);
    return ids.length > 0;
  }

  /** The request without refused reasoning; the same object if it has none. */
  leftOut(request: ModelRequest): ModelRequest {
    const isRefused = (message: Message): boolean => this.#ids.has(message.id) && hasReasoning(message);
    if (this.#ids.size === 0 || !request.messages.some(isRefused)) return request;
    return {
      ...request,
      messages: request.messages.map((message) => (isRefused(message) ? bare(message) : message)),
    };
  }
}

function hasReasoning(message: Message): message is AssistantMessage {
  return message.role === "assistant" && message.reasoning !== undefined;
}

function bare(message: Message): Message {
  let copy = copies.get(message);
  if (copy === undefined && message.role === "assistant") {
    const { reasoning: _reasoning, ...rest } = message;
    copies.set(message, (copy = rest));
  }
  return copy ?? message;
}
