import { openAccount, usedAt } from "./account.ts";
import type { Account, Limits } from "./schemas.ts";

/** Id of the account that the children which continue in the background share after their turn has ended. */
export function backgroundAccountId(turnId: string): string {
  return `background:${turnId}`;
}

/** The accounts after a move. */
export interface AccountMove {
  /** The turn's account without the moved amounts. */
  readonly turn: Account;
  /** The new account between the moved ones and the parent of the turn's account; `undefined` if its limits would never apply. */
  readonly background: Account | undefined;
  /** The moved accounts, below the new one. */
  readonly children: readonly Account[];
}

/**
 * Called when the turn of account `turn` ends while these direct child accounts continue: they get a new account beside it with the
 * turn's remaining limits. Their reservations and active counts are removed from the turn's account; accounts above do not change.
 * `above` is the parent of the turn's account, if there is one.
 *
 * No call gets more than before: the used and reserved amounts of the turn's account and the new one together never exceed the turn's
 * limits, independent of the order in which calls are settled later (properties in the tests).
 */
export function moveToBackground(
  turn: Account,
  children: readonly Account[],
  above: Account | undefined,
  now: number,
): AccountMove {
  const moved = children.reduce(
    (sum, { reserved, activeCount }) => ({
      tokens: sum.tokens + reserved.tokens,
      costMicros: sum.costMicros + reserved.costMicros,
      activeCount: sum.activeCount + activeCount,
    }),
    { tokens: 0, costMicros: 0, activeCount: 0 },
  );
  const reserved = {
    tokens: Math.max(0, turn.reserved.tokens - moved.tokens),
    costMicros: Math.max(0, turn.reserved.costMicros - moved.costMicros),
  };
  const limits = limitsLeft({ ...turn, reserved }, now);
  const rest = withFewerActive({ ...turn, reserved }, moved.activeCount, now);
  if (isImplied(limits, turn, above, now)) {
    return { turn: rest, background: undefined, children: under(children, turn.parentId) };
  }
  const { agentId, turnId, parentId, openedAt } = turn;
  const opened = openAccount(
    { id: backgroundAccountId(turnId ?? turn.id), agentId, turnId, parentId, limits },
    openedAt,
  );
  const background: Account = {
    ...opened,
    // The new account has the same deadline.
    warned: turn.warned.filter((limit) => limit === "deadlineAt"),
    reserved: { tokens: moved.tokens, costMicros: moved.costMicros },
    activeCount: moved.activeCount,
    activeSince: moved.activeCount > 0 ? now : null,
  };
  return { turn: rest, background, children: under(children, background.id) };
}

function under(children: readonly Account[], parentId: string | null): Account[] {
  return children.map((child) => ({ ...child, parentId }));
}

function left(max: number, gone: number): number {
  return Math.max(0, max - gone);
}

/** The limits minus the used and reserved amounts. Deadline and flags are unchanged. */
function limitsLeft(account: Account, now: number): Limits {
  const { limits, reserved } = account;
  const used = usedAt(account, now);
  const { maxSteps, maxTreeSteps, maxToolCalls, maxTreeToolCalls, maxTokens, maxCostMicros, maxActiveMs, ...others } =
    limits;
  return {
    ...others,
    ...(maxSteps === undefined ? {} : { maxSteps: left(maxSteps, used.steps) }),
    ...(maxTreeSteps === undefined ? {} : { maxTreeSteps: left(maxTreeSteps, used.treeSteps) }),
    ...(maxToolCalls === undefined ? {} : { maxToolCalls: left(maxToolCalls, used.toolCalls) }),
    ...(maxTreeToolCalls === undefined ? {} : { maxTreeToolCalls: left(maxTreeToolCalls, used.treeToolCalls) }),
    ...(maxTokens === undefined ? {} : { maxTokens: left(maxTokens, used.tokens + reserved.tokens) }),
    ...(maxCostMicros === undefined
      ? {}
      : { maxCostMicros: left(maxCostMicros, used.costMicros + reserved.costMicros) }),
    ...(maxActiveMs === undefined ? {} : { maxActiveMs: left(maxActiveMs, used.activeMs) }),
  };
}

function withFewerActive(account: Account, fewer: number, now: number): Account {
  const activeCount = Math.max(0, account.activeCount - fewer);
  if (account.activeSince === null || activeCount > 0) return { ...account, activeCount };
  return { ...account, activeCount, activeSince: null, used: usedAt(account, now) };
}

/**
 * Whether no limit of the account above leaves more than this, so that an account between would not restrict any call. This is the case
 * when a turn that was started for a child's end leaves children behind, so the chain of accounts does not grow.
 */
function isImplied(own: Limits, turn: Account, above: Account | undefined, now: number): boolean {
  const { deadlineAt, strict, finalAnswer, ...amounts } = own;
  if (!above) return Object.keys(own).length === 0;
  const { limits } = above;
  if ((strict && !limits.strict) || (finalAnswer && !limits.finalAnswer)) return false;
  if (deadlineAt !== undefined && (limits.deadlineAt === undefined || limits.deadlineAt > deadlineAt)) return false;
  // Reservations of other calls on that account may be released.
  const leftAbove = limitsLeft({ ...above, reserved: { tokens: 0, costMicros: 0 } }, now);
  return (Object.keys(amounts) as (keyof typeof amounts)[]).every((name) => {
    const isOwn = name === "maxSteps" || name === "maxToolCalls";
    if (isOwn && above.agentId !== turn.agentId) return false;
    return (leftAbove[name] ?? Number.POSITIVE_INFINITY) <= (amounts[name] ?? 0);
  });
}
