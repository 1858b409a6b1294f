import { type Account, activeMsAt, amountOfLimit, type LimitName, limitNames } from "../../budget/index.ts";

export { type LimitName, limitNames };

/** How full a limit is, in the limit's unit. */
export interface LimitUse {
  readonly limit: LimitName;
  readonly used: number;
  readonly reserved: number;
  readonly unconfirmed: number;
  readonly max: number;
}

/** The limits of an account with their use at a time, the fullest first. Deadlines are left out. */
export function limitUses(account: Account, time: number): LimitUse[] {
  const { limits, reserved, unconfirmed } = account;
  const used = { ...account.used, activeMs: activeMsAt(account, time) };
  const uses = limitNames.flatMap((limit): LimitUse[] => {
    const max = limits[limit];
    if (max === undefined || limit === "deadlineAt") return [];
    const amount = amountOfLimit[limit];
    const isHeld = amount === "tokens" || amount === "costMicros";
    const held = isHeld
      ? { reserved: reserved[amount], unconfirmed: unconfirmed[amount] }
      : { reserved: 0, unconfirmed: 0 };
    return [{ limit, used: used[amount], ...held, max }];
  });
  return uses.toSorted((one, other) => shareOf(other) - shareOf(one));
}

/** From 0 to 1, including reservations. */
export function shareOf({ used, reserved, max }: Pick<LimitUse, "used" | "reserved" | "max">): number {
  return max === 0 ? 1 : Math.min(1, (used + reserved) / max);
}
