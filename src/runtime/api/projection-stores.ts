import { InvalidInputError } from "../../errors/index.ts";
import type { Artifact, JsonObject, Lifecycle, Message } from "../../state/index.ts";
import type { Auth } from "../../tools/index.ts";

/** For whom a store of your own is written: the turn that the written data belongs to. */
export interface ProjectionContext {
  /**
   * The actor of the turn; null if none was named, and for data that belongs to no turn, such as `agent.clear()` and the
   * messages that an agent was created with.
   */
  readonly actorId: string | null;
  /**
   * The actor with the credentials of the turn: those it was started with, or those that `resolveAuth` gives in another
   * process or after a restart. `undefined`: there are none. Do not store them.
   */
  readonly auth: Auth | undefined;
}

/** The messages of a conversation that a compaction removes from view, and their replacement. */
export interface MessageCompaction {
  /** Id of the newest message that is removed; all older ones are removed too. */
  readonly through: string;
  /** Comes first in the rest, in place of an earlier summary; `null` if the messages are removed without one. */
  readonly summary: Message | null;
  /** Ids of messages up to `through` that are kept, right after the summary. */
  readonly kept: readonly string[];
}

/**
 * A copy of conversations in a store of your own. It is written after the commit, at least once and in order:
 * a method must do nothing when its work is already done, and must have stored its input when it resolves. The runtime
 * passes a `context` with every write.
 */
export interface MessageStore {
  /** Names its stored cursor, default `messages`; under a new name the store is filled from the beginning. */
  readonly name?: string | undefined;
  /** Adds messages of one turn at the end, in order. A message whose id is already there changes nothing. */
  append(agentId: string, messages: readonly Message[], context?: ProjectionContext): Promise<void>;
  /** The newest messages, oldest first. Default: all. */
  getRecent(agentId: string, options?: { readonly maxMessages?: number | undefined }): Promise<Message[]>;
  /**
   * Called after each compaction of the agent's context. Changes nothing if it was done already or `through` is gone.
   */
  compact(agentId: string, compaction: MessageCompaction, context?: ProjectionContext): Promise<void>;
  /** Deletes the conversation; called after `agent.clear()` and `agent.resetConversation()`. */
  clear?(agentId: string, context?: ProjectionContext): Promise<void>;
}

/** A copy of artifacts in a store of your own, written like a `MessageStore`. */
export interface ArtifactStore {
  /** Default `artifacts`. */
  readonly name?: string | undefined;
  /** Keeps one version. The same `artifactId` again changes nothing. */
  save(agentId: string, artifact: Artifact, context?: ProjectionContext): Promise<void>;
  /** By id, or by name: the given version, by default the newest. */
  get(agentId: string, idOrName: string, version?: number): Promise<Artifact | undefined>;
  /** Oldest first, without their content. */
  list(agentId: string): Promise<Omit<Artifact, "content">[]>;
  /** Deletes the artifacts; called after `agent.clear()`. */
  clear?(agentId: string, context?: ProjectionContext): Promise<void>;
}

/** The state of an agent besides its messages and artifacts. Times are ISO 8601. */
export interface AgentMetadata {
  /** The agent. */
  readonly agentId: string;
  /** When the agent was created. */
  readonly createdAt: string;
  /** When it last did something. */
  readonly lastActivity: string;
  /** Turns that were started so far. */
  readonly turnCount: number;
  /** Where the agent is in its life. */
  readonly status: Lifecycle;
  /** The metadata with which the agent was created; `undefined` if there is none. */
  readonly metadata?: JsonObject | undefined;
}

/** A copy of agents' states in a store of your own. */
export interface StateStore {
  /** Default `state`. */
  readonly name?: string | undefined;
  /** Replaces the stored state. The context is that of the agent's newest turn among the commits that are copied. */
  save(agentId: string, metadata: AgentMetadata, context?: ProjectionContext): Promise<void>;
  /** Returns the metadata that was saved last; `undefined` if none was saved. */
  load(agentId: string): Promise<AgentMetadata | undefined>;
}

/** Stores of your own that are kept up to date from the journal. The runtime never reads them. */
export interface Projections {
  /** Gets a copy of every conversation. Default: none. */
  readonly messages?: MessageStore | undefined;
  /** Gets a copy of every artifact. Default: none. */
  readonly artifacts?: ArtifactStore | undefined;
  /** Gets a copy of every agent's state. Default: none. */
  readonly state?: StateStore | undefined;
}

/** Methods that the runtime calls on each store. */
const needed = { messages: ["append", "compact"], artifacts: ["save"], state: ["save"] } as const;

/** Throws `InvalidInputError` for a store that lacks a required method. */
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
