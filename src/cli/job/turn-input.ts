import { type AgentRecord, DEFAULT_TENANT, textOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";

/** Input of an agent's newest turn as text; empty if the turn continues the conversation without input. */
export async function newestInput(
  stores: Pick<Stores, "inbox" | "readJournal" | "messagesById">,
  { agentId, openTurnId }: Pick<AgentRecord, "agentId" | "openTurnId">,
): Promise<string> {
  const key = { tenant: DEFAULT_TENANT, agentId };
  const begun = (await stores.readJournal(key, 0))
    .flatMap(({ entries }) => entries)
    .findLast((entry) => entry.type === "turn.started");
  if (begun?.type === "turn.started" && (openTurnId === null || openTurnId === begun.turnId)) {
    const messages = await stores.messagesById(key, begun.inputMessageIds);
    return messages.map(({ content }) => textOf(content)).join("\n");
  }
  // An accepted turn that has not started is still in the inbox.
  const coming = (await stores.inbox(key)).find((item) => item.kind === "turn" && item.turnId === openTurnId);
  return coming?.kind === "turn" && coming.input !== null ? textOf(coming.input) : "";
}
