import type { LimitName, Limits } from "../../budget/index.ts";
import { type AccountAt, type AccountTerms, activeMsAbout } from "./account-at.ts";

interface Place {
  /** The account above the turn's. */
  readonly above: AccountAt | undefined;
  /** The stored terms of the new account, if they are known. */
  readonly stored: AccountTerms | undefined;
  readonly at: number;
}

/**
 * The accounts after children have gone on behind the end of a turn, by the rules of `moveToBackground`: they get an account
 * beside the turn's with what its limits leave, unless that would bind nobody. A limit on working time leaves about that
 * much, if the stored terms are not known.
 */
export function backgroundOf(
  turn: AccountAt,
  children: readonly AccountAt[],
  { above, stored, at }: Place,
): AccountAt[] {
  const moved = children.reduce(
    (sum, { reserved, time }) => ({
      tokens: sum.tokens + reserved.tokens,
      costMicros: sum.costMicros + reserved.costMicros,
      activeCount: sum.activeCount + time.activeCount,
    }),
    { tokens: 0, costMicros: 0, activeCount: 0 },
  );
  const reserved = {
    tokens: Math.max(0, turn.reserved.tokens - moved.tokens),
    costMicros: Math.max(0, turn.reserved.costMicros - moved.costMicros),
  };
  const rest = { ...turn, reserved };
  const limits = stored?.limits ?? limitsLeft(rest, at);
  const left = { ...rest, time: withFewer(turn.time, moved.activeCount, at) };
  if (!stored && isImplied(limits, turn, above, at)) return [left, ...under(children, turn.parentId)];
  const { agentId, turnId, parentId, openedAt, used, unconfirmed } = turn;
  const none = { steps: 0, treeSteps: 0, toolCalls: 0, treeToolCalls: 0, tokens: 0, costMicros: 0 };
  const background: AccountAt = {
    id: `background:${turnId ?? turn.id}`,
    agentId,
    turnId,
    parentId,
    limits,
    openedAt,
    closedAt: null,
    used: { ...used, ...none },
    unconfirmed: { ...unconfirmed, tokens: 0, costMicros: 0 },
    reserved: { tokens: moved.tokens, costMicros: moved.costMicros },
    time: { isExact: false, activeMs: 0, activeCount: moved.activeCount, since: moved.activeCount > 0 ? at : null },
  };
  return [left, background, ...under(children, background.id)];
}

function under(children: readonly AccountAt[], parentId: string | null): AccountAt[] {
  return children.map((child) => ({ ...child, parentId }));
}

function withFewer(time: AccountAt["time"], fewer: number, at: number): AccountAt["time"] {
  const activeCount = Math.max(0, time.activeCount - fewer);
  if (time.since === null || activeCount > 0) return { ...time, activeCount };
  return { isExact: false, activeMs: activeMsAbout(time, at), activeCount, since: null };
}

/** Whether the account above leaves no more than this on any limit. */
function isImplied(own: Limits, turn: AccountAt, above: AccountAt | undefined, at: number): boolean {
  const { deadlineAt, strict, finalAnswer, ...amounts } = own;
  if (!above) return Object.keys(own).length === 0;
  const { limits } = above;
  if ((strict && !limits.strict) || (finalAnswer && !limits.finalAnswer)) return false;
  if (deadlineAt !== undefined && (limits.deadlineAt === undefined || limits.deadlineAt > deadlineAt)) return false;
  const leftAbove = limitsLeft({ ...above, reserved: { tokens: 0, costMicros: 0 } }, at);
  return (Object.keys(amounts) as (keyof typeof amounts)[]).every((name) => {
    const isOwn = name === "maxSteps" || name === "maxToolCalls";
    if (isOwn && above.agentId !== turn.agentId) return false;
    return (leftAbove[name] ?? Number.POSITIVE_INFINITY) <= (amounts[name] ?? 0);
  });
}

/** What is left of the limits of an account, by the amounts used and reserved. */
function limitsLeft({ limits, used, reserved: held, time }: AccountAt, at: number): Limits {
  const gone: Partial<Record<LimitName, number>> = {
    maxSteps: used.steps,
    maxTreeSteps: used.treeSteps,
    maxToolCalls: used.toolCalls,
    maxTreeToolCalls: used.treeToolCalls,
    maxTokens: used.tokens + held.tokens,
    maxCostMicros: used.costMicros + held.costMicros,
    maxActiveMs: activeMsAbout(time, at),
  };
  const left = Object.entries(limits).map(([name, max]) => {
    const less = gone[name as LimitName];
    return [name, typeof max === "number" && less !== undefined ? Math.max(0, max - less) : max];
  });
  return Object.fromEntries(left) as Limits;
}
