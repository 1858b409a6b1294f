import {
  type AgentRequest,
  type Json,
  type JsonObject,
  meantCall,
  type Message,
  type ToolCallRequest,
  textOf,
  type TroupeEvent,
  type TroupeEventOf,
  type Usage,
} from "../../state/index.ts";
import { itemId, partBegunBy, partName, type TurnPart } from "./response-ids.ts";
import type { McpCallItem, OutputItem, ResponseEvent } from "./response-object.ts";
import { ResponseOutput, StepWriting } from "./response-writing.ts";

/** The stored data of an event: the message of an answer or result, or the request. */
export interface Stored {
  readonly message?: Message | undefined;
  readonly request?: AgentRequest | undefined;
}

export interface TranslationOptions extends Pick<TurnPart, "turnId" | "begin"> {
  /** Sends only the validated answer, not the texts of steps, which may not be valid JSON. */
  readonly answersWhole: boolean;
}

/** The position of a response among the events of its turn. */
type Phase = "before" | "in" | "ended" | "continued";

const noUsage: Usage = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 };

/**
 * Translates the events of a turn and its subagents to the items and events of one response. A pure function without
 * I/O and clock: live or stored, the same events give the same items with the same ids, indexes and sequence numbers.
 *
 * Invariants
 * 1. A response starts with its turn, or with its client's decision; it ends where another response starts, or with its
 *    turn.
 * 2. Each started item ends, and so does each of its content parts.
 * 3. Calls by the server are never sent as function calls, so that no client repeats them.
 */
export class ResponseTranslation {
  readonly #turnId: string;
  readonly #begin: string | null;
  readonly #answersWhole: boolean;
  readonly #output = new ResponseOutput();
  readonly #calls = new Map<string, ToolCallRequest>();
  /** Index of each open item, by call id. */
  readonly #open = new Map<string, number>();
  /** Approval request ids, by call id. */
  readonly #approvals = new Map<string, string>();
  /** Calls that the client answers. */
  readonly #clientCalls = new Set<string>();
  #phase: Phase;
  #writing: StepWriting | undefined;
  #said: string | undefined;
  #used: Usage = noUsage;
  #usedBefore: Usage = noUsage;

  constructor({ turnId, begin, answersWhole }: TranslationOptions) {
    this.#turnId = turnId;
    this.#begin = begin;
    this.#answersWhole = answersWhole;
    this.#phase = begin === null ? "in" : "before";
  }

  /** Whether the turn continues in another response. */
  get isContinued(): boolean {
    return this.#phase === "continued";
  }

  get output(): readonly OutputItem[] {
    return this.#output.items;
  }

  /** Tokens of the model's answers, in this response and in earlier ones of the turn. */
  get usage(): { readonly here: Usage; readonly before: Usage } {
    return { here: this.#used, before: this.#usedBefore };
  }

  take(event: TroupeEvent, { message, request }: Stored = {}): readonly ResponseEvent[] {
    if (event.type === "request.decided" && request !== undefined) this.#decided(request);
    if (this.#phase === "ended" || this.#phase === "continued") return this.#output.taken();
    if (event.type === "model.responded") this.#responded(event, message);
    if (event.type === "request.opened" && request !== undefined) this.#opened(request);
    if (event.turnId === this.#turnId) this.#own(event, message);
    else this.#below(event, message);
    return this.#output.taken();
  }

  /** Ends the open items, because the turn waits or has ended. */
  end(): readonly ResponseEvent[] {
    this.#close();
    return this.#output.taken();
  }

  /** Emits an event about the response itself. */
  tell(type: string, response: unknown): readonly ResponseEvent[] {
    this.#output.emit({ type, response });
    return this.#output.taken();
  }

  #close(): void {
    this.#writing?.end();
    this.#writing = undefined;
    for (const callId of this.#open.keys()) this.#endCall(callId, { status: "incomplete" });
  }

  /** Starts this response, or ends it because a later one starts. */
  #decided(request: AgentRequest): void {
    const part = partBegunBy(request);
    const own = this.#begin === null ? undefined : partName(this.#begin);
    if (this.#phase === "before" && (request.requestId === this.#begin || part === own)) {
      this.#phase = "in";
      this.#usedBefore = this.#used;
      this.#used = noUsage;
    } else if (this.#phase === "in" && part !== undefined && part !== own) {
      this.#close();
      this.#phase = "continued";
    }
  }

  #own(event: TroupeEvent, message: Message | undefined): void {
    switch (event.type) {
      case "text.delta":
      case "reasoning.delta":
        if (this.#isHere && !(this.#answersWhole && event.type === "text.delta")) this.#writingOf(event).piece(event);
        return;
      case "text.snapshot":
        if (this.#isHere) this.#writingOf(event).snapshot(this.#answersWhole ? { ...event, text: "" } : event);
        return;
      case "tool.started":
        this.#beginCall(event.callId, event);
        return;
      case "subagent.spawned":
        if (event.callId !== null) this.#beginCall(event.callId, event);
        return;
      case "tool.completed":
      case "tool.failed":
        this.#endedCall(event, message);
        return;
      case "turn.completed":
      case "turn.stopped":
      case "turn.failed":
        this.#ended(event);
        return;
      default:
    }
  }

  /** Sends calls of subagents only if a person had to approve them. */
  #below(event: TroupeEvent, message: Message | undefined): void {
    const isCall = event.type === "tool.started" || event.type === "tool.completed" || event.type === "tool.failed";
    if (!isCall || !this.#approvals.has(event.callId)) return;
    if (event.type === "tool.started") this.#beginCall(event.callId, event);
    else this.#endedCall(event, message);
  }

  get #isHere(): boolean {
    return this.#phase === "in";
  }

  #writingOf({ turnId, step }: TroupeEvent): StepWriting {
    const id = `${turnId}:${step}`;
    if (this.#writing?.step !== id) this.#writing = new StepWriting(this.#output, id);
    return this.#writing;
  }

  #responded(event: TroupeEventOf<"model.responded">, message: Message | undefined): void {
    this.#used = sum(this.#used, event.usage);
    if (message?.role !== "assistant") return;
    for (const call of message.toolCalls ?? []) this.#calls.set(call.callId, meantCall(call));
    if (event.turnId !== this.#turnId) return;
    const text = this.#answersWhole ? "" : textOf(message.content);
    if (text !== "") this.#said = text;
    if (!this.#isHere) return;
    this.#writingOf(event).responded(text, reasoningOf(message));
    this.#writing = undefined;
  }

  #opened(request: AgentRequest): void {
    const { requestId, callId, kind, agentName, name } = request;
    const isForClient = kind === "client" || kind === "question";
    if (isForClient) this.#clientCalls.add(callId);
    else this.#approvals.set(callId, requestId);
    if (!this.#isHere) return;
    const args = JSON.stringify(request.arguments);
    if (!isForClient) {
      const id = itemId.approval(requestId);
      const item = { type: "mcp_approval_request", id, server_label: agentName, name, arguments: args } as const;
      this.#output.end(this.#output.begin(item), item);
      return;
    }
    const id = itemId.functionCall(requestId);
    const item = { type: "function_call", id, call_id: itemId.callId(requestId), name } as const;
    const index = this.#output.begin({ ...item, status: "in_progress", arguments: "" });
    const place = { item_id: id, output_index: index };
    this.#output.emit({ type: "response.function_call_arguments.delta", ...place, delta: args });
    this.#output.emit({ type: "response.function_call_arguments.done", ...place, name, arguments: args });
    this.#output.end(index, { ...item, status: "completed", arguments: args });
  }

  #beginCall(callId: string, { agentName }: TroupeEvent): void {
    if (!this.#isHere || this.#open.has(callId) || this.#clientCalls.has(callId)) return;
    const id = itemId.call(callId);
    // The call was already sent before it failed and was repeated.
    if (this.#output.items.some((item) => item.id === id)) return;
    const { name = "", arguments: args = "" } = this.#calls.get(callId) ?? {};
    const approval = this.#approvals.get(callId);
    const item: McpCallItem = {
      type: "mcp_call",
      id,
      status: "in_progress",
      server_label: agentName,
      name,
      arguments: args,
      output: null,
      error: null,
      approval_request_id: approval === undefined ? null : itemId.approval(approval),
    };
    const index = this.#output.begin({ ...item, arguments: "" });
    this.#output.replace(index, item);
    this.#open.set(callId, index);
    const place = { item_id: id, output_index: index };
    this.#output.emit({ type: "response.mcp_call.in_progress", ...place });
    this.#output.emit({ type: "response.mcp_call_arguments.done", ...place, arguments: args });
  }

  #endedCall(event: TroupeEventOf<"tool.completed" | "tool.failed">, message: Message | undefined): void {
    const { callId } = event;
    // A refused call, or one that waited for a decision, has no start event.
    this.#beginCall(callId, event);
    const text = message === undefined ? undefined : textOf(message.content);
    if (event.type === "tool.completed") {
      this.#endCall(callId, { status: "completed", output: text ?? "" });
      return;
    }
    const why = text ?? event.error?.message ?? event.outcome;
    const error = { type: "mcp_tool_execution_error", content: [{ type: "text", text: why }] } as const;
    this.#endCall(callId, { status: "failed", error });
  }

  #endCall(callId: string, ended: Partial<McpCallItem> & Pick<McpCallItem, "status">): void {
    const index = this.#open.get(callId);
    const item = index === undefined ? undefined : this.#output.items[index];
    if (index === undefined || item?.type !== "mcp_call") return;
    this.#open.delete(callId);
    const place = { item_id: item.id, output_index: index };
    if (ended.status !== "incomplete") this.#output.emit({ type: `response.mcp_call.${ended.status}`, ...place });
    this.#output.end(index, { ...item, ...ended });
  }

  /** Sends the turn's answer if it differs from the model's last text. */
  #ended({ type, text, stopReason }: TroupeEventOf<"turn.completed" | "turn.stopped" | "turn.failed">): void {
    if (!this.#isHere) return;
    this.#close();
    if (type !== "turn.failed" && stopReason !== "user_requested" && text !== this.#said && text !== "") {
      new StepWriting(this.#output, `${this.#turnId}:answer`).responded(text, "");
    }
    this.#phase = "ended";
  }
}

/** Reasoning as text, from the fields that servers use. */
function reasoningOf({ reasoning = {} }: Extract<Message, { role: "assistant" }>): string {
  const { reasoning_content: content, reasoning: text, reasoning_details: details, items } = reasoning;
  if (typeof content === "string" && content !== "") return content;
  if (typeof text === "string" && text !== "") return text;
  if (Array.isArray(items))
    return (items as readonly Json[])
      .map(thoughtIn)
      .filter((one) => one !== "")
      .join("\n\n");
  const parts = Array.isArray(details) ? (details as readonly Json[]) : [];
  return parts.map((part) => textIn(part, "text") + textIn(part, "summary")).join("");
}

/** The summary of a thought in an answer of the Responses API. */
function thoughtIn(item: Json): string {
  const fields = typeof item === "object" && item !== null && !Array.isArray(item) ? (item as JsonObject) : {};
  const texts = fields["summary"] ?? fields["content"];
  return Array.isArray(texts) ? texts.filter((text) => typeof text === "string").join("\n\n") : "";
}

function textIn(part: Json, field: "text" | "summary"): string {
  const fields: JsonObject =
    typeof part === "object" && part !== null && !Array.isArray(part) ? (part as JsonObject) : {};
  const value = fields[field];
  return typeof value === "string" ? value : "";
}

function sum(one: Usage, other: Usage): Usage {
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cachedInputTokens: (one.cachedInputTokens ?? 0) + (other.cachedInputTokens ?? 0),
    reasoningTokens: (one.reasoningTokens ?? 0) + (other.reasoningTokens ?? 0),
  };
}
