import { z } from "zod";
import type { DeepReadonly } from "../../base/index.ts";
import { type Account, type Amounts, accountSchema, type ModelUse } from "../../budget/index.ts";
import { parsed } from "./stored-json.ts";

/** An account as two texts: what hardly ever changes, and the figures, which every commit writes anew and which are short. */
export interface AccountTexts {
  readonly terms: string;
  readonly standing: string;
}

const { isActive, activeCount, activeSince, warned, line: lineOption } = accountSchema.shape;
const termsSchema = accountSchema.pick({ agentId: true, turnId: true, parentId: true, limits: true, openedAt: true });

const count = z.number().int().nonnegative();
const amountFiguresSchema = z.tuple([count, count, count, count, count, count, count]);
const useFiguresSchema = z.tuple([count, count, count, count, count, count, count, count, count]);
const pairSchema = z.tuple([count, count]);
const standingSchema = z.tuple([
  amountFiguresSchema,
  pairSchema,
  pairSchema,
  z.record(z.string(), useFiguresSchema),
  isActive,
  activeCount,
  activeSince,
  warned,
  lineOption.unwrap().nullable(),
]);
type Standing = DeepReadonly<z.infer<typeof standingSchema>>;

/** What the account was opened with; it changes only where the account is moved. */
export function termsText({ agentId, turnId, parentId, limits, openedAt }: Account): string {
  return JSON.stringify({ agentId, turnId, parentId, limits, openedAt });
}

/** Whether two states of one account surely have the same terms: no state changes its limits, so that they are one object. */
export function hasSameTerms(one: Account, other: Account): boolean {
  return (
    one.limits === other.limits &&
    one.parentId === other.parentId &&
    one.agentId === other.agentId &&
    one.turnId === other.turnId &&
    one.openedAt === other.openedAt
  );
}

/** All of the account that its terms do not tell; figures stand without their names, in a fixed order. */
export function standingText({ used, reserved, unconfirmed, models, ...account }: Account): string {
  const uses = Object.fromEntries(Object.entries(models).map(([name, use]) => [name, useFigures(use)]));
  const standing: Standing = [
    amountFigures(used),
    [reserved.tokens, reserved.costMicros],
    [unconfirmed.tokens, unconfirmed.costMicros],
    uses,
    account.isActive,
    account.activeCount,
    account.activeSince,
    account.warned,
    account.line ?? null,
  ];
  return JSON.stringify(standing);
}

/** Throws `CorruptRecordError` for texts that are no account's. */
export function accountIn(id: string, { terms, standing }: AccountTexts): Account {
  const where = `account ${id}`;
  const [used, reserved, unconfirmed, uses, ...rest] = parsed(standingSchema, standing, where);
  const [isActive, activeCount, activeSince, warned, line] = rest;
  return {
    id,
    ...parsed(termsSchema, terms, where),
    used: amountsIn(used),
    reserved: { tokens: reserved[0], costMicros: reserved[1] },
    unconfirmed: { tokens: unconfirmed[0], costMicros: unconfirmed[1] },
    models: Object.fromEntries(Object.entries(uses).map(([name, figures]) => [name, useIn(figures)])),
    isActive,
    activeCount,
    activeSince,
    warned,
    ...(line ? { line } : {}),
  };
}

function amountFigures(used: Amounts): Standing[0] {
  const { steps, treeSteps, toolCalls, treeToolCalls, tokens, costMicros, activeMs } = used;
  return [steps, treeSteps, toolCalls, treeToolCalls, tokens, costMicros, activeMs];
}

function amountsIn([steps, treeSteps, toolCalls, treeToolCalls, tokens, costMicros, activeMs]: Standing[0]): Amounts {
  return { steps, treeSteps, toolCalls, treeToolCalls, tokens, costMicros, activeMs };
}

type UseFigures = DeepReadonly<z.infer<typeof useFiguresSchema>>;

function useFigures(use: ModelUse): UseFigures {
  const { calls, inputTokens, outputTokens, cachedInputTokens, reasoningTokens, costMicros } = use;
  const { estimatedCalls, unconfirmedCalls, unpricedCalls } = use;
  const tokens = [inputTokens, outputTokens, cachedInputTokens, reasoningTokens] as const;
  return [calls, ...tokens, costMicros, estimatedCalls, unconfirmedCalls, unpricedCalls];
}

function useIn([calls, inputTokens, outputTokens, cachedInputTokens, reasoningTokens, ...more]: UseFigures): ModelUse {
  const [costMicros, estimatedCalls, unconfirmedCalls, unpricedCalls] = more;
  const tokens = { inputTokens, outputTokens, cachedInputTokens, reasoningTokens };
  return { calls, ...tokens, costMicros, estimatedCalls, unconfirmedCalls, unpricedCalls };
}
