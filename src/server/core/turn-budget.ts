import type { AgentDefinition } from "../../agents/index.ts";
import { type Budget, type LimitName, limitNameSchema, limitsOf } from "../../budget/index.ts";
import { PolicyRefusedError } from "../../errors/index.ts";

/** The budget field of each limit. */
const fieldOfLimit: Readonly<Record<LimitName, string>> = {
  maxSteps: "maxSteps",
  maxTreeSteps: "maxTreeSteps",
  maxToolCalls: "maxToolCalls",
  maxTreeToolCalls: "maxTreeToolCalls",
  maxTokens: "maxTokens",
  maxCostMicros: "maxCost",
  maxActiveMs: "maxSeconds",
  deadlineAt: "deadline",
};

/**
 * Throws `PolicyRefusedError` naming the field if a caller raises a limit of the agent's definition for a turn. Callers
 * may only lower these limits, because the operator pays.
 */
export function assertNotRaised(
  definition: AgentDefinition | undefined,
  budget: Budget | undefined,
  now: number,
): void {
  if (definition === undefined || budget === undefined) return;
  const [asked, own] = [limitsOf(budget, now), definition.limits];
  const raised = limitNameSchema.options.find((name) => (asked[name] ?? 0) > (own[name] ?? Infinity));
  const field = raised === undefined ? undefined : fieldOfLimit[raised];
  const isLoosened = asked.strict === false && own.strict === true;
  if (field === undefined && !isLoosened) return;
  throw new PolicyRefusedError(
    `budget.${field ?? "strict"} exceeds the agent's own limit; a caller may only lower the limits of a turn`,
  );
}
