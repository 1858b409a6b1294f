import { type Account, type Forecast, type ForecastAt, forecastsOf, isNewForecast } from "../../budget/index.ts";
import { type AccountHolder, agentOfAccount, type EventSource, forecastText } from "../../state/index.ts";

/** A commit that has changed accounts. */
export interface ForecastCommit {
  readonly turnId: string;
  readonly step: number;
  /** The time of its last entry, in milliseconds since the epoch. */
  readonly at: number;
  readonly accounts: readonly Account[];
}

export interface ForecastFigures extends Forecast {
  readonly accountId: string;
  readonly message: string;
}

/** More limits than followed trees of one process have at once; the oldest is forgotten, and may be told again. */
const MOST_LIMITS = 1_000;

/**
 * The forecasts that followers were told.
 * Owns: the last forecast of each limit, by tree. Does not own: the accounts.
 *
 * Invariants
 * 1. A forecast is a function of the account and the commit's time, so it equals the one of \`troupe forecast\` at that time.
 * 2. \`maxSteps\` and \`maxToolCalls\` have none: they bound the loop of one agent, and each definition has a default.
 */
export class ToldForecasts {
  readonly #last = new Map<string, ForecastAt>();

  /** The forecasts that tell something new. */
  next({ agentId, rootAgentId, definition }: EventSource, { at, accounts }: ForecastCommit): ForecastFigures[] {
    return accounts.flatMap((account) =>
      forecastsOf(account, at).flatMap((forecast) => {
        const { limit } = forecast;
        if (limit === "maxSteps" || limit === "maxToolCalls") return [];
        const key = JSON.stringify([rootAgentId, account.id, limit]);
        if (!isNewForecast(this.#last.get(key), { forecast, at })) return [];
        this.#note(key, { forecast, at });
        const isOwn = agentOfAccount(account.id) === agentId;
        const holder: AccountHolder | undefined = isOwn ? { name: definition.name, kinship: "own" } : undefined;
        return [{ ...forecast, accountId: account.id, message: forecastText(account.id, forecast, holder) }];
      }),
    );
  }

  #note(key: string, told: ForecastAt): void {
    this.#last.delete(key);
    this.#last.set(key, told);
    const [oldest] = this.#last.keys();
    if (this.#last.size > MOST_LIMITS && oldest !== undefined) this.#last.delete(oldest);
  }
}
