import type { LimitName } from "../../budget/index.ts";
import { type AccountAt, activeMsAbout } from "./account-at.ts";

/** How full a limit is, in its own unit. */
export interface LimitUse {
  readonly limit: LimitName;
  readonly used: number;
  readonly reserved: number;
  readonly unconfirmed: number;
  readonly max: number;
}

/** The limits of an account with their figures at a time, the fullest first. A deadline is none: it goes by the clock. */
export function limitUses(account: AccountAt, time: number): LimitUse[] {
  const uses = Object.entries(account.limits).flatMap(([name, max]): LimitUse[] => {
    if (typeof max !== "number" || name === "deadlineAt") return [];
    const limit = name as LimitName;
    return [{ limit, ...amountsOf(account, limit, time), max }];
  });
  return uses.toSorted((one, other) => shareOf(other) - shareOf(one));
}

function amountsOf(account: AccountAt, limit: LimitName, time: number): Omit<LimitUse, "limit" | "max"> {
  const { used, reserved, unconfirmed } = account;
  const none = { reserved: 0, unconfirmed: 0 };
  switch (limit) {
    case "maxTokens":
      return { used: used.tokens, reserved: reserved.tokens, unconfirmed: unconfirmed.tokens };
    case "maxCostMicros":
      return { used: used.costMicros, reserved: reserved.costMicros, unconfirmed: unconfirmed.costMicros };
    case "maxSteps":
      return { used: used.steps, ...none };
    case "maxTreeSteps":
      return { used: used.treeSteps, ...none };
    case "maxToolCalls":
      return { used: used.toolCalls, ...none };
    case "maxTreeToolCalls":
      return { used: used.treeToolCalls, ...none };
    default:
      return { used: activeMsAbout(account.time, time), ...none };
  }
}

/** From 0 to 1, with what is reserved. */
export function shareOf({ used, reserved, max }: Pick<LimitUse, "used" | "reserved" | "max">): number {
  return max === 0 ? 1 : Math.min(1, (used + reserved) / max);
}
