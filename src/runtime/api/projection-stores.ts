import { InvalidInputError } from "../../errors/index.ts";
import type { Artifact, JsonObject, Lifecycle, Message } from "../../state/index.ts";
import type { Auth } from "../../tools/index.ts";

/** Context of a write to a store of your own: the turn that the written data belongs to. */
export interface ProjectionContext {
  /**
   * The actor of the turn; `null` if the caller named none, and for data that belongs to no turn, such as `agent.clear()` and the
   * messages that an agent was created with.
   */
  readonly actorId: string | null;
  /**
   * The actor with the credentials of the turn: those it was started with or, in another process or after a restart, those that
   * `resolveAuth` returns. `undefined` without credentials. Do not store them.
   */
  readonly auth: Auth | undefined;
}

/** The messages that a compaction hides, and the summary that replaces them. */
export interface MessageCompaction {
  /** Id of the newest hidden message; all older messages are hidden too. */
  readonly through: string;
  /** The first message of the remaining conversation, replacing an earlier summary; `null` without a summary. */
  readonly summary: Message | null;
  /** Ids of messages up to `through` that are kept, directly after the summary. */
  readonly kept: readonly string[];
}

/**
 * A copy of conversations in a store of your own. It is written after the commit, at least once and in order: a method must do
 * nothing if its work is already done, and must have stored its input when it resolves. The runtime passes a `context` with every
 * write.
 */
export interface MessageStore {
  /** Names the stored cursor, default `messages`; under a new name the store is filled from the beginning. */
  readonly name?: string | undefined;
  /** Appends messages of one turn in order. A message whose id already exists changes nothing. */
  append(agentId: string, messages: readonly Message[], context?: ProjectionContext): Promise<void>;
  /** Returns the newest messages, oldest first. Default: all. */
  getRecent(agentId: string, options?: { readonly maxMessages?: number | undefined }): Promise<Message[]>;
  /** Called after each compaction of the agent's context. Must do nothing if it was done already or `through` does not exist. */
  compact(agentId: string, compaction: MessageCompaction, context?: ProjectionContext): Promise<void>;
  /** Deletes the conversation; called after `agent.clear()` and `agent.resetConversation()`. */
  clear?(agentId: string, context?: ProjectionContext): Promise<void>;
  /** Deletes everything of an agent; called when its tree is deleted, perhaps more than once. Default: `clear` is called. */
  delete?(agentId: string): Promise<void>;
}

/** A copy of artifacts in a store of your own, written like a `MessageStore`. */
export interface ArtifactStore {
  /** Default `artifacts`. */
  readonly name?: string | undefined;
  /** Stores one version. The same `artifactId` again changes nothing. */
  save(agentId: string, artifact: Artifact, context?: ProjectionContext): Promise<void>;
  /** Returns an artifact by id, or by name: the given version, by default the newest. */
  get(agentId: string, idOrName: string, version?: number): Promise<Artifact | undefined>;
  /** Lists artifacts without their content, oldest first. */
  list(agentId: string): Promise<Omit<Artifact, "content">[]>;
  /** Deletes the artifacts; called after `agent.clear()`. */
  clear?(agentId: string, context?: ProjectionContext): Promise<void>;
  /** Deletes everything of an agent; called when its tree is deleted, perhaps more than once. Default: `clear` is called. */
  delete?(agentId: string): Promise<void>;
}

/** The state of an agent without its messages and artifacts. Times are ISO 8601. */
export interface AgentMetadata {
  /** The agent. */
  readonly agentId: string;
  /** When the agent was created. */
  readonly createdAt: string;
  /** When the agent was last active. */
  readonly lastActivity: string;
  /** Number of turns started so far. */
  readonly turnCount: number;
  /** The agent's lifecycle. */
  readonly status: Lifecycle;
  /** The metadata with which the agent was created; `undefined` if there is none. */
  readonly metadata?: JsonObject | undefined;
}

/** A copy of agents' states in a store of your own. */
export interface StateStore {
  /** Default `state`. */
  readonly name?: string | undefined;
  /** Replaces the stored state. The context is that of the agent's newest turn among the copied commits. */
  save(agentId: string, metadata: AgentMetadata, context?: ProjectionContext): Promise<void>;
  /** Returns the metadata saved last; `undefined` if none was saved. */
  load(agentId: string): Promise<AgentMetadata | undefined>;
  /** Deletes the state; called when the agent's tree is deleted, perhaps more than once. */
  delete?(agentId: string): Promise<void>;
}

/** Stores of your own that are kept up to date from the journal. The runtime never reads them. */
export interface Projections {
  /** Receives a copy of every conversation. Default: none. */
  readonly messages?: MessageStore | undefined;
  /** Receives a copy of every artifact. Default: none. */
  readonly artifacts?: ArtifactStore | undefined;
  /** Receives a copy of every agent's state. Default: none. */
  readonly state?: StateStore | undefined;
}

/** Methods that the runtime calls on each store. */
const needed = { messages: ["append", "compact"], artifacts: ["save"], state: ["save"] } as const;

/** Throws `InvalidInputError` for a store that lacks a required method. */
export function checkProjections(projections: Projections): void {
  for (const [kind, store] of Object.entries(projections) as [string, object | undefined][]) {
    if (!(kind in needed)) {
      throw new InvalidInputError(`projections: "${kind}" is unknown; expected ${Object.keys(needed).join(", ")}`);
    }
    if (store === undefined) continue;
    const missing = needed[kind as keyof typeof needed].filter(
      (name) => typeof (store as Record<string, unknown>)[name] !== "function",
    );
    if (missing.length > 0) throw new InvalidInputError(`projections.${kind} lacks ${missing.join("() and ")}()`);
  }
}
