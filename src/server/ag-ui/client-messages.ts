import type { AgUiEvent, ToolCall } from "./events.ts";

/** The fields of a message that are compared with the stored one. */
interface Had {
  readonly owner: string | undefined;
  readonly role: "user" | "assistant" | "tool";
  text: string;
  /** Arguments by call id. */
  readonly calls: Map<string, string>;
}

/** A message of a client's history or of a snapshot. */
interface ShownMessage {
  readonly id: string;
  readonly role: string;
  readonly content?: unknown;
  readonly toolCallId?: string | undefined;
  readonly toolCalls?: readonly ToolCall[] | undefined;
  readonly subagentRunId?: string | undefined;
}

/**
 * The messages that a client has: its history, updated by the events sent to it. Input over another surface and
 * replaced texts have no event, so a client misses them; the end of a run therefore compares its messages with the
 * stored ones.
 */
export class ClientMessages {
  /** Results of tools by call id, other messages by message id. */
  readonly #messages = new Map<string, Had>();
  /** The message of each call, by call id. */
  readonly #callers = new Map<string, Had>();

  constructor(history: readonly ShownMessage[]) {
    for (const message of history) this.#put(message);
  }

  take(event: AgUiEvent): void {
    const owner = event.subagentRunId;
    if (event.type === "TEXT_MESSAGE_START") this.#assistant(event.messageId, owner);
    if (event.type === "TEXT_MESSAGE_CONTENT") this.#assistant(event.messageId, owner).text += event.delta;
    if (event.type === "TOOL_CALL_START") {
      const message = this.#assistant(event.parentMessageId, owner);
      message.calls.set(event.toolCallId, "");
      this.#callers.set(event.toolCallId, message);
    }
    if (event.type === "TOOL_CALL_ARGS") {
      const calls = this.#callers.get(event.toolCallId)?.calls;
      calls?.set(event.toolCallId, `${calls.get(event.toolCallId)}${event.delta}`);
    }
    if (event.type === "TOOL_CALL_RESULT") {
      this.#put({ ...event, id: event.messageId, role: "tool" });
    }
    if (event.type === "MESSAGES_SNAPSHOT") {
      this.#messages.clear();
      this.#callers.clear();
      for (const message of event.messages) this.#put(message);
    }
  }

  /** Whether the client has exactly these messages of the given owners. `undefined` stands for the agent itself. */
  hasJust(stored: readonly ShownMessage[], owners: ReadonlySet<string | undefined>): boolean {
    return this.#linesOf(owners) === new ClientMessages(stored).#linesOf(owners);
  }

  #linesOf(owners: ReadonlySet<string | undefined>): string {
    const own = [...this.#messages].filter(([, { owner }]) => owners.has(owner));
    const lines = own.map(([id, { role, text, calls }]) => JSON.stringify([id, role, text, [...calls]]));
    return lines.toSorted().join("\n");
  }

  #assistant(id: string, owner: string | undefined): Had {
    const known = this.#messages.get(id);
    if (known) return known;
    const message: Had = { owner, role: "assistant", text: "", calls: new Map() };
    this.#messages.set(id, message);
    return message;
  }

  #put({ id, role, content, toolCallId, toolCalls = [], subagentRunId: owner }: ShownMessage): void {
    const calls = new Map(toolCalls.map((call) => [call.id, call.function.arguments]));
    // Texts of users and results of front-end tools are not compared: the client may keep them in a form of its own.
    if (role === "user") this.#messages.set(id, { owner, role, text: "", calls });
    if (role === "tool") this.#messages.set(`result of ${toolCallId}`, { owner, role, text: "", calls });
    const text = typeof content === "string" ? content : "";
    if (role !== "assistant") return;
    const message: Had = { owner, role, text, calls };
    this.#messages.set(id, message);
    for (const callId of calls.keys()) this.#callers.set(callId, message);
  }
}
