import {
  anyRule,
  type OptionRule,
  optionsRule,
  type OptionsSchema,
  textRule,
  wholeNumberRule,
} from "../../base/index.ts";
import { type Limits, limitsOf, type OuterWindow, outerWindows } from "../../budget/index.ts";
import { InvalidInputError } from "../../errors/index.ts";

/** The limits of one account above the roots. An absent one is unlimited; 0 allows nothing. */
export interface AccountLimits {
  /** Steps of all agents. Default: none. */
  readonly maxSteps?: number | undefined;
  /** Input and output tokens together. Default: none. */
  readonly maxTokens?: number | undefined;
  /** Dollars. Default: none. */
  readonly maxCost?: number | undefined;
  /** Tool calls of all agents. Default: none. */
  readonly maxToolCalls?: number | undefined;
  /** At a limit on steps, tokens or cost, asks a person to add to the account, as `askAtLimit` of a budget does. Default false. */
  readonly askAtLimit?: boolean | undefined;
}

/** The limits of an owner or a tenant, by window. A window that is left out has no account. */
export interface AccountWindows {
  /** From each full minute of UTC. */
  readonly perMinute?: AccountLimits | undefined;
  /** From each full hour of UTC. */
  readonly perHour?: AccountLimits | undefined;
  /** From each midnight of the time zone. */
  readonly perDay?: AccountLimits | undefined;
  /** From the first of each month in the time zone. */
  readonly perMonth?: AccountLimits | undefined;
  /** For ever. */
  readonly total?: AccountLimits | undefined;
}

/** Budgets above the roots: what all agents of an owner, and all agents of the tenant, may spend together. */
export interface AccountsOptions {
  /** The limits of the whole tenant. Default: none. */
  readonly tenant?: AccountWindows | undefined;
  /**
   * The limits of each owner (`ownerId` of its agents), the same for all or by owner. The function must return at once; `undefined` sets
   * no limits. Agents without an owner only count on the tenant. Default: none.
   */
  readonly owner?: AccountWindows | ((ownerId: string) => AccountWindows | undefined) | undefined;
  /** The time zone of days and months, for instance `Europe/Berlin`. Default `UTC`. */
  readonly timeZone?: string | undefined;
  /**
   * Counts up when limits are raised: the limits of the highest revision hold in all processes at once. Within one revision the strictest
   * limits that any process has hold until the account renews. Default 0.
   */
  readonly revision?: number | undefined;
}

const limitsShape = optionsRule<AccountLimits>({
  rules: { maxSteps: anyRule, maxTokens: anyRule, maxCost: anyRule, maxToolCalls: anyRule, askAtLimit: anyRule },
  instead: {
    cost: "maxCost",
    costUsd: "maxCost",
    tokens: "maxTokens",
    maxTreeSteps: "maxSteps",
    maxTreeToolCalls: "maxToolCalls",
  },
});

/** The limits as stored: steps and tool calls of all agents are those of trees. Throws `InvalidInputError`. */
export function accountLimitsOf(given: unknown, where: string): Limits {
  const { maxSteps, maxToolCalls, maxTokens, maxCost, askAtLimit } = limitsShape(given ?? null, where) as AccountLimits;
  try {
    return limitsOf({ maxTokens, maxCost, maxTreeSteps: maxSteps, maxTreeToolCalls: maxToolCalls, askAtLimit });
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    const message = error.message.replace(
      /^budget\.(?:maxTree)?/,
      (start) => `${where}.${start === "budget." ? "" : "max"}`,
    );
    throw new InvalidInputError(message, { cause: error });
  }
}

const limitsRule: OptionRule = (value, where) => {
  const limits = limitsShape(value, where);
  accountLimitsOf(limits, where);
  return limits;
};

const windowsRule = optionsRule<AccountWindows>({
  rules: { perMinute: limitsRule, perHour: limitsRule, perDay: limitsRule, perMonth: limitsRule, total: limitsRule },
  instead: { daily: "perDay", monthly: "perMonth", hourly: "perHour", lifetime: "total" },
});

/** The limits of one owner or tenant, with the windows that it has. */
export type WindowLimits = ReadonlyMap<OuterWindow, Limits>;

/** Throws `InvalidInputError` for anything but windows with limits. */
export function windowLimitsOf(given: unknown, where: string): WindowLimits {
  const windows = windowsRule(given ?? null, where) as AccountWindows;
  return new Map(
    outerWindows.flatMap((window) => {
      const limits = windows[window];
      return limits === undefined ? [] : [[window, accountLimitsOf(limits, `${where}.${window}`)] as const];
    }),
  );
}

const ownerRule: OptionRule = (value, where) => (typeof value === "function" ? value : windowsRule(value, where));

const timeZoneRule: OptionRule = (value, where) => {
  const zone = textRule(value, where) as string;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone;
  } catch {
    throw new InvalidInputError(
      `${where} is ${JSON.stringify(zone.slice(0, 64))}; expected a time zone such as "UTC" or "Europe/Berlin"`,
    );
  }
};

const accountsOptionsSchema: OptionsSchema<AccountsOptions> = {
  rules: {
    tenant: windowsRule,
    owner: ownerRule,
    timeZone: timeZoneRule,
    revision: wholeNumberRule(0, Number.MAX_SAFE_INTEGER),
  },
  instead: { timezone: "timeZone", tz: "timeZone", owners: "owner", tenants: "tenant" },
};

/** The rule of the option `accounts`. Returns a checked copy. */
export const accountsRule: OptionRule = optionsRule(accountsOptionsSchema);
