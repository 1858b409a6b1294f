import type { TurnMemory } from "../actors/index.ts";
import { viewOf } from "../context/index.ts";
import type { AgentContext } from "../machines/index.ts";
import { addressOf, type Entry, type Message, textOf } from "../state/index.ts";

/**
 * The contents of a live agent: its history, and the entries of its open turn. The machines keep ids and counters; what
 * those ids stand for is here while the agent is live, and in the store always.
 */
export class Conversation {
  readonly #history: Message[];
  readonly #byId = new Map<string, Message>();
  #turnEntries: Entry[];

  constructor(history: readonly Message[], turnEntries: readonly Entry[]) {
    this.#history = [...history];
    for (const message of history) this.#byId.set(message.id, message);
    this.#turnEntries = [...turnEntries];
  }

  addMessages(messages: readonly Message[]): void {
    for (const message of messages) {
      this.#byId.set(message.id, message);
      this.#history.push(message);
    }
  }

  note(entry: Entry): void {
    if (entry.type === "turn.started") this.#turnEntries = [];
    if (addressOf(entry).turnId !== null) this.#turnEntries.push(entry);
  }

  message(messageId: string): Message | undefined {
    return this.#byId.get(messageId);
  }

  text(messageId: string): string {
    return textOf(this.#byId.get(messageId)?.content ?? "");
  }

  /** All of it, oldest first. */
  get archive(): readonly Message[] {
    return this.#history;
  }

  /** What the model may see of it: since the last compaction. */
  viewOf(compaction: AgentContext["compaction"]): readonly Message[] {
    return compaction ? viewOf(this.#history, compaction) : this.#history;
  }

  /** Forgets what was said so far. */
  clear(): void {
    this.#history.length = 0;
    this.#byId.clear();
  }

  memory(turnId: string): TurnMemory {
    const first = this.#turnEntries[0];
    const inputs = first?.type === "turn.started" ? first.inputMessageIds : [];
    return { turnId, prompt: inputs.map((id) => this.text(id)).join("\n"), entries: this.#turnEntries };
  }
}
