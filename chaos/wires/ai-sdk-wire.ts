import { Chat, type UIMessage } from "@ai-sdk/react";
import { DefaultChatTransport, isToolUIPart, type UIMessageChunk } from "ai";
import type { AiSdkMetadata } from "../../src/server/index.ts";
import type { Line } from "./wire-client.ts";
import { type Asked, type Exchange, type Heard, type Hearing, stampTool, type Talk, type Wire } from "./wire.ts";

/** `useChat`'s client. A cut request is made again from the messages before it. */
export const aiSdkWire: Wire = {
  name: "ai-sdk",
  surface: "ai-sdk",
  open: async (line, id) => new AiSdkTalk(line, id, []),
};

type Message = UIMessage<AiSdkMetadata>;

const address = "http://127.0.0.1/ai-sdk/teller";
const states: Readonly<Record<string, Heard["state"]>> = {
  completed: "completed",
  waiting: "waiting",
  stopped: "canceled",
  failed: "failed",
};

class AiSdkTalk implements Talk {
  readonly deeds = ["talk", "work", "pay", "sign", "stamp", "ask", "drone"] as const;
  readonly #line: Line;
  readonly #id: string;
  readonly #chat: Chat<Message>;
  /** The messages with which the request of an exchange begins, by its name. */
  readonly #before = new Map<string, readonly Message[]>();
  #hearing: Hearing | undefined;
  /** The text of the current step. */
  #text = "";
  /** What the current stream says of the turn. The metadata of a message that it continues may be those of an earlier stream. */
  #status = "";

  constructor(line: Line, id: string, messages: readonly Message[]) {
    this.#line = line;
    this.#id = id;
    const told = (chunk: UIMessageChunk): void => this.#told(chunk);
    class HeardTransport extends DefaultChatTransport<Message> {
      protected override processResponseStream(stream: ReadableStream<Uint8Array>): ReadableStream<UIMessageChunk> {
        const heard = new TransformStream<UIMessageChunk, UIMessageChunk>({
          transform: (chunk, controller) => {
            told(chunk);
            controller.enqueue(chunk);
          },
        });
        return super.processResponseStream(stream).pipeThrough(heard);
      }
    }
    const transport = new HeardTransport({ api: address, body: { tools: [stampTool] }, fetch: line.fetch });
    // The errors are read from `error`.
    this.#chat = new Chat<Message>({ id, messages: [...messages], transport, onError: () => undefined });
  }

  async twin(line: Line): Promise<Talk> {
    return new AiSdkTalk(line, this.#id, structuredClone(this.#chat.messages));
  }

  async send({ key, text }: Exchange, hearing: Hearing): Promise<Heard> {
    // Another window may have sent it already.
    const known = this.#chat.messages.findIndex(({ id }) => id === key);
    if (known >= 0) this.#chat.messages = this.#chat.messages.slice(0, known);
    return await this.#heard(hearing, () =>
      this.#chat.sendMessage({ id: key, role: "user", parts: [{ type: "text", text }] }),
    );
  }

  async answer({ key, answer }: Exchange, asked: readonly Asked[], hearing: Hearing): Promise<Heard> {
    const name = `${key} ${asked[0]?.id}`;
    const before = this.#before.get(name);
    if (before === undefined) {
      for (const { id, kind } of asked) {
        if (kind === "approval") await this.#chat.addToolApprovalResponse({ id, approved: true });
        else await this.#chat.addToolOutput({ tool: "any" as never, toolCallId: id, output: answer as never });
      }
      this.#before.set(name, structuredClone(this.#chat.messages));
    } else this.#chat.messages = structuredClone([...before]);
    return await this.#heard(hearing, () => this.#chat.sendMessage());
  }

  async cancel(): Promise<void> {
    const response = await this.#line.fetch(`${address}/${encodeURIComponent(this.#id)}/stop`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    const body = await response.text();
    if (!response.ok) throw new Error(`a stop was answered ${response.status}: ${body}`);
  }

  /** Makes a request, again if its stream ends before the turn rests, as a server that leaves ends it. */
  async #heard(hearing: Hearing, request: () => Promise<void>): Promise<Heard> {
    this.#hearing = hearing;
    const before = structuredClone(this.#chat.messages);
    for (;;) {
      this.#text = "";
      this.#status = "";
      await request();
      const last = this.#chat.lastMessage;
      const state = states[this.#status];
      if (last !== undefined && state !== undefined) {
        return { state, asked: state === "waiting" ? askedIn(last) : [], text: this.#text };
      }
      const { error } = this.#chat;
      this.#chat.messages = structuredClone(before);
      if (error !== undefined) throw error;
      hearing.cut();
    }
  }

  #told(chunk: UIMessageChunk): void {
    if ("messageMetadata" in chunk) this.#status = (chunk.messageMetadata as AiSdkMetadata).status;
    if (chunk.type === "start" && chunk.messageId !== undefined) this.#hearing?.isOf(chunk.messageId);
    if (chunk.type === "start-step" || chunk.type === "reset-step") this.#text = "";
    if (chunk.type !== "text-delta") return;
    this.#text += chunk.delta;
    this.#hearing?.show(this.#text);
  }
}

/** The parts that wait for the page. */
function askedIn({ parts }: Message): readonly Asked[] {
  return parts.flatMap((part): readonly Asked[] => {
    if (!isToolUIPart(part)) return [];
    if (part.state === "approval-requested") return [{ id: part.approval.id, kind: "approval" }];
    if (part.state !== "input-available" || part.providerExecuted !== false) return [];
    const kind = part.toolMetadata?.["kind"] === "question" ? "question" : "client";
    return [{ id: part.toolCallId, kind }];
  });
}
