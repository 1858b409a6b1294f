import type { TurnMemory } from "../../actors/index.ts";
import { deepFreeze, readOnlyLists } from "../../base/index.ts";
import { isOfTurn, openTurnStart, viewOf } from "../../context/index.ts";
import type { AgentContext } from "../../machines/index.ts";
import { addressOf, type Entry, type Message, textOf } from "../../state/index.ts";

const readOnly = readOnlyLists(
  "the messages of a conversation are read-only; in a hook use draft.add({ role, content }), draft.edit(id, content) or " +
    "draft.remove(id), anywhere else change a copy, for instance [...messages]",
);

/**
 * The messages of a live agent, and the entries of its open turn. The machines keep only ids and counters; the contents
 * are here while the agent is live, and always in the store.
 *
 * Invariants
 * 1. All contents are deeply frozen, because hooks, compilers and model adapters get these very messages.
 * 2. Its internal lists never leave it. Lists that it returns are frozen, and cached until something is added.
 */
export class Conversation {
  readonly #history: Message[];
  #archive: readonly Message[] | undefined;
  #view: { readonly compaction: AgentContext["compaction"]; readonly messages: readonly Message[] } | undefined;
  readonly #byId = new Map<string, Message>();
  #turnEntries: Entry[];
  #turnStart: number;
  #hasExcerpts: boolean;

  constructor(history: readonly Message[], turnEntries: readonly Entry[]) {
    this.#history = [...history];
    for (const message of history) this.#byId.set(message.id, deepFreeze(message));
    this.#hasExcerpts = history.some(isExcerpt);
    this.#turnEntries = [...turnEntries];
    turnEntries.forEach(deepFreeze);
    const turnId = turnEntries[0] && addressOf(turnEntries[0]).turnId;
    this.#turnStart = turnId ? openTurnStart(this.#history, turnId) : this.#history.length;
  }

  addMessages(messages: readonly Message[]): void {
    for (const message of messages) {
      this.#byId.set(message.id, deepFreeze(message));
      this.#history.push(message);
      if (isExcerpt(message)) this.#hasExcerpts = true;
    }
    if (messages.length > 0) this.#forgetLists();
  }

  note(entry: Entry): void {
    deepFreeze(entry);
    if (entry.type === "turn.started") this.#startTurn(entry.turnId);
    if (addressOf(entry).turnId !== null) this.#turnEntries.push(entry);
  }

  message(messageId: string): Message | undefined {
    return this.#byId.get(messageId);
  }

  text(messageId: string): string {
    return textOf(this.#byId.get(messageId)?.content ?? "");
  }

  /** Whether some result is stored whole as an artifact, even if that result is not shown any more. */
  get hasExcerpts(): boolean {
    return this.#hasExcerpts;
  }

  /** The whole conversation, oldest first. */
  get archive(): readonly Message[] {
    this.#archive ??= readOnly(this.#history);
    return this.#archive;
  }

  /** The part that the model may see: since the last compaction. */
  viewOf(compaction: AgentContext["compaction"]): readonly Message[] {
    if (!compaction) return this.archive;
    if (this.#view?.compaction !== compaction) {
      this.#view = { compaction, messages: readOnly(viewOf(this.#history, compaction)) };
    }
    return this.#view.messages;
  }

  /** Place of the open turn's first message in the view; undefined where a compaction has moved it. */
  turnStartOf(compaction: AgentContext["compaction"]): number | undefined {
    return compaction ? undefined : this.#turnStart;
  }

  /** Finds the turn's first message, because its messages may be added before its entry is noted. */
  #startTurn(turnId: string): void {
    this.#turnEntries = [];
    let start = this.#history.length;
    for (let last = this.#history[start - 1]; last && isOfTurn(last, turnId); last = this.#history[start - 1])
      start -= 1;
    this.#turnStart = start;
  }

  /** Deletes all messages so far. */
  clear(): void {
    this.#turnStart = 0;
    this.#history.length = 0;
    this.#byId.clear();
    this.#hasExcerpts = false;
    this.#forgetLists();
  }

  #forgetLists(): void {
    this.#archive = undefined;
    this.#view = undefined;
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
