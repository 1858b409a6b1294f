import {
  type Account,
  costBound,
  costOf,
  type LimitName,
  MINIMUM_OUTPUT_TOKENS,
  type Price,
  type Settlement,
} from "../budget/index.ts";
import type { PricedModel } from "../model/index.ts";
import type { Entry, EntryOf } from "../state/index.ts";
import type { RecordedAgent, Recording } from "./recording.ts";

/** Something that was paid for: a model call, or what a tool billed. */
export interface RecordedCharge {
  readonly model: PricedModel;
  /** Without `usage` the reserved tokens, as input. */
  readonly usage: {
    readonly inputTokens: number;
    readonly outputTokens: number;
    readonly cachedInputTokens?: number | undefined;
    readonly cacheWriteTokens?: number | undefined;
    readonly longCacheWriteTokens?: number | undefined;
  };
  /** `null` if its price was unknown. */
  readonly costMicros: number | null;
  /** The price that was known when the call was made. */
  readonly price: Price | null;
  /** Whether a tool reported it, so that no model of an agent caused it. */
  readonly isBilled: boolean;
}

/** One ended turn of a root agent, with all that its subagents did for it. */
export interface RecordedTurn {
  readonly rootAgentId: string;
  readonly turnId: string;
  readonly outcome: EntryOf<"turn.ended">["outcome"];
  readonly stopReason: EntryOf<"turn.ended">["stopReason"];
  /** The limit that stopped the turn. */
  readonly limit: LimitName | undefined;
  /** The hashes of the definitions that ran, by name: several if one changed during the turn. */
  readonly definitions: ReadonlyMap<string, ReadonlySet<string>>;
  /** The hash of the root's definition when the turn began. */
  readonly hash: string;
  readonly used: Account["used"];
  readonly charges: readonly RecordedCharge[];
  /** The tokens of the first prompt, as the provider counted them. */
  readonly firstPromptTokens: number | undefined;
}

/** Ended turns of the root, and the number of its open ones. */
export interface RecordedTurns {
  readonly ended: readonly RecordedTurn[];
  readonly open: number;
}

interface OpenTurn {
  readonly started: EntryOf<"turn.started">;
  readonly definitions: Map<string, Set<string>>;
  readonly charges: RecordedCharge[];
  firstPromptTokens: number | undefined;
  end: EntryOf<"turn.ended"> | undefined;
}

/** The turns of the root agent, each with the charges of its subagents, in the order in which they were settled. */
export function recordedTurnsOf(recording: Recording): RecordedTurns {
  const turns = new Map<string, OpenTurn>();
  /** Of the turns of all agents. */
  const contexts = new Map<string, TurnContext>();
  for (const { agentId, entries } of recording.tree.rows) {
    const agent = recording.agent(agentId);
    if (!agent) continue;
    for (const entry of entries) {
      if (!("turnId" in entry) || entry.turnId === undefined) continue;
      if (entry.type === "turn.started") {
        contexts.set(`${agentId}:${entry.turnId}`, { agent, provider: entry.model.provider, price: null });
        if (agentId === recording.rootAgentId) turns.set(entry.turnId, openTurn(entry));
      }
      const turn = turns.get(rootTurnOf(recording, agent, entry.turnId) ?? "");
      const context = contexts.get(`${agentId}:${entry.turnId}`);
      if (turn && context) note(turn, entry, context);
    }
  }
  const all = [...turns.values()];
  const accounts = new Map(recording.tree.accounts.map((account) => [account.id, account]));
  return {
    ended: all.flatMap((turn) => endedTurn(recording.rootAgentId, turn, accounts.get(turn.started.accountId)) ?? []),
    open: all.filter(({ end }) => !end).length,
  };
}

/** What the entries of a turn that settle a call lack. */
interface TurnContext {
  readonly agent: RecordedAgent;
  provider: string;
  /** The price of the newest call. */
  price: Price | null;
}

function openTurn(started: EntryOf<"turn.started">): OpenTurn {
  return { started, definitions: new Map(), charges: [], firstPromptTokens: undefined, end: undefined };
}

/** The turn of the root in which an agent's turn was started; a background child can still run after that turn. */
function rootTurnOf(recording: Recording, agent: RecordedAgent, turnId: string): string | undefined {
  let [at, turn]: [RecordedAgent, string | null] = [agent, turnId];
  while (at.record.parentAgentId !== null) {
    turn = at.record.parentTurnId;
    const parent = recording.agent(at.record.parentAgentId);
    if (!parent || turn === null) return undefined;
    at = parent;
  }
  return turn ?? undefined;
}

function note(turn: OpenTurn, entry: Entry, context: TurnContext): void {
  const isRoot = context.agent.record.parentAgentId === null;
  if (entry.type === "model.requested" || entry.type === "generate.requested") {
    context.price = entry.ask.price;
    context.provider = entry.provider ?? context.provider;
  }
  if (entry.type === "turn.started") {
    const { name, hash } = entry.definition;
    turn.definitions.set(name, (turn.definitions.get(name) ?? new Set()).add(hash));
  }
  if (entry.type === "turn.ended" && isRoot) turn.end = entry;
  if (entry.type === "model.responded" && isRoot) turn.firstPromptTokens ??= entry.usage.inputTokens;
  if (!("settlement" in entry) || !entry.settlement) return;
  const { settlement } = entry;
  turn.charges.push({
    model: { name: settlement.model ?? settlement.reservation.model, provider: context.provider },
    usage: settlement.usage ?? { inputTokens: settlement.tokens, outputTokens: 0 },
    costMicros: knownCost(settlement),
    price: context.price,
    isBilled: entry.type === "tool.billed",
  });
}

function knownCost({ costMicros, reservation, tokens }: Settlement): number | null {
  return reservation.isUnpriced === true && tokens > 0 ? null : costMicros;
}

function endedTurn(rootAgentId: string, turn: OpenTurn, account: Account | undefined): RecordedTurn | undefined {
  const { started, end } = turn;
  if (!end || !account) return undefined;
  return {
    rootAgentId,
    turnId: started.turnId,
    outcome: end.outcome,
    stopReason: end.stopReason,
    limit: end.signal?.limit,
    definitions: turn.definitions,
    hash: started.definition.hash,
    used: account.used,
    charges: turn.charges,
    firstPromptTokens: turn.firstPromptTokens,
  };
}

/** The price of a call; `null` if it is unknown. */
export type PriceOfCharge = (charge: RecordedCharge) => Price | null;

/** The cost of the charges, and the smallest limits that would have let all of them pass. */
export interface Money {
  /** `null` if a price is unknown. */
  readonly costMicros: number | null;
  /**
   * Often more than the cost: a call is refused if its prompt, none of it cached, and 256 tokens of output do not fit.
   */
  readonly neededMicros: number | null;
}

/**
 * @param prices Replaces the recorded costs; without it the recorded ones count.
 */
export function moneyOf(charges: readonly RecordedCharge[], prices: PriceOfCharge): Money {
  let used = 0;
  let needed = 0;
  for (const charge of charges) {
    const price = charge.isBilled ? null : prices(charge);
    const cost = price ? costOf(charge.usage, price) : charge.costMicros;
    if (cost === null) return { costMicros: null, neededMicros: null };
    const bound = charge.isBilled ? null : (price ?? charge.price);
    const { inputTokens, outputTokens } = asked(charge);
    needed = Math.max(needed, used + Math.max(cost, bound ? costBound(bound, inputTokens, outputTokens) : 0));
    used += cost;
  }
  return { costMicros: used, neededMicros: needed };
}

/** The smallest limit on tokens that would have let all calls pass. */
export function neededTokens(charges: readonly RecordedCharge[]): number {
  let used = 0;
  let needed = 0;
  for (const charge of charges) {
    const { inputTokens, outputTokens } = charge.isBilled ? charge.usage : asked(charge);
    needed = Math.max(needed, used + inputTokens + outputTokens);
    used += charge.usage.inputTokens + charge.usage.outputTokens;
  }
  return needed;
}

/** What a call must be able to reserve: the minimum output, if it generated less. */
function asked({ usage }: RecordedCharge): RecordedCharge["usage"] {
  return { ...usage, outputTokens: Math.max(usage.outputTokens, MINIMUM_OUTPUT_TOKENS) };
}
