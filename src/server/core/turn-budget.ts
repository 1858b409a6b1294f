import type { AgentDefinition } from "../../agents/index.ts";
import { type Budget, type LimitName, limitNameSchema, limitsOf } from "../../budget/index.ts";
import { PolicyRefusedError } from "../../errors/index.ts";
import { type CallSettings, modelRequestSchema } from "../../state/index.ts";

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

/** From the least to the greatest. */
const efforts: readonly string[] = modelRequestSchema.shape.reasoningEffort.unwrap().options;

/**
 * Throws `PolicyRefusedError` naming the field if a caller raises the output bound or the reasoning effort that the agent's
 * definition sets, because the operator pays.
 */
export function assertNotDearer(definition: AgentDefinition | undefined, settings: CallSettings = {}): void {
  if (definition === undefined) return;
  const { maxOutputTokens = Infinity, reasoningEffort = "max" } = definition;
  const isLonger = (settings.maxOutputTokens ?? 0) > maxOutputTokens;
  const isHarder =
    settings.reasoningEffort !== undefined &&
    efforts.indexOf(settings.reasoningEffort) > efforts.indexOf(reasoningEffort);
  if (!isLonger && !isHarder) return;
  throw new PolicyRefusedError(
    `settings.${isLonger ? "maxOutputTokens" : "reasoningEffort"} exceeds the agent's own setting; a caller may only lower it`,
  );
}

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
