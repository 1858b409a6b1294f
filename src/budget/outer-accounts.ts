import { noAmounts, nothingReserved, openAccount, withLimits } from "./account.ts";
import { limitNames, type LimitName, type OuterScope, type OuterWindow } from "./limit-names.ts";
import type { Account, Limits } from "./schemas.ts";
import type { OuterPeriod } from "./outer-window.ts";

/** The limits of one account above the root, as a process configures them, and the account's current window. */
export interface OuterLimits extends OuterPeriod {
  readonly scope: OuterScope;
  /** The owner's or the tenant's id. */
  readonly name: string;
  readonly window: OuterWindow;
  readonly limits: Limits;
  readonly revision: number;
}

/** Id of an account above the roots. */
export function outerAccountId({ scope, window, name }: Pick<OuterLimits, "scope" | "window" | "name">): string {
  return scope === "tenant" ? `tenant:${window}` : `owner:${window}:${name}`;
}

/** The parts of the id of an account above the roots; `undefined` for the id of another account. */
export function outerPartsOf(
  accountId: string,
): { readonly scope: OuterScope; readonly window: string; readonly name: string | null } | undefined {
  const [scope, window = "", ...name] = accountId.split(":");
  if (scope === "tenant") return { scope, window, name: null };
  return scope === "owner" ? { scope, window, name: name.join(":") } : undefined;
}

/**
 * The account under the limits of a process that charges it. A window that starts after the stored one has ended starts with nothing used;
 * what is reserved then is counted in the window in which it is settled. Any other window changes nothing: the clock of that process is
 * behind, or it has another time zone. Within a window the strictest limits of all processes hold, unless one has a higher revision.
 */
export function outerAccount(
  stored: Account | undefined,
  asked: OuterLimits,
  { parentId, now }: { readonly parentId: string | null; readonly now: number },
): Account {
  const { scope, name, window, startsAt, endsAt, limits, revision } = asked;
  const before = stored?.outer;
  if (!stored || !before) {
    const id = outerAccountId(asked);
    const outer = { scope, name, window, startsAt, endsAt, configured: limits, revision };
    return {
      ...openAccount({ id, agentId: name, turnId: null, parentId, limits }, window === "total" ? now : startsAt),
      outer,
    };
  }
  const isNewer = revision > before.revision;
  if (before.endsAt !== null && startsAt >= before.endsAt) {
    const configured = revision < before.revision ? before.configured : limits;
    const kept = (before.addedAt ?? 0) >= startsAt ? before : withoutAdded(before);
    const outer = { ...kept, startsAt, endsAt, configured, revision: Math.max(revision, before.revision) };
    const fresh = { used: noAmounts, unconfirmed: nothingReserved, models: {}, warned: [], openedAt: startsAt };
    return { ...stored, ...fresh, parentId, limits: withAdded(configured, kept.added), outer };
  }
  const configured = isNewer
    ? limits
    : revision < before.revision
      ? before.configured
      : strictest(before.configured, limits);
  if (configured === before.configured && parentId === stored.parentId && !isNewer) return stored;
  const outer = { ...before, configured, revision: Math.max(revision, before.revision) };
  return { ...withLimits(stored, withAdded(configured, before.added)), parentId, outer };
}

/**
 * The account with amounts added to its limits, until it renews. Limits that it does not have are ignored. The decision on one request,
 * `requestId`, adds once. If its window has ended at `now`, the amounts belong to the next one, in which it is not charged yet.
 */
export function withMore(account: Account, more: Limits, { now, requestId }: RaiseContext): Account {
  if (!account.outer) return account;
  const outer = hasEnded(account.outer, now) ? ofEndedWindow(account.outer) : account.outer;
  if (requestId !== undefined && outer.raisedBy?.includes(requestId)) return account;
  const raisedBy = requestId === undefined ? {} : { raisedBy: [...(outer.raisedBy ?? []), requestId] };
  const added = withAdded(outer.added ?? {}, more, limitNames);
  const limits = withAdded(outer.configured, added);
  return { ...withLimits(account, limits), outer: { ...outer, added, addedAt: now, ...raisedBy } };
}

export interface RaiseContext {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The request whose decision adds the amounts. Default: none. */
  readonly requestId?: string | undefined;
}

type OuterPart = NonNullable<Account["outer"]>;

function hasEnded({ endsAt }: OuterPart, now: number): boolean {
  return endsAt !== null && now >= endsAt;
}

/** The part of an account whose window has ended, with the amounts that were added since. */
function ofEndedWindow(outer: OuterPart): OuterPart {
  return (outer.addedAt ?? 0) >= (outer.endsAt ?? 0) ? outer : withoutAdded(outer);
}

function withoutAdded({ added: _added, addedAt: _addedAt, raisedBy: _raisedBy, ...rest }: OuterPart): OuterPart {
  return rest;
}

/** The account as people see it at `now`: with nothing used if it has renewed since its last charge. */
export function shownAccount(account: Account, now: number): Account {
  const { outer } = account;
  if (!outer || !hasEnded(outer, now)) return account;
  const rest = ofEndedWindow(outer);
  const fresh = { used: noAmounts, unconfirmed: nothingReserved, models: {}, warned: [] };
  return { ...account, ...fresh, limits: withAdded(outer.configured, rest.added), outer: rest };
}

function withAdded(limits: Limits, added: Limits = {}, names: readonly LimitName[] = namesIn(limits)): Limits {
  const sum: { -readonly [Name in LimitName]?: number } = {};
  for (const name of names) {
    const more = added[name];
    if (more !== undefined) sum[name] = Math.min(Number.MAX_SAFE_INTEGER, (limits[name] ?? 0) + more);
  }
  return { ...limits, ...sum };
}

/** The same object as `one` if `other` is nowhere stricter. */
function strictest(one: Limits, other: Limits): Limits {
  const smaller = limitNames.filter(
    (name) => (other[name] ?? Number.POSITIVE_INFINITY) < (one[name] ?? Number.POSITIVE_INFINITY),
  );
  return smaller.length === 0 ? one : { ...one, ...Object.fromEntries(smaller.map((name) => [name, other[name]])) };
}

function namesIn(limits: Limits): readonly LimitName[] {
  return limitNames.filter((name) => limits[name] !== undefined);
}
