import type { AgentRequest, Runtime } from "../../src/index.ts";
import { editedArguments } from "./clerk.ts";
import type { PlannedDecision } from "./orders.ts";

/** Decides one request as planned, for the arguments in the request. */
export async function decideAsPlanned(
  runtime: Runtime,
  request: AgentRequest,
  { verdict }: PlannedDecision,
): Promise<void> {
  const { requestId, argumentsHash } = request;
  const edit = verdict === "edited" ? { arguments: editedArguments } : {};
  await runtime.decide(requestId, { verdict, by: `process ${process.pid}`, argumentsHash, ...edit });
}

/** The first planned decision that is still open, with its request. */
export function nextDecision(
  decisions: readonly PlannedDecision[],
  requests: readonly AgentRequest[],
): { readonly decision: PlannedDecision; readonly request: AgentRequest } | undefined {
  for (const decision of decisions) {
    const request = requests.find(({ callId }) => callId.endsWith(`:${decision.callIndex}`));
    if (request) return { decision, request };
  }
  return undefined;
}
