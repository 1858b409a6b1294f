import type { AgentDefinition, SubagentTool } from "../agents/index.ts";
import type { Clock, TraceHeaders } from "../base/index.ts";
import { LeaseLostError } from "../errors/index.ts";
import type { ModelDelta, PriceBook } from "../model/index.ts";
import type {
  AgentIdentity,
  AgentRequest,
  Artifact,
  CallEnd,
  CallState,
  Entry,
  EntryOf,
  FactBody,
  IntentBody,
  Json,
  Message,
  Refusal,
  Timer,
  TurnOutcome,
  TurnState,
} from "../state/index.ts";
import type { BudgetMove, NewArtifact, Post, WakeOrder } from "../stores/index.ts";
import type { Auth, Slots, SpawnedChild } from "../tools/index.ts";
import type { PromptMemory } from "./prompt-memory.ts";

/** What goes to the store together with a fact. */
export interface FactParts {
  readonly messages?: readonly Message[] | undefined;
  readonly artifacts?: readonly NewArtifact[] | undefined;
  readonly moves?: readonly BudgetMove[] | undefined;
  readonly posts?: readonly Post[] | undefined;
  /** Requests that are opened with it. */
  readonly requests?: readonly AgentRequest[] | undefined;
  /** Requests that the turn goes on without. */
  readonly closedRequests?: readonly string[] | undefined;
  readonly timers?: readonly Timer[] | undefined;
  readonly clearedTimers?: readonly string[] | undefined;
  /** A turn to be started if none is open afterwards. */
  readonly wake?: WakeOrder | undefined;
}

export type Granted<Type extends IntentBody["type"]> = { readonly granted: true; readonly entry: EntryOf<Type> };

export type Proposed<Type extends IntentBody["type"]> =
  | Granted<Type>
  | { readonly granted: false; readonly entry: Refusal };

/** What is known of the open turn besides its fold: contents, and the entries that hold results of user code. */
export interface TurnMemory {
  readonly turnId: string;
  /** The user's prompt, as text. */
  readonly prompt: string;
  /** Entries of the turn so far, in order. */
  readonly entries: readonly Entry[];
}

export interface SpawnRequest {
  readonly turnId: string;
  readonly step: number;
  readonly callId: string | null;
  /** Names the child within its call or turn: the same key is the same child. */
  readonly key: string;
  readonly tool: Pick<SubagentTool, "definition" | "limits" | "policy" | "background">;
  readonly input: string;
}

/** How a child has ended. */
export type ChildEnd = Pick<EntryOf<"child.ended">, "outcome" | "stopReason" | "text">;

/** A child in the background as the stores have it. */
export interface BackgroundChild {
  readonly childId: string;
  /** Name of its definition. */
  readonly name: string;
  readonly state: "running" | "waiting" | "paused" | TurnOutcome;
  /** Model calls that it has made itself. */
  readonly steps: number;
  /** Used by it and all below it. */
  readonly tokens: number;
  readonly costMicros: number;
  /** Since it was started, or until it ended. */
  readonly elapsedMs: number;
}

/** This agent's children in the background. */
export interface BackgroundChildren {
  /** Those whose end has not been reported. */
  running(): readonly { readonly childId: string; readonly name: string }[];
  /** All that the agent ever had. */
  list(): Promise<readonly BackgroundChild[]>;
  /** Undefined while it runs. */
  endOf(childId: string): Promise<ChildEnd | undefined>;
  /** Ends it and all below it; false when nothing was open there. */
  cancel(childId: string, reason: string): Promise<boolean>;
}

/**
 * What became of a call that was taken back from its queue: it had ended, and this is how; or it has not, and whether
 * anybody had begun to run it.
 */
export type Withdrawal = { readonly end: CallEnd } | { readonly isBegun: boolean };

/** The queues on which this agent's calls are run, by whoever works on them. */
export interface CallQueue {
  /**
   * Adds the attempt that was granted; where it is there already, nothing changes. Tried again while the queue cannot be
   * reached, until the signal is aborted.
   */
  add(call: CallState, signal: AbortSignal): Promise<void>;
  /**
   * From now on nobody begins it, and who runs it is asked to stop; what that one still posts counts no more. Tried again as
   * `add` is.
   */
  withdraw(call: CallState, reason: string, signal: AbortSignal): Promise<Withdrawal>;
}

/** Those who watch what is not stored. */
export interface Viewers {
  /** Whether anybody does. It asks no store. */
  isAny(): boolean;
  /** The answer of a granted call is shown as it is written, from now until `end()`. */
  showAnswer(granted: EntryOf<"model.requested">): { add(delta: ModelDelta): void; end(): void };
  showProgress(call: CallState, update: Json): void;
}

/**
 * The port through which effect actors act. The runtime implements it; one host per live agent.
 *
 * Invariants
 * 1. A fact moves the machines as soon as everything before it has; an intent when its commit has returned.
 * 2. Live and in the fold, entries enter the machines in the order of their seq.
 * 3. After the lease is lost nothing is appended any more: `append` and `propose` throw `LeaseLostError`.
 */
export interface Host {
  readonly identity: AgentIdentity;
  readonly definition: AgentDefinition;
  readonly epoch: number;
  readonly clock: Clock;
  /** What models cost of which the definition does not tell it. */
  readonly prices: Pick<PriceBook, "priceOf">;
  /** A number in [0, 1), for jitter. */
  random(): number;
  /** Whether a pause was asked for and has not been confirmed yet. */
  readonly isPausing: boolean;
  append(body: FactBody, parts?: FactParts): Entry;
  propose<Body extends Exclude<IntentBody, { type: "child.spawned" }>>(body: Body): Promise<Proposed<Body["type"]>>;
  proposeSpawn(request: SpawnRequest): Promise<Proposed<"child.spawned">>;
  /** Resolves when all that was appended before is committed. User code runs only after it. */
  committed(): Promise<void>;
  /** Resolves when all that was appended before has entered the machines: a fact behind an undecided intent waits for it. */
  delivered(): Promise<void>;
  /** What was appended or proposed and has not entered the machines yet, in order. */
  undelivered(): readonly Entry[];
  turn(turnId: string): TurnState | undefined;
  call(turnId: string, callId: string): CallState | undefined;
  memory(turnId: string): TurnMemory;
  /** The span of a call, or of its turn, that this process made; else the one under which the turn was asked for. */
  traceOf(turnId: string, callId?: string): TraceHeaders | undefined;
  /** What the model may see of the conversation: since the last compaction, oldest first. */
  history(): readonly Message[];
  /** Place of the open turn's first message in `history()`; undefined where it is not kept. */
  turnStart(): number | undefined;
  /** The whole conversation, oldest first. */
  archive(): readonly Message[];
  message(messageId: string): Message | undefined;
  /** Whether some result of the conversation is an excerpt of an artifact, shown to the model now or not. */
  hasExcerpts(): boolean;
  /** One of the agent's own artifacts. */
  artifact(artifactId: string): Promise<Artifact | undefined>;
  readonly viewers: Viewers;
  auth(turnId: string): Auth | undefined;
  /** Takes the turn's credentials, and secrets of the environment, out of what user code gives. */
  redactorOf(turnId: string): (text: string) => string;
  /** Asks the runtime for the turn's credentials; undefined when nobody has them. */
  resolveAuth(turnId: string): Promise<Auth | undefined>;
  /** Shared by all agents of the process that have this tool. */
  slots(toolName: string, limit: number): Slots;
  /** What effects of this agent leave for one another. */
  readonly notes: {
    /** Output tokens that had come when an attempt was stopped, for whoever settles it; taken once. */
    noteCut(requestKey: string, outputTokens: number): void;
    takeCut(requestKey: string): number | undefined;
    /** Whether a pause that would not wait dropped the model call; taken once. */
    takeDropped(requestKey: string): boolean;
    /** The version that the commit gave an artifact; to be asked after `committed()`. */
    versionOf(artifactId: string): number;
    /** What is known of the last prompt that was answered. */
    readonly prompts: PromptMemory;
  };
  /**
   * What is out in the world under this key. It belongs to the process, not to the activation: an agent that was
   * discarded and restored here takes up what it had begun.
   */
  readonly inFlight: {
    run<T>(
      key: string,
      signal: AbortSignal,
      start: (signal: AbortSignal) => Promise<T>,
      /** False: where the agent was another process' meanwhile, so that its code could not go on, it is not made again. */
      isRepeatable?: boolean,
    ): Promise<T>;
    has(key: string): boolean;
  };
  /** The live host of this agent: itself, or the one that took its place in this process. */
  live(): Promise<Host>;
  /** Resolves when nothing of the open turn's own is out in the world; children come to rest by themselves. */
  quiet(): Promise<void>;
  /**
   * Resolves when an intent that was refused only for now may be proposed again; rejects when the lease is lost. `run` is
   * who waits: a call that waits here has nothing out in the world, so that a pause need not wait for it.
   */
  freed(refusal: Refusal, run: string): Promise<void>;
  /** Resolves when the next entry has entered the machines. */
  moved(): Promise<void>;
  /** An effect has ended while its state goes on: the agent may have come to rest without another entry. */
  effectOver(): void;
  /** Appends `agent.paused`: nothing of the agent's own is under way any more. */
  confirmPause(): void;
  readonly background: BackgroundChildren;
  readonly queue: CallQueue;
  /** Those that the runtime was given, by their names. */
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  /** Where a child of this turn stands; settles when it has ended. */
  child(turnId: string, childId: string): SpawnedChild["result"];
}

/**
 * Acts for user code, which may outlive the activation that called it. What is lost together with a lease did not happen:
 * it is done again through the agent's live host, as long as this process has the agent.
 */
export async function onLive<T>(owner: Host, act: (host: Host) => Promise<T>): Promise<T> {
  for (;;) {
    const host = await owner.live();
    try {
      return await act(host);
    } catch (error) {
      if (!(error instanceof LeaseLostError) || (await owner.live()) === host) throw error;
    }
  }
}

export interface Warning {
  readonly code: string;
  readonly message: string;
}

/** Whether this turn has warned of it. */
export function isWarnedOf(host: Host, turnId: string, code: string): boolean {
  return host.memory(turnId).entries.some((entry) => entry.type === "warning" && entry.code === code);
}

/** Warns of what this turn has not warned of yet. */
export function appendWarnings(host: Host, turnId: string, warnings: readonly Warning[]): void {
  for (const { code, message } of warnings) {
    if (!isWarnedOf(host, turnId, code)) host.append({ type: "warning", turnId, code, message });
  }
}
