import type { Json } from "../../state/index.ts";
import type { AiSdkMetadata, PartChunk, UiChunk } from "./chunks.ts";

/** A part of a UI message of the AI SDK. */
export type UiPart = { readonly type: string } & Record<string, Json | undefined>;

/** A message of the history, in the form of `UIMessage`. */
export interface UiMessage {
  readonly id: string;
  readonly role: "user" | "assistant";
  readonly metadata?: AiSdkMetadata;
  readonly parts: readonly UiPart[];
}

/** Collects the chunks of a stream to the message that a client makes of them. */
export class MessageParts {
  readonly #parts: Record<string, Json | undefined>[] = [];
  #id = "";
  #metadata: AiSdkMetadata | undefined;

  take(chunk: UiChunk): void {
    if (chunk.type === "start") this.#id = chunk.messageId;
    if ("messageMetadata" in chunk) this.#metadata = chunk.messageMetadata;
    else if (chunk.type !== "abort" && chunk.type !== "error") this.#part(chunk);
  }

  get message(): UiMessage {
    const metadata = this.#metadata === undefined ? {} : { metadata: this.#metadata };
    return { id: this.#id, role: "assistant", ...metadata, parts: this.#parts as UiPart[] };
  }

  #part(chunk: PartChunk): void {
    switch (chunk.type) {
      case "start-step":
        this.#parts.push({ type: "step-start" });
        return;
      case "reset-step":
        this.#parts.splice(this.#parts.findLastIndex(({ type }) => type === "step-start") + 1);
        return;
      case "text-start": {
        const { providerMetadata } = chunk;
        const marked =
          providerMetadata === undefined ? {} : { providerMetadata: { troupe: { ...providerMetadata.troupe } } };
        this.#parts.push({ type: "text", text: "", state: "streaming", ...marked });
        return;
      }
      case "reasoning-start":
        this.#parts.push({ type: "reasoning", text: "", state: "streaming" });
        return;
      case "text-delta":
      case "reasoning-delta": {
        const part = this.#last(chunk.type === "text-delta" ? "text" : "reasoning");
        if (part !== undefined) part["text"] = `${part["text"] as string}${chunk.delta}`;
        return;
      }
      case "text-end":
      case "reasoning-end": {
        const part = this.#last(chunk.type === "text-end" ? "text" : "reasoning");
        if (part !== undefined) part["state"] = "done";
        return;
      }
      case "tool-input-available":
        this.#call(chunk);
        return;
      case "tool-output-available":
        this.#settle(chunk.toolCallId, { state: "output-available", output: chunk.output });
        return;
      case "tool-output-error":
        this.#settle(chunk.toolCallId, { state: "output-error", errorText: chunk.errorText });
        return;
      case "tool-output-denied":
        this.#settle(chunk.toolCallId, { state: "output-denied" });
        return;
      case "tool-approval-request": {
        const { approvalId: id, reason: requestReason, signature } = chunk;
        this.#settle(chunk.toolCallId, { state: "approval-requested", approval: { id, requestReason, signature } });
        return;
      }
      case "tool-approval-response":
        this.#respond(chunk);
        return;
      case "source-url":
      case "source-document":
      case "steering-message":
        this.#parts.push({ ...chunk } as Record<string, Json>);
        return;
      case "data-subagent":
      case "data-budget":
      case "data-artifact":
        this.#data(chunk);
        return;
      default:
    }
  }

  #call({ toolName, ...chunk }: Extract<PartChunk, { readonly type: "tool-input-available" }>): void {
    const given = { ...chunk, type: `tool-${toolName}`, state: "input-available" };
    const known = this.#parts.find(({ toolCallId }) => toolCallId === chunk.toolCallId);
    if (known === undefined) this.#parts.push(given);
    else Object.assign(known, given);
  }

  #settle(callId: string, change: Record<string, Json>): void {
    const part = this.#parts.find(({ toolCallId }) => toolCallId === callId);
    if (part !== undefined) Object.assign(part, change);
  }

  #respond({ approvalId, approved, reason }: Extract<PartChunk, { readonly type: "tool-approval-response" }>): void {
    const part = this.#parts.find(({ approval }) => isApproval(approval) && approval.id === approvalId);
    if (part === undefined || !isApproval(part["approval"])) return;
    part["state"] = "approval-responded";
    part["approval"] = { ...part["approval"], approved, ...(reason === undefined ? {} : { reason }) };
  }

  #data(chunk: { readonly type: string; readonly id?: string; readonly data: unknown }): void {
    const known = this.#parts.find(({ type, id }) => type === chunk.type && id === chunk.id);
    const given = { ...chunk } as Record<string, Json>;
    if (known === undefined) this.#parts.push(given);
    else Object.assign(known, given);
  }

  #last(kind: "text" | "reasoning"): Record<string, Json | undefined> | undefined {
    return this.#parts.findLast(({ type }) => type === kind);
  }
}

function isApproval(value: Json | undefined): value is { readonly [name: string]: Json; readonly id: string } {
  return typeof value === "object" && value !== null && "id" in value;
}
