import { type AgentDefinition, collectDefinitions } from "../../agents/index.ts";
import { systemClock } from "../../base/index.ts";
import { type Decide, Requests, type RuntimeOptions } from "../../runtime/index.ts";
import { type AgentRequest, DEFAULT_TENANT } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";

/** What is known here of the program that the request comes from. */
export interface KnownProgram {
  readonly definitions?: readonly AgentDefinition[] | undefined;
  /** Its rule on who may decide. */
  readonly mayDecide?: RuntimeOptions["mayDecide"];
}

/**
 * Decides a request in the store alone: no agent is taken up here. Whoever runs its agent hears of it, now or later.
 * Edited arguments are checked where their tool is among `definitions`. Throws `RequestConflictError` when it was decided
 * before, `InvalidInputError` where the verdict or the arguments do not fit, or the rule says no.
 */
export async function decideStored(
  stores: Stores,
  requestId: string,
  decide: Decide,
  { definitions = [], mayDecide }: KnownProgram = {},
): Promise<AgentRequest> {
  const desk = new Requests({
    stores,
    tenant: DEFAULT_TENANT,
    clock: systemClock,
    definitions: collectDefinitions(definitions),
    mayDecide,
    notify: () => {},
  });
  return await desk.decide(requestId, decide);
}
