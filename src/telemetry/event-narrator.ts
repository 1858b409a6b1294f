import type { Redactor } from "../base/index.ts";
import type { TroupeEvent } from "../state/index.ts";
import { eventText } from "./event-text.ts";
import { oneLine } from "./plain-text.ts";

interface KnownAgent {
  readonly label: string;
  readonly parentAgentId: string | null;
}

export interface Narration {
  readonly at: number;
  readonly rootAgentId: string;
  /** The agent's path and what happened, on one line. */
  readonly text: string;
}

/** There are many of them, and none has a line. */
const silentTypes: ReadonlySet<TroupeEvent["type"]> = new Set(["text.delta", "text.snapshot", "reasoning.delta"]);

/** Deeper than any tree may be. */
const longestPath = 64;

/**
 * Tells events one by one, as lines.
 * Owns: which agents there are, when their open turns began. What has ended is forgotten; nothing of it is needed again.
 */
export class EventNarrator {
  readonly #redactor: Redactor;
  readonly #content: boolean;
  readonly #agents = new Map<string, KnownAgent>();
  readonly #startedAt = new Map<string, number>();

  constructor(redactor: Redactor, content: boolean) {
    this.#redactor = redactor;
    this.#content = content;
  }

  tell(event: TroupeEvent): Narration | undefined {
    if (silentTypes.has(event.type)) return undefined;
    this.#learn(event);
    const durationMs = this.#durationOf(event);
    const redacted = this.#redactor.value(event) as TroupeEvent;
    const text = eventText(redacted, { content: this.#content, durationMs });
    const path = this.#pathOf(event.agentId);
    if (event.type === "subagent.ended") this.#agents.delete(event.childId);
    if (event.type === "lifecycle.changed" && event.status === "shutdown") this.#agents.delete(event.agentId);
    return text === undefined ? undefined : { at: event.at, rootAgentId: event.rootAgentId, text: `${path}  ${text}` };
  }

  #learn({ agentId, agentName, parentAgentId }: TroupeEvent): void {
    if (this.#agents.has(agentId)) return;
    const name = oneLine(this.#redactor.text(agentName), 80);
    // Subagents of one definition are told apart by the beginning of their hash.
    const id = parentAgentId === null ? `@${agentId}` : `~${agentId.slice(agentId.indexOf("~") + 1).slice(0, 4)}`;
    this.#agents.set(agentId, { label: name + this.#redactor.text(id), parentAgentId });
  }

  #durationOf(event: TroupeEvent): number | undefined {
    if (event.turnId === null) return undefined;
    if (event.type === "turn.started") this.#startedAt.set(event.turnId, event.at);
    if (event.type !== "turn.completed" && event.type !== "turn.stopped" && event.type !== "turn.failed")
      return undefined;
    const startedAt = this.#startedAt.get(event.turnId);
    this.#startedAt.delete(event.turnId);
    return startedAt === undefined ? undefined : event.at - startedAt;
  }

  /** `lead@desk-7/reader~3f2a`; `…/reader~3f2a` when its parent was never heard of. */
  #pathOf(agentId: string): string {
    const labels: string[] = [];
    for (let id: string | null = agentId; id !== null && labels.length < longestPath; ) {
      const agent: KnownAgent | undefined = this.#agents.get(id);
      labels.unshift(agent?.label ?? "…");
      id = agent?.parentAgentId ?? null;
    }
    return labels.join("/");
  }
}
