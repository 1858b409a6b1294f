import { type Json, type Message, textOf } from "../state/index.ts";

/** One message as the record of a session shows it; the names are those of the file. */
export interface SessionMessage {
  readonly role: Message["role"];
  readonly content: string;
  /** Addresses of images; those that hold the image itself are cut. */
  readonly images?: readonly string[];
  readonly tool_calls?: readonly { readonly id: string; readonly name: string; readonly arguments: Json }[];
  readonly tool_call_id?: string;
  readonly is_error?: true;
}

/** What a turn added to the conversation, in order. */
export function messagesOfTurn(messages: readonly Message[], turnId: string): SessionMessage[] {
  return messages
    .filter(({ id, metadata }) => metadata?.execution_id === turnId || id.startsWith(`${turnId}:`))
    .map(sessionMessage);
}

function sessionMessage(message: Message): SessionMessage {
  const { role, content } = message;
  const images =
    typeof content === "string"
      ? []
      : content.flatMap((part) => (part.type === "image" ? [shortAddress(part.url)] : []));
  const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
  return {
    role,
    content: textOf(content),
    ...(images.length > 0 ? { images } : {}),
    ...(calls.length > 0
      ? {
          tool_calls: calls.map(({ callId, name, arguments: text }) => ({ id: callId, name, arguments: parsed(text) })),
        }
      : {}),
    ...(message.role === "tool" ? { tool_call_id: message.callId } : {}),
    ...(message.role === "tool" && message.isError === true ? { is_error: true } : {}),
  };
}

function shortAddress(url: string): string {
  return url.startsWith("data:") && url.length > 60 ? `${url.slice(0, 40)}… (${url.length} characters)` : url;
}

/** As a value where it is one, so that what stands under the name of a secret is known as such. */
function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
