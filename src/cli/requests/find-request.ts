import { NotFoundError } from "../../errors/index.ts";
import { type AgentRequest, type RequestVerdict, verdictsOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { allRequests } from "./all-requests.ts";

/**
 * The request that a person means: by its whole id, by the start of one, or, without a text, the only one that is open
 * and can be decided so. Open ones go before those that were decided. Throws `NotFoundError` when there is none, or
 * more than one.
 */
export async function findRequest(
  stores: Stores,
  text: string | undefined,
  verdict: RequestVerdict,
): Promise<AgentRequest> {
  const open = await allRequests(stores, { status: "open" });
  if (text === undefined) {
    const fitting = open.filter(({ kind }) => verdictsOf[kind].includes(verdict));
    return theOnly(fitting, `no open request of this store can be ${verdict}; \`requests\` shows those there are`);
  }
  const fitting = startingWith(open, text);
  if (fitting.length > 0) return theOnly(fitting, "");
  const known = startingWith(await allRequests(stores), text);
  return theOnly(known, `there is no request "${text}" in this store; \`requests\` shows those that are open`);
}

function startingWith(requests: readonly AgentRequest[], text: string): AgentRequest[] {
  const exact = requests.find(({ requestId }) => requestId === text);
  if (exact !== undefined) return [exact];
  return text === "" ? [] : requests.filter(({ requestId }) => requestId.startsWith(text));
}

function theOnly([first, ...others]: readonly AgentRequest[], none: string): AgentRequest {
  if (first === undefined) throw new NotFoundError(none);
  if (others.length === 0) return first;
  const ids = [first, ...others].slice(0, 5).map(({ requestId }) => requestId);
  throw new NotFoundError(`${others.length + 1} requests fit; name one of them: ${ids.join(", ")}`);
}
