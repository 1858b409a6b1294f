import { type Account, type Limits, limitNames, type Moment, outerPartsOf, shownAccount } from "../../budget/index.ts";
import { InvalidInputError, NotFoundError } from "../../errors/index.ts";
import { amountText, shownLimit } from "../../state/index.ts";
import type { OuterAccounts } from "./ports.ts";

/**
 * Adds to the limits of an account above the roots until it renews. Returns the account before and after. Throws `NotFoundError` if there
 * is no such account, and `InvalidInputError` if it does not have one of the limits.
 */
export async function addToOuter(
  outer: OuterAccounts,
  { tenant, accountId, more }: { readonly tenant: string; readonly accountId: string; readonly more: Limits },
  moment: Moment,
): Promise<{ readonly before: Account; readonly account: Account }> {
  const owner = outerPartsOf(accountId)?.name ?? null;
  const stored = (await outer.of(tenant, owner)).find(({ id }) => id === accountId);
  if (!stored) throw unknownAccount(accountId);
  const before = shownAccount(stored, moment.now);
  const strange = limitNames.find((name) => more[name] !== undefined && before.limits[name] === undefined);
  if (strange !== undefined) {
    const has = limitNames.flatMap((name) => {
      const max = before.limits[name];
      return max === undefined ? [] : [amountText(shownLimit(name, accountId), max)];
    });
    const amount = amountText(shownLimit(strange, accountId), more[strange] ?? 0);
    throw new InvalidInputError(
      `account "${accountId}" cannot get ${amount} more, because it does not limit them; it limits ${has.join(", ") || "nothing"}`,
    );
  }
  const account = await outer.raise(tenant, accountId, more, moment);
  if (!account) throw unknownAccount(accountId);
  return { before, account: shownAccount(account, moment.now) };
}

function unknownAccount(accountId: string): NotFoundError {
  return new NotFoundError(
    `there is no account "${accountId}"; an account above the roots has the id tenant:perDay or owner:perDay:OWNER, and exists from the first call that was charged to it`,
  );
}
