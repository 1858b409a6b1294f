import { type AgentDefinition, collectDefinitions } from "../../agents/index.ts";
import { systemClock } from "../../base/index.ts";
import { type Decide, RequestDesk } from "../../runtime/index.ts";
import { type AgentRequest, DEFAULT_TENANT } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";

/**
 * Decides a request in the store alone: no agent is taken up here. Whoever runs its agent hears of it, now or later.
 * Edited arguments are checked where their tool is among `definitions`. Throws `RequestConflictError` when it was decided
 * before, `InvalidInputError` where the verdict or the arguments do not fit.
 */
export async function decideStored(
  stores: Stores,
  requestId: string,
  decide: Decide,
  definitions: readonly AgentDefinition[] = [],
): Promise<AgentRequest> {
  const desk = new RequestDesk({
    stores,
    tenant: DEFAULT_TENANT,
    clock: systemClock,
    definitions: collectDefinitions(definitions),
    mayDecide: undefined,
    notify: () => {},
  });
  return await desk.decide(requestId, decide);
}
