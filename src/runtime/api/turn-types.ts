import type { Budget, LimitName } from "../../budget/index.ts";
import type {
  AgentRequest,
  ExecutionState,
  ExecutionStatus,
  JsonObject,
  StopReason,
  StopSignal,
  StoredError,
  TroupeEvent,
  Usage,
} from "../../state/index.ts";
import type { Observer } from "xstate";
import type { TraceHeaders } from "../../base/index.ts";
import type { Auth } from "../../tools/index.ts";

/** What `agent.executeTurn()` takes beside the input. */
export interface TurnOptions {
  /** Who the turn is for, with credentials for its tools; credentials are never stored. Default: none. */
  readonly auth?: Auth | undefined;
  /**
   * Aborting it aborts the turn: before the first step with 0 steps, later with the steps that are done.
   * Default: none.
   */
  readonly signal?: AbortSignal | undefined;
  /** Limits of this turn; each replaces the definition's limit of the same name. Default: the definition's. */
  readonly budget?: Budget | undefined;
  /**
   * What to do while another turn is open: `refuse` (default), `queue` behind it, or `supersede`, which ends the open
   * turn, gives its open calls results that say so, and then starts this one.
   */
  readonly ifBusy?: "refuse" | "queue" | "supersede" | undefined;
  /**
   * A name that the caller chose for the turn, so that the command can be sent again: 1 to 255 visible ASCII
   * characters. The agent has one turn of each key, whichever process asks, also after the turn has ended; a command of
   * the same key with another input, actor, budget or client tools rejects with `TurnConflictError`, and so does the
   * key of a decision (`Decide.key`). Root agents only. Default: none.
   */
  readonly key?: string | undefined;
  /**
   * The parent span of the turn's own, in whichever process it runs: the W3C headers of a request, for instance.
   * Default: the span that is active at the call, while `traceToOpenTelemetry` is on in this process.
   */
  readonly trace?: TraceHeaders | undefined;
  /**
   * Tools of this turn alone, which its caller runs: the model may call them, the turn waits with a request of the kind
   * `client`, and `decide` answers it. They are stored with the turn. Up to 128, whose names are none of the agent's
   * own; `parameters` is a JSON Schema of an object. Only for a definition with `clientTools: true`. Default: none.
   */
  readonly clientTools?:
    | readonly { readonly name: string; readonly description: string; readonly parameters: JsonObject }[]
    | undefined;
}

/** A limit that ended a turn, and the account that it belongs to. */
export interface LimitStop {
  /** The reason, for programs: `tokens_limit`, `cost_limit` and the like. */
  readonly reason: StopReason;
  /** Name of the limit, as `Budget` writes it. */
  readonly limit: LimitName;
  /** The agent that owns the account: the turn's own, or one above it. */
  readonly agentId: string;
  /** The account on which the limit lies. */
  readonly accountId: string;
  /**
   * In the limit's unit: steps, tokens, micro-dollars, milliseconds or calls; for a deadline, moments. `null` if not known.
   */
  readonly used: number | null;
  /** The limit itself, in the same unit; `null` if not known. */
  readonly max: number | null;
  /** The same in words: `lead, this turn: 50,000 of 50,000 tokens`. */
  readonly message: string;
  /** How to go on, in words. */
  readonly wayOn: string;
}

/** The stored error and, in the process where the turn failed, what was thrown. */
interface TurnError extends StoredError {
  /** What was thrown, with its stack; not enumerable. */
  readonly cause?: unknown;
  /** The code that has thrown it, in words; not enumerable. */
  readonly source?: string | undefined;
}

/** The outcome of a turn. `Output`: what the `output` schema of its definition gives, `Json` without one. */
export interface TurnResult<Output = unknown> {
  /** The agent. */
  readonly agentId: string;
  /** The turn: the agent's id, `#` and its number. */
  readonly turnId: string;
  /** `completed`: the model has answered. `stopped`: something ended it early. `failed`: an error ended it. */
  readonly status: Extract<ExecutionStatus, "completed" | "stopped" | "failed">;
  /** The answer; for a stopped or failed turn its text so far, or a sentence that says why there is none. */
  readonly text: string;
  /** The reason of the end, for programs; `stop` and `signal` have more. */
  readonly stopReason: StopReason;
  /** The cause of a stop, with the account if it was a limit. */
  readonly signal: StopSignal | null;
  /** The limit that stopped it; null if none did. */
  readonly stop: LimitStop | null;
  /**
   * The limit that left room for no further call, so that the model was asked for an answer without tools
   * (`finalAnswer` of a budget); null if the turn ended by itself.
   */
  readonly finalAnswer: LimitStop | null;
  /** Tokens of the agent's own model calls. */
  readonly usage: Usage;
  /** Dollars of the agent's own model calls; null when a price is not known. */
  readonly cost: number | null;
  /** Spending of the agent itself and of its whole tree, and the latter by model. */
  readonly spent: TurnSpending;
  /** Model calls with their tools, the last one included. */
  readonly steps: number;
  /** Calls of tools that ran. */
  readonly toolCalls: number;
  /**
   * The error that ended the turn; null unless it failed. In the process where the turn failed it also has what was thrown, with its stack (`cause`), and the code that has thrown it, in
   * words (`source`: `the hook beforeLlm of "audit"`). Both are never stored, and not enumerable: JSON and copies leave them out.
   */
  readonly error: TurnError | null;
  /** All errors, including those of tools. */
  readonly errors: readonly StoredError[];
  /** The checked answer, if the definition has an `output` schema and the turn completed. */
  readonly output?: Output | undefined;
  /** The turn with its steps, as `troupe/state` describes it; null when it ended before this process looked. */
  readonly execution: ExecutionState | null;
}

/** The outcome of an ended turn, or a turn that waits for a decision or is paused. */
export type TurnRest<Output = unknown> = TurnResult<Output> | WaitingTurn;

/** The state of a turn at one moment. `step`: the last one that has begun, 0 for none. */
export type TurnNow<Output = unknown> =
  | { readonly status: "queued" | "running"; readonly turnId: string; readonly step: number }
  | TurnRest<Output>;

/** An open turn at rest: paused, or waiting for decisions on requests of it or its subagents. */
export type WaitingTurn =
  | { readonly status: "waiting"; readonly turnId: string; readonly reason: "paused" }
  | {
      readonly status: "waiting";
      readonly turnId: string;
      readonly reason: "request";
      readonly requests: readonly AgentRequest[];
    };

/** A function that is called with each event, or an object with `next`, `error` and `complete`. */
export type EventObserver = Partial<Observer<TroupeEvent>> | ((event: TroupeEvent) => void);

/**
 * One turn in progress: async-iterable and subscribable (RxJS `from` takes it), not thenable. A turn that fails ends
 * its stream with `turn.failed`; only a refused command or a broken runtime rejects.
 */
export interface Turn<Output = unknown> extends AsyncIterable<TroupeEvent> {
  /** Known once the turn was accepted. Rejects when it was refused. */
  readonly id: Promise<string>;
  /** Resolves when the turn has ended. Rejects with `AgentBusyError` and the like when it was refused. */
  readonly result: Promise<TurnResult<Output>>;
  /**
   * Resolves when the turn has ended, and also when it waits: with the requests that are open, or paused. The first read gives the
   * rest as it stands. After a rest was given, the next read waits until the turn rests otherwise (other requests, another pause)
   * or has ended. A queued turn waits while its agent is paused, not while a turn before it waits for a request.
   */
  readonly settled: Promise<TurnRest<Output>>;
  /** Whether the agent had the turn before this handle asked for it: `TurnOptions.key` was known. */
  readonly isReplayed: Promise<boolean>;
  /** The state now, without waiting for anything. */
  current(): Promise<TurnNow>;
  /** Calls the observer with every event from now on, like an observer of RxJS. */
  subscribe(observer: EventObserver): { unsubscribe(): void };
  /** Ends the turn and all children that it waits for; resolves when the abort is stored. */
  abort(reason?: string): Promise<void>;
}

/** The use of model calls. */
export interface Spending {
  /** Calls that may have cost something, including retries and those of hooks and tools. */
  readonly calls: number;
  /** Tokens of the prompts. */
  readonly inputTokens: number;
  /** Tokens of the answers, reasoning included. */
  readonly outputTokens: number;
  /** Part of `inputTokens`. */
  readonly cachedInputTokens: number;
  /** Part of `inputTokens` that the provider wrote to its cache; not included in `cachedInputTokens`. */
  readonly cacheWriteTokens: number;
  /** Part of `outputTokens`. */
  readonly reasoningTokens: number;
  /** Dollars; null when the price of a call is not known. */
  readonly cost: number | null;
  /** Calls whose tokens were estimated here, because the provider sent no counts. */
  readonly estimatedCalls: number;
  /** Calls that count with their whole reservation, because their outcome is not known. */
  readonly unconfirmedCalls: number;
}

/** The spending of one turn. */
export interface TurnSpending {
  /** The agent's own calls. */
  readonly own: Spending;
  /** Including all subagents below it, up to the turn's end. */
  readonly tree: Spending;
  /** `tree` by the name of the requested model. */
  readonly byModel: Readonly<Record<string, Spending>>;
}
