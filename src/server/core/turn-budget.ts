import type { AgentDefinition } from "../../agents/index.ts";
import { type Budget, type LimitName, limitNameSchema, limitsOf } from "../../budget/index.ts";
import { PolicyRefusedError } from "../../errors/index.ts";

/** The fields of a budget by the limits that they set. */
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
 * A caller may lower the limits that the agent's definition sets for a turn, and not raise them, or callers would decide
 * what the operator pays. Throws `PolicyRefusedError` that names the field.
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
    `budget.${field ?? "strict"} goes beyond the agent's own limit; a caller may lower the limits of a turn, not raise them`,
  );
}
