import {
  type Account,
  addModelUse,
  type ModelUse,
  modelUseOf,
  noModelUse,
  totalUse,
  type UseByModel,
  type Budget,
  type LimitName,
} from "../../budget/index.ts";
import type {
  Entry,
  AgentRequest,
  ExecutionState,
  ExecutionStatus,
  Json,
  StopReason,
  StopSignal,
  StoredError,
  TroupeEvent,
  Usage,
} from "../../state/index.ts";
import type { Observer } from "xstate";
import type { TraceHeaders } from "../../base/index.ts";
import type { Auth } from "../../tools/index.ts";

export interface TurnOptions {
  readonly auth?: Auth | undefined;
  /** Aborting it aborts the turn: before its first step it ends with 0 steps, later with those it has done (row S12). */
  readonly signal?: AbortSignal | undefined;
  /** Limits of this turn; they take the place of the definition's, name by name. */
  readonly budget?: Budget | undefined;
  /**
   * What to do while another turn is open: be refused (default), wait in line, or take its place: `supersede` ends the open
   * turn, whose open calls get results that say so, and this one follows.
   */
  readonly ifBusy?: "refuse" | "queue" | "supersede" | undefined;
  /**
   * The span under which the turn's own comes, in whichever process it runs: the W3C headers of a request, for instance.
   * Default: the span that is active where the turn is asked for, while `traceToOpenTelemetry` is on in this process.
   */
  readonly trace?: TraceHeaders | undefined;
}

/** A limit that ended a turn, and whose it is. */
export interface LimitStop {
  readonly reason: StopReason;
  readonly limit: LimitName;
  /** The agent whose account it is: the turn's own, or one above it. */
  readonly agentId: string;
  readonly accountId: string;
  /** In the limit's own unit: steps, tokens, micro-dollars, milliseconds, calls; for a deadline moments. Null: not known. */
  readonly used: number | null;
  readonly max: number | null;
  /** The same in words: `lead, this turn: 50,000 of 50,000 tokens`. */
  readonly message: string;
  /** What can be done to go on, in words. */
  readonly wayOn: string;
}

/** How a turn ended. */
export interface TurnResult {
  readonly agentId: string;
  readonly turnId: string;
  readonly status: Extract<ExecutionStatus, "completed" | "stopped" | "failed">;
  /** The answer; for a stopped turn what there was, or a plain sentence that says so. */
  readonly text: string;
  readonly stopReason: StopReason;
  /** What stopped it, naming the account where a limit did. */
  readonly signal: StopSignal | null;
  /** The limit that stopped it; null where none did. */
  readonly stop: LimitStop | null;
  /**
   * The limit that left no further call, so that an answer was asked for and no tool could be called (`finalAnswer` of a budget); null
   * where the turn came to its end by itself.
   */
  readonly finalAnswer: LimitStop | null;
  /** Tokens of the agent's own model calls. */
  readonly usage: Usage;
  /** Dollars of the agent's own model calls; null when a price is not known. */
  readonly cost: number | null;
  /** What it spent: the agent's own part, that of its whole tree, and the latter by model. */
  readonly spent: TurnSpending;
  readonly steps: number;
  readonly toolCalls: number;
  readonly error: StoredError | null;
  /** All errors, those of tools included. */
  readonly errors: readonly StoredError[];
  /** The checked answer, where the definition has an `output` schema and the turn completed. */
  readonly output?: Json | undefined;
  /** The turn as rows S see it; null when it ended before this process looked. */
  readonly execution: ExecutionState | null;
}

/** How a turn came to rest: ended, or waiting for somebody. */
export type TurnRest = TurnResult | WaitingTurn;

/** A turn at rest that is still open: paused, or with requests that somebody has to decide, its subagents' included. */
export type WaitingTurn =
  | { readonly status: "waiting"; readonly turnId: string; readonly reason: "paused" }
  | {
      readonly status: "waiting";
      readonly turnId: string;
      readonly reason: "request";
      readonly requests: readonly AgentRequest[];
    };

export type EventObserver = Partial<Observer<TroupeEvent>> | ((event: TroupeEvent) => void);

/**
 * One turn under way: async-iterable and subscribable (RxJS `from` takes it), not thenable. A turn that fails ends its
 * stream with `turn.failed`; only a refused command or a broken runtime rejects.
 */
export interface Turn extends AsyncIterable<TroupeEvent> {
  /** Known once the turn was accepted. Rejects when it was refused. */
  readonly id: Promise<string>;
  /** Settles when the turn has ended. Rejects with `AgentBusyError` and the like when it was refused. */
  readonly result: Promise<TurnResult>;
  /**
   * Settles also when the turn waits. Each read answers for now: with the requests that are open now, or, while something
   * works, when it comes to rest again.
   */
  readonly settled: Promise<TurnRest>;
  subscribe(observer: EventObserver): { unsubscribe(): void };
  /** Ends the turn and all children that it awaits; resolves when the wish is durable. */
  abort(reason?: string): Promise<void>;
}

/** What model calls have used. */
export interface Spending {
  /** Calls that may have cost something: retries and those of hooks and tools among them. */
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Part of `inputTokens`. */
  readonly cachedInputTokens: number;
  /** Part of `inputTokens` that the provider wrote to its cache; not among the cached. */
  readonly cacheWriteTokens: number;
  /** Part of `outputTokens`. */
  readonly reasoningTokens: number;
  /** Dollars; null when the price of a call is not known. */
  readonly cost: number | null;
  /** Calls whose tokens were counted here, because the provider sent none. */
  readonly estimatedCalls: number;
  /** Calls that count at all they had reserved, because nobody knows what became of them. */
  readonly unconfirmedCalls: number;
}

/** What one turn has spent. */
export interface TurnSpending {
  /** Of the agent's own calls. */
  readonly own: Spending;
  /** With those of all subagents below it, up to the turn's end. */
  readonly tree: Spending;
  /** The same by the name of the model that was asked for. */
  readonly byModel: Readonly<Record<string, Spending>>;
}

/** The spending of a turn: its own part from its entries, the whole from its account. */
export function turnSpending(entries: readonly Entry[], account: Account | undefined): TurnSpending {
  const own = ownUse(entries);
  const tree = account?.models ?? own;
  return {
    own: spendingOf(totalUse(own)),
    tree: spendingOf(totalUse(tree)),
    byModel: Object.fromEntries(Object.entries(tree).map(([model, use]) => [model, spendingOf(use)])),
  };
}

/** A model's use as it is shown. */
export function spendingOf({ costMicros, unpricedCalls, ...use }: ModelUse): Spending {
  return { ...use, cost: unpricedCalls > 0 ? null : costMicros / 1_000_000 };
}

/** What settled calls of these entries have used. */
export function ownUse(entries: readonly Entry[]): UseByModel {
  const models = new Map<string, ModelUse>();
  for (const entry of entries) {
    const settlement = "settlement" in entry ? entry.settlement : null;
    const use = settlement && modelUseOf(settlement);
    if (!settlement || !use) continue;
    const { model } = settlement.reservation;
    models.set(model, addModelUse(models.get(model) ?? noModelUse, use));
  }
  return Object.fromEntries(models);
}
