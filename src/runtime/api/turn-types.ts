import type { Budget, LimitName } from "../../budget/index.ts";
import type {
  AgentRequest,
  CallSettings,
  Content,
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

/** Options of `agent.executeTurn()` besides the input. */
export interface TurnOptions {
  /** The actor of the turn, with credentials for its tools; credentials are never stored. Default: none. */
  readonly auth?: Auth | undefined;
  /**
   * Aborting it aborts the turn: with 0 steps before the first step, otherwise with the steps done so far.
   * Default: none.
   */
  readonly signal?: AbortSignal | undefined;
  /** Limits of this turn; each replaces the definition's limit of the same name. Default: the definition's. */
  readonly budget?: Budget | undefined;
  /**
   * What to do while another turn is open: `refuse` (default), `queue` behind it, `supersede`, which ends the open turn with a
   * result for each of its open calls, and then starts this one, or `steer`, which gives the input to the open turn as `agent.steer`
   * does. The handle is then that of the turn that has the input; the other options are used only if the input opens a turn.
   */
  readonly ifBusy?: "refuse" | "queue" | "supersede" | "steer" | undefined;
  /**
   * An idempotency key for the turn, so that the command can be sent again: 1 to 255 visible ASCII characters. The agent has one
   * turn per key, whichever process sends the command, also after the turn has ended. The same key with another input, actor,
   * budget, settings or client tools rejects with `TurnConflictError`, and so does the key of a decision (`Decide.key`). Root agents only.
   * Default: none.
   */
  readonly key?: string | undefined;
  /**
   * The parent span of the turn's span, in whichever process the turn runs: the W3C headers of a request, for instance. Default:
   * the span that is active at the call, while `traceToOpenTelemetry` is on in this process.
   */
  readonly trace?: TraceHeaders | undefined;
  /**
   * Tools for this turn only, which its caller executes: when the model calls one, the turn waits with a request of kind
   * `client`, and `decide` answers it. They are stored with the turn. Up to 128, with names different from the agent's own tools;
   * `parameters` is a JSON Schema of an object. Only for a definition with `clientTools: true`. Default: none.
   */
  readonly clientTools?:
    | readonly { readonly name: string; readonly description: string; readonly parameters: JsonObject }[]
    | undefined;
  /**
   * Settings of the turn's model calls: temperature, reasoning effort, stop sequences and others. They are stored with the turn, and
   * subagents have their own. Default: those of the definition.
   */
  readonly settings?: CallSettings | undefined;
}

/** Options of `agent.steer()` and `turn.steer()`. */
export interface SteerOptions extends Pick<TurnOptions, "auth" | "key"> {}

/**
 * Where an input went. `delivered`: into the turn, whose model call of `step` sees it. `queued`: it has opened the turn `turnId`, which
 * runs after the open one.
 */
export type SteerAnswer =
  | { readonly status: "delivered"; readonly turnId: string; readonly step: number }
  | { readonly status: "queued"; readonly turnId: string };

/** The limit that ended a turn, and the account that it belongs to. */
export interface LimitStop {
  /** The reason for programs: `tokens_limit`, `cost_limit` and so on. */
  readonly reason: StopReason;
  /** Name of the limit, as in `Budget`. */
  readonly limit: LimitName;
  /**
   * The agent that owns the account: the turn's own agent, or one above it. For an account above the root, the owner's id, or `tenant`.
   */
  readonly agentId: string;
  /** The account that has the limit. */
  readonly accountId: string;
  /**
   * Amount used, in the limit's unit: steps, tokens, micro-dollars, milliseconds or calls; for a deadline, times. `null` if
   * unknown.
   */
  readonly used: number | null;
  /** The limit itself, in the same unit; `null` if unknown. */
  readonly max: number | null;
  /** The same as a text: `lead, this turn: 50,000 of 50,000 tokens`. */
  readonly message: string;
  /** How to continue, as a text. */
  readonly wayOn: string;
}

/** The stored error and, in the process where the turn failed, the thrown error. */
interface TurnError extends StoredError {
  /** The thrown value with its stack; not enumerable. */
  readonly cause?: unknown;
  /** A description of the code that threw it; not enumerable. */
  readonly source?: string | undefined;
}

/** The outcome of a turn. `Output`: the type of its definition's `output` schema, `Json` without one. */
export interface TurnResult<Output = unknown> {
  /** The agent. */
  readonly agentId: string;
  /** The turn: the agent's id, `#` and its number. */
  readonly turnId: string;
  /** `completed`: the model has answered. `stopped`: something ended it early. `failed`: an error ended it. */
  readonly status: Extract<ExecutionStatus, "completed" | "stopped" | "failed">;
  /** The answer. For a stopped or failed turn its text so far, or a sentence that explains why it has none. */
  readonly text: string;
  /** The reason for the end, for programs; `stop` and `signal` have details. */
  readonly stopReason: StopReason;
  /** The cause of a stop; with the account if it was a limit. */
  readonly signal: StopSignal | null;
  /** The limit that stopped the turn; `null` if none did. */
  readonly stop: LimitStop | null;
  /**
   * The limit that allowed no further call, so that the model was asked for an answer without tools (`finalAnswer` of a budget);
   * `null` if the turn ended by itself.
   */
  readonly finalAnswer: LimitStop | null;
  /** Tokens of the agent's own model calls. */
  readonly usage: Usage;
  /** Dollars of the agent's own model calls; `null` if a price is unknown. */
  readonly cost: number | null;
  /** Spending of the agent itself and of its whole tree; the tree's spending also by model. */
  readonly spent: TurnSpending;
  /** Model calls with their tools, including the last one. */
  readonly steps: number;
  /** Calls of tools that ran. */
  readonly toolCalls: number;
  /**
   * The error that ended the turn; `null` unless it failed. In the process where the turn failed it also has the thrown error
   * with its stack (`cause`), and a description of the code that threw it (`source`: `the hook beforeLlm of "audit"`). Both are
   * never stored, and not enumerable: JSON and copies leave them out.
   */
  readonly error: TurnError | null;
  /** All errors, including those of tools. */
  readonly errors: readonly StoredError[];
  /** The validated answer, if the definition has an `output` schema and the turn completed. */
  readonly output?: Output | undefined;
  /** The turn with its steps, as described by `troupe/state`; `null` if it ended before this process read it. */
  readonly execution: ExecutionState | null;
}

/** The outcome of an ended turn, or a turn that waits for a decision or is paused. */
export type TurnRest<Output = unknown> = TurnResult<Output> | WaitingTurn;

/** The state of a turn at one moment. `step`: the last one that has started, 0 for none. */
export type TurnNow<Output = unknown> =
  | { readonly status: "queued" | "running"; readonly turnId: string; readonly step: number }
  | TurnRest<Output>;

/** An open turn at rest: paused, or waiting for decisions on its own or its subagents' requests. */
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

/** An unfinished value of this type: members and items that have not arrived are missing, and texts may be cut. */
export type DeepPartial<Value> = Value extends readonly (infer Item)[]
  ? readonly DeepPartial<Item>[]
  : Value extends object
    ? { readonly [Key in keyof Value]?: DeepPartial<Value[Key]> }
    : Value;

/**
 * One turn in progress: async-iterable and subscribable (RxJS `from` accepts it), not thenable. A turn that fails ends its stream
 * with `turn.failed`; only a refused command or a broken runtime rejects.
 */
export interface Turn<Output = unknown> extends AsyncIterable<TroupeEvent> {
  /** Known once the turn was accepted. Rejects if it was refused. */
  readonly id: Promise<string>;
  /** Resolves when the turn has ended. Rejects with `AgentBusyError` and similar errors if it was refused. */
  readonly result: Promise<TurnResult<Output>>;
  /**
   * Resolves when the turn has ended, and also when it waits: with the open requests, or as paused. The first read returns the
   * current state if the turn is at rest. The next read waits until the turn rests for another reason (other requests, another
   * pause) or has ended. A queued turn waits while its agent is paused, not while an earlier turn waits for a request.
   */
  readonly settled: Promise<TurnRest<Output>>;
  /** Whether the agent already had the turn when this handle requested it: `TurnOptions.key` was known. */
  readonly isReplayed: Promise<boolean>;
  /** The current state, without waiting. */
  current(): Promise<TurnNow>;
  /**
   * The turn's answer while it is written, for a definition with an `output` schema: each value replaces the one before. The values are
   * those of the events `output.delta` of this agent: not validated and without the schema's transforms. `result` has the validated one.
   */
  partialOutputs(): AsyncIterable<DeepPartial<Output>>;
  /** Calls the observer with every further event, like an observer of RxJS. */
  subscribe(observer: EventObserver): { unsubscribe(): void };
  /**
   * Gives the turn another input while it runs: its next model call sees it, and running tools finish first. If the turn makes no further
   * model call, the input opens the next turn. Resolves when the input is part of a turn; rejects as `executeTurn` does. A `key` makes
   * the command repeatable: the same key has the same answer, and another input under it rejects with `TurnConflictError`.
   */
  steer(input: Content, options?: SteerOptions): Promise<SteerAnswer>;
  /** Ends the turn and all children that it waits for; resolves when the abort is stored. */
  abort(reason?: string): Promise<void>;
}

/** The usage of model calls. */
export interface Spending {
  /** Calls that may have been billed, including retries and those of hooks and tools. */
  readonly calls: number;
  /** Tokens of the prompts. */
  readonly inputTokens: number;
  /** Tokens of the answers, including reasoning. */
  readonly outputTokens: number;
  /** Included in `inputTokens`. */
  readonly cachedInputTokens: number;
  /** Included in `inputTokens`: tokens that the provider wrote to its cache; not included in `cachedInputTokens`. */
  readonly cacheWriteTokens: number;
  /** Included in `outputTokens`. */
  readonly reasoningTokens: number;
  /** Dollars; `null` if the price of a call is unknown. */
  readonly cost: number | null;
  /** Calls whose tokens were estimated here, because the provider sent no counts. */
  readonly estimatedCalls: number;
  /** Calls that count with their whole reservation, because their outcome is unknown. */
  readonly unconfirmedCalls: number;
}

/** The spending of one turn. */
export interface TurnSpending {
  /** The agent's own calls. */
  readonly own: Spending;
  /** Including all subagents, up to the turn's end. */
  readonly tree: Spending;
  /** The spending of `tree` by the name of the requested model. */
  readonly byModel: Readonly<Record<string, Spending>>;
}
