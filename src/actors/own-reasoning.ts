import type { LanguageModel } from "../model/index.ts";
import type { AssistantMessage, Message } from "../state/index.ts";

type Writer = Pick<LanguageModel, "provider" | "name">;

export function writerOf({ provider, name }: Writer): NonNullable<AssistantMessage["reasoningBy"]> {
  return { provider, model: name };
}

/**
 * The messages as they go to a model: reasoning goes back to its writer alone. It may be signed or encrypted, and a provider
 * refuses what another one has signed: the agent could then never be asked again.
 */
export function withOwnReasoning(messages: readonly Message[], model: Writer): readonly Message[] {
  if (!messages.some((message) => isForeign(message, model))) return messages;
  return messages.map((message) => (isForeign(message, model) ? bare(message) : message));
}

function isForeign(message: Message, { provider, name }: Writer): message is AssistantMessage {
  if (message.role !== "assistant" || message.reasoning === undefined) return false;
  const { reasoningBy: writer } = message;
  return writer?.provider !== provider || writer.model !== name;
}

/** The same copy each time: what is known of a prompt's messages (tokens, digests) is remembered by object. */
const bareMessages = new WeakMap<Message, AssistantMessage>();

function bare(message: AssistantMessage): AssistantMessage {
  let copy = bareMessages.get(message);
  if (copy === undefined) {
    const { reasoning: _fields, reasoningBy: _writer, ...rest } = message;
    copy = rest;
    bareMessages.set(message, copy);
  }
  return copy;
}
