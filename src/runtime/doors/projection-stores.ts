import { InvalidInputError } from "../../errors/index.ts";
import type { Artifact, JsonObject, Lifecycle, Message } from "../../state/index.ts";

/** Which messages of a conversation were taken out of sight, and what stands for them. */
export interface MessageCompaction {
  /** Id of the newest message that goes: it, and all that are older. */
  readonly through: string;
  /** Comes first in what is left, in the place of a summary before it; null: what goes is only dropped. */
  readonly summary: Message | null;
  /** Ids of messages up to `through` that stay all the same, right behind the summary. */
  readonly kept: readonly string[];
}

/**
 * A copy of conversations in a place of your own (row L11). It is written after the commit, at least once and in order:
 * every method must do nothing that is done already, and keep what it was given before it resolves.
 */
export interface MessageStore {
  /** Names the cursor that is kept for it, default `messages`: under a new name it is filled from the beginning. */
  readonly name?: string | undefined;
  /** Adds messages at the end, in order. One whose id is there already changes nothing. */
  append(agentId: string, messages: readonly Message[]): Promise<void>;
  /** The newest so many, oldest first; all by default. */
  getRecent(agentId: string, options?: { readonly maxMessages?: number | undefined }): Promise<Message[]>;
  /** Called after each compaction of the agent's context. One that is done already, or whose `through` is gone, changes nothing. */
  compact(agentId: string, compaction: MessageCompaction): Promise<void>;
  /** Forgets the conversation; called after `agent.clear()` and `agent.resetConversation()`. */
  clear?(agentId: string): Promise<void>;
}

/** A copy of artifacts in a place of your own, written as `MessageStore` is. */
export interface ArtifactStore {
  /** Default `artifacts`. */
  readonly name?: string | undefined;
  /** Keeps one version. The same `artifactId` again changes nothing. */
  save(agentId: string, artifact: Artifact): Promise<void>;
  /** By id, or by name: the newest version, or the one that is asked for. */
  get(agentId: string, idOrName: string, version?: number): Promise<Artifact | undefined>;
  /** Oldest first, without their content. */
  list(agentId: string): Promise<Omit<Artifact, "content">[]>;
  /** Forgets the artifacts; called after `agent.clear()`. */
  clear?(agentId: string): Promise<void>;
}

/** What is known of an agent besides its messages and artifacts. Times are ISO 8601. */
export interface AgentMetadata {
  readonly agentId: string;
  readonly createdAt: string;
  readonly lastActivity: string;
  readonly turnCount: number;
  readonly status: Lifecycle;
  readonly metadata?: JsonObject | undefined;
}

/** A copy of agents' states in a place of your own. */
export interface StateStore {
  /** Default `state`. */
  readonly name?: string | undefined;
  /** Puts this in the place of what is there. */
  save(agentId: string, metadata: AgentMetadata): Promise<void>;
  load(agentId: string): Promise<AgentMetadata | undefined>;
}

/** Stores of your own that are kept up to date from the journal. The runtime never reads them. */
export interface Projections {
  readonly messages?: MessageStore | undefined;
  readonly artifacts?: ArtifactStore | undefined;
  readonly state?: StateStore | undefined;
}

/** What the runtime calls of each. */
const needed = { messages: ["append", "compact"], artifacts: ["save"], state: ["save"] } as const;

/** Throws `InvalidInputError` for a store that lacks what will be called. */
export function checkProjections(projections: Projections): void {
  for (const [kind, store] of Object.entries(projections) as [string, object | undefined][]) {
    if (!(kind in needed)) {
      throw new InvalidInputError(`projections: "${kind}" is unknown; it takes ${Object.keys(needed).join(", ")}`);
    }
    if (store === undefined) continue;
    const missing = needed[kind as keyof typeof needed].filter(
      (name) => typeof (store as Record<string, unknown>)[name] !== "function",
    );
    if (missing.length > 0) throw new InvalidInputError(`projections.${kind} lacks ${missing.join("() and ")}()`);
  }
}
