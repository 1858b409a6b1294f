import { Chat, type UIMessage } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type PrepareSendMessagesRequest,
  type UIMessageChunk,
} from "ai";
import type { AiSdkData, AiSdkMetadata } from "troupe/server";
import { type Served, tokens, type User } from "../served.ts";

export type DeskMessage = UIMessage<AiSdkMetadata, AiSdkData>;

export interface ClientOptions {
  readonly as?: User;
  readonly id?: string;
  readonly messages?: readonly DeskMessage[];
  /** Additional fields of each body. */
  readonly body?: object;
  readonly prepareSendMessagesRequest?: PrepareSendMessagesRequest<DeskMessage>;
  /** Runs the tools of the page. */
  readonly onToolCall?: (call: { readonly toolName: string; readonly toolCallId: string }) => void;
}

export interface OfficialClient {
  readonly chat: Chat<DeskMessage>;
  /** The chunks of all streams, as the client parsed them. */
  readonly chunks: readonly UIMessageChunk[];
  /** Number of requests so far. */
  readonly requests: () => number;
  /** Sends a text, and resolves with the agent's message when the stream has ended. */
  say(text: string): Promise<DeskMessage | undefined>;
}

/** The official client over the fetch handler of a server. */
export function officialClient(served: Served, options: ClientOptions = {}): OfficialClient {
  const { as = "ann", id = "the chat", messages = [], body = {}, onToolCall, prepareSendMessagesRequest } = options;
  const chunks: UIMessageChunk[] = [];
  let requests = 0;
  class ObservedTransport extends DefaultChatTransport<DeskMessage> {
    protected override processResponseStream(stream: ReadableStream<Uint8Array>): ReadableStream<UIMessageChunk> {
      const noted = new TransformStream<UIMessageChunk, UIMessageChunk>({
        transform: (chunk, controller) => {
          chunks.push(chunk);
          controller.enqueue(chunk);
        },
      });
      return super.processResponseStream(stream).pipeThrough(noted);
    }
  }
  const chat = new Chat<DeskMessage>({
    id,
    messages: [...messages],
    transport: new ObservedTransport({
      api: "http://127.0.0.1/ai-sdk/desk",
      headers: { authorization: `Bearer ${tokens[as]}` },
      body,
      ...(prepareSendMessagesRequest === undefined ? {} : { prepareSendMessagesRequest }),
      fetch: (url, init) => {
        requests += 1;
        return served.server.fetch(new Request(url, init));
      },
    }),
    sendAutomaticallyWhen: (state) =>
      lastAssistantMessageIsCompleteWithApprovalResponses(state) || lastAssistantMessageIsCompleteWithToolCalls(state),
    ...(onToolCall === undefined ? {} : { onToolCall: ({ toolCall }) => onToolCall(toolCall) }),
  });
  return {
    chat,
    chunks,
    requests: () => requests,
    say: async (text) => {
      await chat.sendMessage({ text });
      return chat.lastMessage;
    },
  };
}

/** The messages of a chat from the server, as a page loads them. */
export async function loadedMessages(served: Served, id = "the chat", as: User = "ann"): Promise<DeskMessage[]> {
  const response = await served.ask(`/ai-sdk/desk/${encodeURIComponent(id)}`, { as });
  return ((await response.json()) as { readonly messages: DeskMessage[] }).messages;
}

/** The texts of a message. */
export function textOfMessage(message: DeskMessage | undefined): string {
  return (message?.parts ?? []).flatMap((part) => (part.type === "text" ? [part.text] : [])).join("|");
}
