import { type AgentDefinition, collectDefinitions, definitionRule } from "../agents/index.ts";
import {
  anyRule,
  nameRule,
  optionsOf,
  optionsRule,
  type OptionsSchema,
  reading,
  systemClock,
  textRule,
  wholeNumberRule,
} from "../base/index.ts";
import { type LimitName, limitNames, type Price } from "../budget/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { calledModels, checkedPrice, PriceBook, type PricedModel, type PriceTable } from "../model/index.ts";
import { storesRule } from "../runtime/index.ts";
import { type AgentRecord, DEFAULT_TENANT } from "../state/index.ts";
import { formatAgentCursor, type Stores } from "../stores/index.ts";
import { type Distribution, distributionOf, type Share, shareOf } from "./distribution.ts";
import { firstPromptTokens } from "./first-prompt.ts";
import {
  moneyOf,
  neededTokens,
  type PriceOfCharge,
  type RecordedCharge,
  type RecordedTurn,
  recordedTurnsOf,
} from "./recorded-turns.ts";
import { readRecording } from "./recording.ts";

/** Options of `estimate()`. */
export interface EstimateOptions {
  /** The definition whose turns are forecast. Only recorded turns of root agents with its name count. */
  readonly agent: AgentDefinition;
  /** The input of the turn, whose first prompt is counted. Default: it is not counted. */
  readonly input?: string | undefined;
  /** How many of the newest ended turns count. Default 200. */
  readonly last?: number | undefined;
  /** The recorded tokens at the price of another model, for every model call of the tree. Default: none. */
  readonly whatIf?: WhatIf | undefined;
  /** Prices for calls that were recorded without one, as in `createRuntime({ prices })`. Default: those of the public list. */
  readonly prices?: PriceTable | undefined;
  /** Default: the tenant of runtimes without one. */
  readonly tenant?: string | undefined;
}

/** Another model for a forecast. */
export interface WhatIf {
  /** `name` at the provider of the agent's model, or `provider/name`. */
  readonly model: string;
  /** Its price. Default: from `prices` or the public list. */
  readonly price?: Price | undefined;
}

/** Figures of recorded turns, each with all work of subagents. */
export interface TurnFigures {
  /** Number of turns. */
  readonly runs: number;
  /** How they ended. */
  readonly outcomes: Readonly<Record<"completed" | "stopped" | "failed", number>>;
  /** Model calls of the agent itself. `undefined`, here and below, without turns. */
  readonly steps: Distribution | undefined;
  /** Model calls of the tree. */
  readonly treeSteps: Distribution | undefined;
  /** Tool calls of the tree. */
  readonly treeToolCalls: Distribution | undefined;
  /** Input tokens, with those read from the cache. */
  readonly inputTokens: Distribution | undefined;
  /** Input tokens that the provider read from its cache. */
  readonly cachedInputTokens: Distribution | undefined;
  /** Output tokens, with reasoning. */
  readonly outputTokens: Distribution | undefined;
  /** Input and output tokens. */
  readonly tokens: Distribution | undefined;
  /** Millionths of a dollar, of the turns whose cost is known. */
  readonly costMicros: Distribution | undefined;
  /** Turns whose cost is unknown, because a model has no known price. */
  readonly unpriced: number;
  /** Turns with calls that were recorded without a price, and got one of today. */
  readonly pricedToday: number;
  /** Milliseconds of work; waiting for people does not count. */
  readonly activeMs: Distribution | undefined;
  /** Turns that a limit of a budget stopped. */
  readonly hitBudget: Share;
  /** How many of them each limit stopped. */
  readonly byLimit: Readonly<Partial<Record<LimitName, number>>>;
}

/** Recorded turns with other definitions than those of today. */
export interface OtherTurns extends TurnFigures {
  /** The hash of the root agent's definition when the turn began. */
  readonly hash: string;
  /** The names of the definitions that differ, subagents included. */
  readonly changed: readonly string[];
}

/** A limit, and the recorded turns that it would have stopped. */
export interface SuggestedLimit {
  /** The name of the limit in `budget`. */
  readonly limit: "maxSteps" | "maxTokens" | "maxCost" | "maxSeconds";
  /** In the unit of `budget`: calls, tokens, dollars, seconds. Rounded up to two digits. */
  readonly value: number;
  /** As an option of the commands: `--max-cost 0.05`. */
  readonly flag: string;
  /** Recorded turns that needed more. */
  readonly stops: Share;
}

/** The other model of a forecast. */
export interface SupposedModel {
  /** The provider whose price counts. */
  readonly provider: string;
  /** The model's name there. */
  readonly model: string;
  /** Tokens that were read from a cache cost as much as others if it has no `cachedInputPerMillion`. */
  readonly price: Price;
}

/** The result of `estimate()`. */
export interface Estimate extends TurnFigures {
  /** The name of the definition. */
  readonly agentName: string;
  /** The hash of today's definition. */
  readonly hash: string;
  /** Whether there are fewer than 30 turns, so that the figures are rough. */
  readonly isRough: boolean;
  /** Turns that do not count: still open, or aborted. */
  readonly leftOut: { readonly open: number; readonly aborted: number };
  /** The prompt of the first model call; `undefined` without `input`. */
  readonly prompt:
    | {
        /** Tokens for `input`, as the adapter of the model counts them. */
        readonly tokens: number;
        /** Tokens of the recorded turns' first prompts, which contain earlier turns of their conversations. */
        readonly recorded: Distribution | undefined;
      }
    | undefined;
  /** The recorded tokens at another price; `undefined` without `whatIf`. */
  readonly whatIf: (SupposedModel & { readonly costMicros: Distribution | undefined }) | undefined;
  /** Limits for such turns, per limit the loosest first. */
  readonly budgets: readonly SuggestedLimit[];
  /** Turns with other definitions, which count in no figure above, newest first. */
  readonly others: readonly OtherTurns[];
  /** Runs that cannot be read, with the reason. */
  readonly unreadable: readonly { readonly rootAgentId: string; readonly reason: string }[];
}

const estimateSchema: OptionsSchema<EstimateOptions> = {
  rules: {
    agent: definitionRule,
    input: nameRule,
    last: wholeNumberRule(1),
    whatIf: optionsRule<WhatIf>({
      rules: { model: nameRule, price: (value, where) => checkedPrice(where, value) },
      needed: ["model"],
      instead: { name: "model", prices: "price" },
    }),
    prices: anyRule,
    tenant: textRule,
  },
  needed: ["agent"],
  instead: { agents: "agent", definition: "agent", model: "whatIf: { model }", limit: "last", price: "prices" },
};

const DEFAULT_LAST = 200;
/** With fewer turns the figures are rough. */
const ROUGH_BELOW = 30;

/**
 * Forecasts what one turn of an agent will use, from its newest recorded turns in these stores: steps, tokens, money and time with all subagents,
 * the share that a budget stopped, and limits that fit. Turns of other definitions are listed apart. Calls no model, runs no tool and no hook,
 * and writes nothing.
 *
 * @throws InvalidInputError for invalid options, a model without a known price, and an input whose prompt cannot be built.
 */
export async function estimate(stores: Stores, given: EstimateOptions): Promise<Estimate> {
  reading("estimate(): stores", () => storesRule(stores, "estimate(): stores"));
  const options = optionsOf<EstimateOptions>(given, "estimate()", estimateSchema);
  const { agent, input, last = DEFAULT_LAST, tenant = DEFAULT_TENANT } = options;
  const prices = new Prices(reading("estimate(): prices", () => new PriceBook(options.prices ?? {})));
  const supposed = options.whatIf && (await prices.supposed(options.whatIf, agent));
  const tokens = input === undefined ? undefined : await firstPromptTokens(agent, input);
  const { turns, leftOut, unreadable } = await newestTurns(stores, { name: agent.name, tenant, last });
  await prices.look(turns.flatMap(({ charges }) => charges));
  const today = new Map([...collectDefinitions([agent])].map(([name, { ref }]) => [name, ref.hash]));
  const current = turns.filter((turn) => changedIn(turn, today).length === 0);
  const figures = figuresOf(current, prices.recorded);
  return {
    agentName: agent.name,
    hash: agent.ref.hash,
    ...figures,
    isRough: current.length < ROUGH_BELOW,
    leftOut,
    prompt: tokens === undefined ? undefined : { tokens, recorded: distributionOf(firstPromptsOf(current)) },
    whatIf: supposed && {
      ...supposed,
      costMicros: distributionOf(knownCosts(current, () => supposed.price)),
    },
    budgets: budgetsFor(current, supposed ? () => supposed.price : prices.recorded),
    others: othersOf(turns, today, prices.recorded),
    unreadable,
  };
}

interface NewestTurns {
  readonly turns: readonly RecordedTurn[];
  readonly leftOut: Estimate["leftOut"];
  readonly unreadable: Estimate["unreadable"];
}

/** How many agents are listed at once. */
const PAGE = 200;

async function newestTurns(
  stores: Stores,
  { name, tenant, last }: { readonly name: string; readonly tenant: string; readonly last: number },
): Promise<NewestTurns> {
  const turns: RecordedTurn[] = [];
  const unreadable: Estimate["unreadable"][number][] = [];
  const leftOut = { open: 0, aborted: 0 };
  let after: string | undefined;
  do {
    const page: AgentRecord[] = await stores.listAgents({
      tenant,
      rootsOnly: true,
      order: "newest",
      limit: PAGE,
      ...(after === undefined ? {} : { after }),
    });
    for (const { agentId, definition, forkedFrom, stubs } of page) {
      // A fork repeats turns of its origin, whose tools may not have run in it.
      if (definition.name !== name || forkedFrom || stubs || turns.length >= last) continue;
      try {
        const { ended, open } = recordedTurnsOf(await readRecording({ stores, agentId, tenant }));
        const whole = ended.filter(({ stopReason }) => stopReason !== "user_requested");
        leftOut.open += open;
        leftOut.aborted += ended.length - whole.length;
        turns.push(...whole.toReversed());
      } catch (error) {
        unreadable.push({ rootAgentId: agentId, reason: error instanceof Error ? error.message : String(error) });
      }
    }
    const end = page.at(-1);
    after = page.length === PAGE && end ? formatAgentCursor(end) : undefined;
  } while (after !== undefined && turns.length < last);
  return { turns: turns.slice(0, last), leftOut, unreadable };
}

/** The names of the definitions under which a turn ran, and that are others today. */
function changedIn({ definitions }: RecordedTurn, today: ReadonlyMap<string, string>): string[] {
  return [...definitions].flatMap(([name, hashes]) => {
    const hash = today.get(name);
    // A subagent that code spawns is not part of the definition, so it cannot be compared.
    return hash === undefined || (hashes.size === 1 && hashes.has(hash)) ? [] : [name];
  });
}

function othersOf(
  turns: readonly RecordedTurn[],
  today: ReadonlyMap<string, string>,
  prices: PriceOfCharge,
): OtherTurns[] {
  const changed = turns.filter((turn) => changedIn(turn, today).length > 0);
  const groups = Map.groupBy(changed, (turn) => JSON.stringify([turn.hash, changedIn(turn, today).toSorted()]));
  return [...groups].map(([key, members]) => {
    const [hash, names] = JSON.parse(key) as [string, string[]];
    return { hash, changed: names, ...figuresOf(members, prices) };
  });
}

function figuresOf(turns: readonly RecordedTurn[], prices: PriceOfCharge): TurnFigures {
  const used = (of: (turn: RecordedTurn) => number): Distribution | undefined => distributionOf(turns.map(of));
  const tokensOf = (of: (charge: RecordedCharge) => number): Distribution | undefined =>
    used(({ charges }) => charges.reduce((sum, charge) => sum + of(charge), 0));
  const costs = knownCosts(turns, prices);
  const outcomes = { completed: 0, stopped: 0, failed: 0 };
  const byLimit: Partial<Record<LimitName, number>> = {};
  for (const { outcome, limit } of turns) {
    outcomes[outcome] += 1;
    if (limit !== undefined) byLimit[limit] = (byLimit[limit] ?? 0) + 1;
  }
  const limited = turns.filter(({ limit }) => limit !== undefined);
  return {
    runs: turns.length,
    outcomes,
    steps: used((turn) => turn.used.steps),
    treeSteps: used((turn) => turn.used.treeSteps),
    treeToolCalls: used((turn) => turn.used.treeToolCalls),
    inputTokens: tokensOf(({ usage }) => usage.inputTokens),
    cachedInputTokens: tokensOf(({ usage }) => usage.cachedInputTokens ?? 0),
    outputTokens: tokensOf(({ usage }) => usage.outputTokens),
    tokens: tokensOf(({ usage }) => usage.inputTokens + usage.outputTokens),
    costMicros: distributionOf(costs),
    unpriced: turns.length - costs.length,
    pricedToday: turns.filter(
      (turn) =>
        moneyOf(turn.charges, prices).costMicros !== null && turn.charges.some((one) => one.costMicros === null),
    ).length,
    activeMs: used((turn) => turn.used.activeMs),
    hitBudget: shareOf(limited.length, turns.length),
    byLimit: Object.fromEntries(limitNames.flatMap((name) => (byLimit[name] ? [[name, byLimit[name]]] : []))),
  };
}

function firstPromptsOf(turns: readonly RecordedTurn[]): number[] {
  return turns.flatMap(({ firstPromptTokens: first }) => first ?? []);
}

function knownCosts(turns: readonly RecordedTurn[], prices: PriceOfCharge): number[] {
  return turns.flatMap(({ charges }) => moneyOf(charges, prices).costMicros ?? []);
}

interface LimitForm {
  readonly limit: SuggestedLimit["limit"];
  readonly flag: string;
  /** The smallest amount, in the unit of the option, that lets a turn pass; `undefined` if it is unknown. */
  readonly needed: (turn: RecordedTurn, prices: PriceOfCharge) => number | undefined;
  /** Whether the option takes only whole numbers. */
  readonly isWhole: boolean;
}

const limitForms: readonly LimitForm[] = [
  { limit: "maxSteps", flag: "--max-steps", isWhole: true, needed: ({ used }) => used.steps },
  { limit: "maxTokens", flag: "--max-tokens", isWhole: true, needed: ({ charges }) => neededTokens(charges) },
  {
    limit: "maxCost",
    flag: "--max-cost",
    isWhole: false,
    needed: ({ charges }, prices) => {
      const { neededMicros } = moneyOf(charges, prices);
      return neededMicros === null ? undefined : neededMicros / 1_000_000;
    },
  },
  { limit: "maxSeconds", flag: "--max-seconds", isWhole: false, needed: ({ used }) => used.activeMs / 1_000 },
];

/** For each limit one that stops none of the recorded turns, and with enough turns one that stops a tenth of them. */
function budgetsFor(turns: readonly RecordedTurn[], prices: PriceOfCharge): SuggestedLimit[] {
  // What a stopped turn would have needed is unknown.
  const whole = turns.filter(({ limit }) => limit === undefined);
  return limitForms.flatMap((form) => {
    const needed = whole.flatMap((turn) => form.needed(turn, prices) ?? []);
    const spread = distributionOf(needed);
    if (!spread || spread.max <= 0) return [];
    const values = [spread.max, ...(spread.p90 ? [spread.p90.value] : [])].map((value) => roundedUp(value, form));
    return [...new Set(values)].map((value): SuggestedLimit => {
      const stopped = needed.filter((amount) => amount > value).length;
      return {
        limit: form.limit,
        value,
        flag: `${form.flag} ${decimal(value)}`,
        stops: shareOf(stopped, needed.length),
      };
    });
  });
}

/** Up to two digits: more would pretend a precision that recorded turns do not have. */
function roundedUp(value: number, { isWhole }: LimitForm): number {
  if (isWhole && value < 100) return Math.max(1, Math.ceil(value));
  const unit = 10 ** (Math.floor(Math.log10(value)) - 1);
  return Number((Math.ceil(Number((value / unit).toPrecision(12))) * unit).toPrecision(2));
}

/** Without an exponent, which the options do not take; up to nine decimals. */
function decimal(value: number): string {
  return value.toFixed(9).replace(/\.?0+$/, "");
}

/** The prices of recorded calls: those of their time, or for calls without one those of today. */
class Prices {
  readonly #book: PriceBook;
  readonly #known = new Map<string, Price | null>();

  constructor(book: PriceBook) {
    this.#book = book;
  }

  /** The price of today for a charge that was recorded without one; a recorded cost stays. */
  readonly recorded: PriceOfCharge = ({ model, costMicros }) =>
    costMicros === null ? (this.#known.get(keyOf(model)) ?? null) : null;

  async look(charges: readonly RecordedCharge[]): Promise<void> {
    for (const { model, costMicros } of charges) {
      const key = keyOf(model);
      if (costMicros === null && !this.#known.has(key)) this.#known.set(key, await this.#priceOf(model));
    }
  }

  async supposed({ model, price }: WhatIf, agent: AgentDefinition): Promise<SupposedModel> {
    const [own] = calledModels(agent.model);
    const slash = model.indexOf("/");
    const candidates = [
      { provider: own?.provider ?? agent.model.provider, name: model },
      ...(slash > 0 ? [{ provider: model.slice(0, slash), name: model.slice(slash + 1) }] : []),
    ];
    for (const candidate of candidates) {
      const found = price ?? (await this.#priceOf(candidate));
      if (found) return { provider: candidate.provider, model: candidate.name, price: found };
    }
    const tried = candidates.map(({ provider, name }) => `"${name}" of provider "${provider}"`).join(" or ");
    throw new InvalidInputError(
      `estimate(): whatIf: there is no known price of ${tried}; give it with whatIf: { price }, or name it as provider/name`,
    );
  }

  async #priceOf(model: PricedModel): Promise<Price | null> {
    return await this.#book.priceOf(model, true, systemClock.now());
  }
}

function keyOf({ provider, name }: PricedModel): string {
  return `${provider}/${name}`;
}
