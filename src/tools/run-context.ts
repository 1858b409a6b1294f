import type { Content, Json, ModelResponse, TraceEntry } from "../state/index.ts";
import type { Auth } from "./auth.ts";
import type { AwaitedChild } from "./awaited-child.ts";

/** The agent for which a tool runs. */
export interface RunAgent {
  readonly agentId: string;
  /** Name of its definition. */
  readonly name: string;
  readonly parentAgentId: string | null;
  readonly rootAgentId: string;
  /** 0 for a root agent. */
  readonly depth: number;
  readonly sessionId: string | null;
  readonly tenant: string;
}

/** An earlier tool call of the same turn. */
export interface PreviousTool {
  readonly callId: string;
  readonly name: string;
  /** How it ended, for instance `success`, `error` or `outcome_unknown`. */
  readonly outcome: string;
}

/** A model call made by a tool, a hook or compaction. */
export interface GenerateInput {
  readonly messages: readonly { readonly role: "system" | "user" | "assistant"; readonly content: Content }[];
  /** Upper bound of tokens to generate; it is what gets reserved. Absent: the agent's own. */
  readonly maxOutputTokens?: number | undefined;
  /** Name of a model that the runtime knows; absent: the agent's own. */
  readonly model?: string | undefined;
}

export interface ArtifactInput {
  readonly name: string;
  /** A media type, for instance `text/plain`. */
  readonly contentType: string;
  readonly content: string;
}

export interface SavedArtifact {
  readonly artifactId: string;
  /**
   * Counts from 1 over the artifacts of one name. In a queued tool the artifact is stored with the end of the call: `version`
   * is the one that it has then, unless somebody else saves one of that name meanwhile.
   */
  readonly version: number;
}

export interface SpawnOptions {
  /** Names the child within this call. */
  readonly key: string;
  /** Limits of the child's own; never more than what its parent has left. */
  readonly budget?: unknown;
}

export interface SpawnedChild {
  readonly agentId: string;
  /**
   * Settles when the child's turn has ended, however it ended: `status` tells. In a queued tool it rejects: a worker would be
   * held for as long as the child takes. Return `run.await(child)` there.
   */
  readonly result: Promise<{ readonly status: string; readonly text: string }>;
}

export interface AwaitOptions {
  /** What comes before the child's answer in the call's result, for instance a heading. */
  readonly prefix?: string | undefined;
}

/**
 * What a tool sees of the run that called it (row H6). It is valid during the call only: afterwards every access
 * throws `InvalidInputError`. The runtime implements it.
 */
export interface RunContext {
  readonly agent: RunAgent;
  readonly turnId: string;
  /** The step that asked for the call, from 1. */
  readonly step: number;
  readonly callId: string;
  /** 1 for the first attempt; more only with `maxAttempts` above 1 or after a restart. */
  readonly attempt: number;
  /** The user's prompt of this turn, as text. */
  readonly prompt: string;
  readonly previousTools: readonly PreviousTool[];
  readonly trace: readonly TraceEntry[];
  /** In a queued tool: what the `resolveAuth` of the runtime that runs it gives, since credentials never travel. */
  readonly auth: Auth | undefined;
  /** Who started the turn; stored, unlike `auth`, and so the same after a restart. null: nobody was named. */
  readonly actorId: string | null;
  /** How full the model's context window was after its last answer, from 0 to 100; null when that is not known. */
  readonly contextPercent: number | null;
  /** Aborted on time-out, interrupt, and when the agent stops. */
  readonly signal: AbortSignal;
  /** The same for every repeat of this call: hand it to a receiver that drops duplicates. */
  readonly idempotencyKey: string;
  /** Tells whoever watches how far the call is (`tool.progress`). Ephemeral: never stored. */
  readonly progress: (update: Json) => void;
  /**
   * A model call on the agent's budget. It is journalled: a rerun with the same prompt gets the first answer. In a queued tool
   * it throws `UnsupportedError`: budget and journal are the agent's, who may live in another process.
   */
  readonly generate: (request: GenerateInput) => Promise<ModelResponse>;
  /** In a queued tool it is stored together with the call's end, and not at all where the attempt fails and is repeated. */
  readonly saveArtifact: (artifact: ArtifactInput) => Promise<SavedArtifact>;
  /**
   * Starts a subagent. The same `key` within one call names the same child: spawning twice is one spawn. Rejects with
   * `NotFoundError` for a definition that the runtime was not given. In a queued tool it begins when the tool returns
   * `run.await(child)`.
   */
  readonly spawn: (definition: unknown, input: string, options: SpawnOptions) => Promise<SpawnedChild>;
  /**
   * To be returned by the tool: `return run.await(child)`. The tool's code is over then; its call waits for the child, through
   * restarts and without holding a slot, and the child's answer is the call's result. Throws `InvalidInputError` for a child
   * that this turn has not spawned.
   */
  readonly await: (child: Pick<SpawnedChild, "agentId">, options?: AwaitOptions) => AwaitedChild;
}
