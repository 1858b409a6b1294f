import type { TurnMemory } from "../actors/index.ts";
import { isOfTurn, openTurnStart, viewOf } from "../context/index.ts";
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
  #turnStart: number;
  #hasExcerpts: boolean;

  constructor(history: readonly Message[], turnEntries: readonly Entry[]) {
    this.#history = [...history];
    for (const message of history) this.#byId.set(message.id, message);
    this.#hasExcerpts = history.some(isExcerpt);
    this.#turnEntries = [...turnEntries];
    const turnId = turnEntries[0] && addressOf(turnEntries[0]).turnId;
    this.#turnStart = turnId ? openTurnStart(this.#history, turnId) : this.#history.length;
  }

  addMessages(messages: readonly Message[]): void {
    for (const message of messages) {
      this.#byId.set(message.id, message);
      this.#history.push(message);
      if (isExcerpt(message)) this.#hasExcerpts = true;
    }
  }

  note(entry: Entry): void {
    if (entry.type === "turn.started") this.#startTurn(entry.turnId);
    if (addressOf(entry).turnId !== null) this.#turnEntries.push(entry);
  }

  message(messageId: string): Message | undefined {
    return this.#byId.get(messageId);
  }

  text(messageId: string): string {
    return textOf(this.#byId.get(messageId)?.content ?? "");
  }

  /** Whether the whole of some result is an artifact: from the first such result on, also when it is not shown any more. */
  get hasExcerpts(): boolean {
    return this.#hasExcerpts;
  }

  /** All of it, oldest first. */
  get archive(): readonly Message[] {
    return this.#history;
  }

  /** What the model may see of it: since the last compaction. */
  viewOf(compaction: AgentContext["compaction"]): readonly Message[] {
    return compaction ? viewOf(this.#history, compaction) : this.#history;
  }

  /** Place of the open turn's first message in the view; undefined where a compaction has moved it. */
  turnStartOf(compaction: AgentContext["compaction"]): number | undefined {
    return compaction ? undefined : this.#turnStart;
  }

  /** Its first messages may be there before its entry is noted. */
  #startTurn(turnId: string): void {
    this.#turnEntries = [];
    let start = this.#history.length;
    for (let last = this.#history[start - 1]; last && isOfTurn(last, turnId); last = this.#history[start - 1])
      start -= 1;
    this.#turnStart = start;
  }

  /** Forgets what was said so far. */
  clear(): void {
    this.#turnStart = 0;
    this.#history.length = 0;
    this.#byId.clear();
    this.#hasExcerpts = false;
  }

  memory(turnId: string): TurnMemory {
    const first = this.#turnEntries[0];
    const inputs = first?.type === "turn.started" ? first.inputMessageIds : [];
    return { turnId, prompt: inputs.map((id) => this.text(id)).join("\n"), entries: this.#turnEntries };
  }
}

function isExcerpt(message: Message): boolean {
  return message.role === "tool" && message.artifactId !== undefined;
}
