import { InvalidInputError } from "../../errors/index.ts";
import type { Auth } from "../../tools/index.ts";
import { requestsBelow } from "../follow/rest-watch.ts";
import type { RuntimeCore } from "../core/runtime-core.ts";

/**
 * Credentials for every turn of the agent's tree that asks for them. They stay in this process (row L9), so the turn has to
 * be carried on here.
 */
export async function provideAuth(core: RuntimeCore, agentId: string, auth: Auth): Promise<void> {
  const below = await requestsBelow(core.stores, core.tenant, agentId);
  const requests = below.filter(({ kind }) => kind === "auth");
  const foreign = requests.find(({ actorId }) => actorId !== null && actorId !== auth.actorId);
  if (foreign) {
    throw new InvalidInputError(
      `turn ${foreign.turnId} runs for "${foreign.actorId}"; credentials of "${auth.actorId}" are not its own`,
    );
  }
  for (const { requestId, turnId } of requests) {
    const decide = { verdict: "provided", by: auth.actorId } as const;
    await core.desk.decide(requestId, decide, () => core.auth.keep(turnId, auth));
  }
}
