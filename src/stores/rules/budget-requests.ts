import { type Limits, type MetLimit, outerPartsOf, storedAmount, userAmount } from "../../budget/index.ts";
import { shortHash, stableStringify } from "../../base/index.ts";
import {
  accountText,
  type AgentRecord,
  type AgentRequest,
  amountText,
  type BudgetDecision,
  budgetQuestionSchema,
  type Decision,
  type EntryOf,
  limitText,
  type LimitFigures,
  requestIdOf,
  shownLimit,
} from "../../state/index.ts";
import type { Batch } from "./batch.ts";
import type { Tables } from "./tables.ts";

/** A limit that leaves no room for a model call, and asks a person. */
export interface BudgetQuestionAbout extends MetLimit {
  /** The least that the call takes of the limit. */
  readonly needed: number | undefined;
  readonly figures: LimitFigures;
}

/**
 * The request that asks a person for more: the open one, or a new one; `undefined` if a person has declined. A request that was approved, and
 * was not enough, is followed by another one.
 */
export function budgetRequestOf(
  tables: Tables,
  batch: Batch,
  record: AgentRecord,
  { intent, met }: { readonly intent: EntryOf<"model.requested">; readonly met: BudgetQuestionAbout },
): AgentRequest | undefined {
  const { turnId, step, at } = intent;
  const callId = `${turnId}:${step}:budget`;
  for (let number = 1; ; number += 1) {
    const requestId = requestIdOf(callId, number);
    const known = tables.request(batch.key, requestId);
    if (known?.status === "open") return known;
    const isGranted = known?.decision?.verdict === "approved" || known?.decision?.verdict === "edited";
    if (known && !isGranted) return undefined;
    if (known) continue;
    const { accountId, limit, max, needed } = met;
    // The request is shown to the agent's owner, who must not learn the tenant's limit or what others have spent.
    const isTenants = outerPartsOf(accountId)?.scope === "tenant";
    const figures = isTenants ? { renewsAt: met.figures.renewsAt } : met.figures;
    const most = Math.max(1, isTenants ? 0 : max, needed ?? 0);
    const add = userAmount(limit, most);
    const args = { accountId, limit, add };
    const shown = shownLimit(limit, accountId);
    const { tenant, agentId, rootAgentId, ownerId, definition } = record;
    return {
      tenant,
      requestId,
      agentId,
      agentName: definition.name,
      ...(ownerId === null ? {} : { ownerId }),
      rootAgentId,
      turnId,
      step,
      callId,
      kind: "budget",
      name: accountText(accountId, figures.holder),
      arguments: args,
      argumentsHash: shortHash(stableStringify(args)),
      prompt: `${limitText(limit, accountId, figures)}. Continue with ${amountText(shown, most)} more?`,
      actorId: batch.asking?.actorId ?? null,
      openedAt: at,
      expiresAt: null,
      status: "open",
      decision: null,
      decidedAt: null,
      ...(batch.asking?.isGuarded ? { isGuarded: true } : {}),
    };
  }
}

/** The decision as the agent's journal has it, with the amounts that it adds. */
export function budgetDecisionOf(
  request: AgentRequest,
  { verdict, by, reason, arguments: edited }: Decision,
): BudgetDecision {
  const { requestId, callId, name } = request;
  const asked = budgetQuestionSchema.parse(request.arguments);
  const { accountId, limit } = asked;
  const common = { requestId, callId, name, verdict, by, reason, accountId };
  if (verdict !== "approved" && verdict !== "edited") return common;
  const { add } = verdict === "edited" ? budgetQuestionSchema.parse({ ...asked, ...Object(edited) }) : asked;
  const limits: Limits = { [limit]: storedAmount(limit, add) };
  return { ...common, limits, ...(verdict === "edited" ? { amount: add } : {}) };
}
