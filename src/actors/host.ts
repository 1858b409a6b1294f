import type { CompileInput } from "../context/index.ts";
import type { AgentDefinition, OutputSchema, SubagentTool } from "../agents/index.ts";
import { type Clock, type TraceHeaders, waitingOn } from "../base/index.ts";
import type { Account, Binding } from "../budget/index.ts";
import { LeaseLostError, TurnInterruptedError } from "../errors/index.ts";
import type { LanguageModel, ModelDelta, PriceBook, PromptMemory } from "../model/index.ts";
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
  ModelResponse,
  Refusal,
  StoredDefinition,
  Timer,
  TurnOutcome,
  TurnState,
} from "../state/index.ts";
import type { CacheWatch } from "./cache-watch.ts";
import type { RecordedCall } from "./fork-rule.ts";
import type { BudgetMove, NewArtifact, Post, WakeOrder } from "../stores/index.ts";
import type { Auth, Slots, SpawnedChild, TurnSchedules } from "../tools/index.ts";

/** Writes that are committed together with a fact. */
export interface FactParts {
  readonly messages?: readonly Message[] | undefined;
  readonly artifacts?: readonly NewArtifact[] | undefined;
  readonly moves?: readonly BudgetMove[] | undefined;
  readonly posts?: readonly Post[] | undefined;
  /** Requests opened by the fact. */
  readonly requests?: readonly AgentRequest[] | undefined;
  /** Requests that no longer need a decision. */
  readonly closedRequests?: readonly string[] | undefined;
  readonly timers?: readonly Timer[] | undefined;
  readonly clearedTimers?: readonly string[] | undefined;
  /** The definition that the entry refers to, unless the agent was created under it. */
  readonly definition?: StoredDefinition | undefined;
  /** A turn to start if none is open after the commit. */
  readonly wake?: WakeOrder | undefined;
}

type Granted<Type extends IntentBody["type"]> = { readonly granted: true; readonly entry: EntryOf<Type> };

export type Proposed<Type extends IntentBody["type"]> =
  | Granted<Type>
  | { readonly granted: false; readonly entry: Refusal };

/** Contents of the open turn that its fold lacks: texts, and entries with results of user code. */
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
  /** Names the child within its call or turn: the same key returns the same child. */
  readonly key: string;
  readonly tool: Pick<SubagentTool, "definition" | "limits" | "policy" | "background" | "history">;
  readonly input: string;
}

/** A child's outcome. */
export type ChildEnd = Pick<EntryOf<"child.ended">, "outcome" | "stopReason" | "text">;

/** A background child, as stored. */
export interface BackgroundChild {
  readonly childId: string;
  /** Name of its definition. */
  readonly name: string;
  readonly state: "running" | "waiting" | "paused" | TurnOutcome;
  /** Number of its own model calls. */
  readonly steps: number;
  /** Usage of the child and all agents below it. */
  readonly tokens: number;
  readonly costMicros: number;
  /** Time since it was started, until now or its end. */
  readonly elapsedMs: number;
}

/** This agent's background children. */
export interface BackgroundChildren {
  /** Children whose end has not been reported. */
  running(): readonly { readonly childId: string; readonly name: string }[];
  /** All background children of the agent, including ended ones. */
  list(): Promise<readonly BackgroundChild[]>;
  /** `undefined` while the child runs. */
  endOf(childId: string): Promise<ChildEnd | undefined>;
  /** Ends the child and all agents below it; returns false if they had no open turn. */
  cancel(childId: string, reason: string): Promise<boolean>;
}

/** A call withdrawn from its queue: its end if it had ended, otherwise whether a worker had started it. */
export type Withdrawal = { readonly end: CallEnd } | { readonly isBegun: boolean };

/** The queues whose workers run this agent's calls. */
export interface CallQueue {
  /**
   * Adds the granted attempt; adding it again has no effect. Retries while the queue cannot be reached, until the signal is
   * aborted.
   */
  add(call: CallState, signal: AbortSignal): Promise<void>;
  /**
   * Prevents workers from starting the call and asks a worker that runs it to stop; its result no longer counts. Retries like
   * `add`.
   */
  withdraw(call: CallState, reason: string, signal: AbortSignal): Promise<Withdrawal>;
}

/** An answer that is shown while it is written. */
export interface ShownAnswer {
  add(delta: ModelDelta): void;
  /** The answer is complete: followers get its last value. */
  complete(): void;
  /** Nothing more is shown. */
  end(): void;
}

/** Followers of events that are not stored: deltas and progress. */
export interface Viewers {
  /** Whether models are to stream their answers. Reads no store. */
  isStreaming(): boolean;
  /**
   * Sends the answer of a granted call to followers while it is written, until `end()`.
   * @param partial The value of the text so far, for an agent with an output schema.
   */
  showAnswer(granted: EntryOf<"model.requested">, partial?: OutputSchema["partial"]): ShownAnswer;
  showProgress(call: CallState, update: Json): void;
}

/**
 * The port through which effects act. The runtime implements it; one host per live agent.
 *
 * Invariants
 * 1. A fact moves the machines as soon as everything before it has; an intent moves them after its commit.
 * 2. Live and in the fold, entries are delivered to the machines in the order of their seq.
 * 3. After the lease is lost nothing is appended: `append` and `propose` throw `LeaseLostError`.
 */
export interface Host {
  readonly identity: AgentIdentity;
  readonly definition: AgentDefinition;
  readonly epoch: number;
  readonly clock: Clock;
  /** Prices of models whose definition sets none. */
  readonly prices: Pick<PriceBook, "priceOf">;
  /** The smallest limits of the accounts above the root. Throws `InvalidInputError` if the owner's limits cannot be read. */
  readonly outerBinding: Binding;
  /** A number in [0, 1), for jitter. */
  random(): number;
  /** Whether a pause was requested and is not confirmed yet. */
  readonly isPausing: boolean;
  /** Whether the agent is being shut down: no new work starts. */
  readonly isShuttingDown: boolean;
  append(body: FactBody, parts?: FactParts): Entry;
  propose<Body extends Exclude<IntentBody, { type: "child.spawned" }>>(body: Body): Promise<Proposed<Body["type"]>>;
  proposeSpawn(request: SpawnRequest): Promise<Proposed<"child.spawned">>;
  /** Resolves when all entries appended before are committed. User code runs only after that. */
  committed(): Promise<void>;
  /**
   * Resolves when all entries appended before have been delivered to the machines: a fact behind an undecided intent waits for
   * it.
   */
  delivered(): Promise<void>;
  /** Entries not yet delivered to the machines, in order. */
  undelivered(): readonly Entry[];
  turn(turnId: string): TurnState | undefined;
  /** How many calls each stub has answered, by its index, as delivered to the machines. */
  readonly stubUses: Readonly<Record<string, number>>;
  call(turnId: string, callId: string): CallState | undefined;
  memory(turnId: string): TurnMemory;
  /** The span of the call or its turn, if this process created one; otherwise the span in which the turn was requested. */
  traceOf(turnId: string, callId?: string): TraceHeaders | undefined;
  /** The conversation since the last compaction, as visible to the model, oldest first. */
  history(): readonly Message[];
  /** Index of the open turn's first message in `history()`; `undefined` if unknown. */
  turnStart(): number | undefined;
  /** The whole conversation, oldest first. */
  archive(): readonly Message[];
  /** Both without a copy, for code of this package that neither changes nor keeps them. */
  lentLists(): Pick<CompileInput, "history" | "earlier">;
  message(messageId: string): Message | undefined;
  /** Whether any result of the conversation is an excerpt of an artifact, even if it is hidden from the model. */
  hasExcerpts(): boolean;
  /** One of the agent's own artifacts. */
  artifact(artifactId: string): Promise<Artifact | undefined>;
  /** The newest version of a name. */
  artifactByName(name: string): Promise<Artifact | undefined>;
  /** All of them without their content, oldest first. */
  artifacts(): Promise<readonly Omit<Artifact, "content">[]>;
  /** Later turns of the agent, as the call's code sees them. */
  schedulesOf(call: Pick<CallState, "turnId" | "callId">): TurnSchedules;
  readonly viewers: Viewers;
  /** Runs the work in the async context of the code that requested the turn, or in that of no caller. */
  inContextOf<T>(turnId: string, work: () => T): T;
  auth(turnId: string): Auth | undefined;
  /** Redacts the turn's credentials, and secrets of the environment, in a text. */
  redactorOf(turnId: string): (text: string) => string;
  /**
   * Keeps the error that fails the turn, for the turn's result in this process. `source`: a description of the code that threw
   * it.
   */
  noteFailure(turnId: string, error: unknown, source: string | undefined): void;
  /** Requests the turn's credentials from the program; `undefined` if it has none. */
  resolveAuth(turnId: string): Promise<Auth | undefined>;
  /** The slots of a tool, shared by all agents of the process. */
  slots(toolName: string, limit: number): Slots;
  /** In-memory notes that effects of this agent share. */
  readonly notes: {
    /** Records that a granted model call is being made. */
    noteAsked(requestKey: string): void;
    wasAsked(requestKey: string): boolean;
    /** Records that the `beforeLlm` hooks of a step begin. `stepKey`: the turn's id and the step. */
    noteHooksBegun(stepKey: string): void;
    haveHooksBegun(stepKey: string): boolean;
    /** Output tokens received before an attempt was stopped, for its settlement; removed when read. */
    noteCut(requestKey: string, outputTokens: number): void;
    takeCut(requestKey: string): number | undefined;
    /** Whether a pause with `now` dropped the model call; removed when read. */
    takeDropped(requestKey: string): boolean;
    /** The version that the commit gave an artifact; valid after `committed()`. */
    versionOf(artifactId: string): number;
    /** The last prompt that this model answered, used to count the tokens of the next one. */
    promptsOf(model: LanguageModel): PromptMemory;
    /** How much of the agent's prompts the provider of this model has read from its cache. */
    cacheOf(model: LanguageModel): Pick<CacheWatch, "noteAnswered">;
  };
  /**
   * Calls in flight, by key. They belong to the process, not to the activation: an agent that was discarded and recovered in this
   * process joins the calls it had started.
   */
  readonly inFlight: {
    run<T>(
      key: string,
      signal: AbortSignal,
      start: (signal: AbortSignal) => Promise<T>,
      /** `false` if a call that failed because another process took over the agent must not be made again. */
      isRepeatable?: boolean,
    ): Promise<T>;
    has(key: string): boolean;
  };
  /** The live host of this agent in this process: this one, or its successor. */
  live(): Promise<Host>;
  /** Resolves when none of the open turn's own work is in flight; children come to rest by themselves. */
  quiet(): Promise<void>;
  /**
   * Resolves when a temporarily refused intent may be proposed again; rejects when the lease is lost. `run` names the waiting
   * call, which does not count as in flight, so that a pause need not wait for it.
   */
  freed(refusal: Refusal, run: string): Promise<void>;
  /** Resolves when the next entry has been delivered to the machines. */
  moved(): Promise<void>;
  /** Reports that an effect has ended while its state continues: the agent may have come to rest without another entry. */
  effectOver(): void;
  /** Appends `agent.paused`: none of the agent's own work is in flight any more. */
  confirmPause(): void;
  /** The stored account and all above it, innermost first. */
  accounts(accountId: string): Promise<readonly Account[]>;
  readonly background: BackgroundChildren;
  readonly queue: CallQueue;
  /** The definitions passed to the runtime, by name. */
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  /**
   * In a fork: the recorded call whose result a call with these arguments gets; `undefined` if none is left. Asking again for the same
   * call gives the same one.
   */
  recordedCall(call: CallState): Promise<RecordedCall | undefined>;
  /** The result of a child of this turn; settles when the child has ended. */
  child(turnId: string, childId: string): SpawnedChild["result"];
}

/**
 * Acts on behalf of user code, which may outlive the activation that called it. Work lost with a lease is discarded and repeated
 * through the agent's live host, while this process owns the agent.
 */
export async function onLive<T>(owner: Host, act: (host: Host) => Promise<T>): Promise<T> {
  for (;;) {
    const host = await owner.live();
    try {
      return await waitingOn(host.clock, () => act(host));
    } catch (error) {
      if (!(error instanceof LeaseLostError) || (await owner.live()) === host) throw error;
    }
  }
}

/**
 * Throws `TurnInterruptedError` if the turn is over, because nothing may be written for it then. User code may outlive its turn,
 * and is not notified of the turn's end if its agent was recovered meanwhile.
 */
export function assertOpenTurn(host: Pick<Host, "turn">, turnId: string): TurnState {
  const turn = host.turn(turnId);
  if (turn?.execution.status === "in_progress") return turn;
  throw new TurnInterruptedError(`turn ${turnId} is over`);
}

export interface Warning {
  readonly code: string;
  readonly message: string;
}

/** Whether the turn has a warning with this code, including one that waits behind an undecided intent. */
export function isWarnedOf(host: Host, turnId: string, code: string): boolean {
  const isIt = (entry: Entry): boolean => entry.type === "warning" && entry.turnId === turnId && entry.code === code;
  return host.memory(turnId).entries.some(isIt) || host.undelivered().some(isIt);
}

/** Appends the warnings whose codes the turn does not have yet. */
export function appendWarnings(host: Host, turnId: string, warnings: readonly Warning[]): void {
  for (const { code, message } of warnings) {
    if (!isWarnedOf(host, turnId, code)) host.append({ type: "warning", turnId, code, message });
  }
}

/** Keeps the codes of models apart from those of the runtime, some of which change what a turn does. */
const MODEL_PREFIX = "model:";
/** Most warnings of models in a turn: an adapter may word each one differently. */
const MOST_MODEL_WARNINGS = 20;

/** Appends the warnings that a model has returned with an answer, each once in a turn. */
export function appendModelWarnings(
  host: Host,
  turnId: string,
  { warnings = [] }: Pick<ModelResponse, "warnings">,
): void {
  if (warnings.length === 0) return;
  const ofModels = (entry: Entry): Warning[] =>
    entry.type === "warning" && entry.turnId === turnId && entry.code.startsWith(MODEL_PREFIX) ? [entry] : [];
  const known = [...host.memory(turnId).entries, ...host.undelivered()].flatMap(ofModels);
  for (const { code: given, message: text } of warnings) {
    if (known.length >= MOST_MODEL_WARNINGS) return;
    const [code, message] = [MODEL_PREFIX + given, host.redactorOf(turnId)(text)];
    if (known.some((one) => one.code === code && one.message === message)) continue;
    known.push({ code, message });
    host.append({ type: "warning", turnId, code, message });
  }
}
