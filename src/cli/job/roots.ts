import { NotFoundError } from "../../errors/index.ts";
import { type AgentRecord, DEFAULT_TENANT } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { askJobOf } from "../ask/job.ts";
import { fileJobOf } from "./file-job.ts";
import { readableId } from "./job-id.ts";
import { allAgents } from "./all-agents.ts";

/** Whether there is still something to do: a turn is open, or a command was cut before it began its first. */
export function isUnfinished(record: Pick<AgentRecord, "openTurnId" | "turnCount" | "metadata">): boolean {
  if (record.openTurnId !== null) return true;
  if (record.turnCount > 0) return false;
  // A chat has nothing to do before something is said.
  return askJobOf(record.metadata) !== undefined || fileJobOf(record.metadata)?.command === "run";
}

/** An id that no agent of the store has. */
export async function freshId(stores: Stores, prefix: string): Promise<string> {
  for (;;) {
    const agentId = readableId(prefix, Math.random);
    if ((await stores.readAgent({ tenant: DEFAULT_TENANT, agentId })) === undefined) return agentId;
  }
}

/**
 * The agent a person means: by its whole id, or by the start of one, subagents included (`ask-mibodu~3fa9c1`). Throws
 * `NotFoundError` when there is none, or more than one.
 */
export async function findAgent(stores: Stores, text: string): Promise<AgentRecord> {
  const exact = await stores.readAgent({ tenant: DEFAULT_TENANT, agentId: text });
  if (exact !== undefined) return exact;
  const isChild = text.includes("~");
  const candidates = await allAgents(stores, { tenant: DEFAULT_TENANT, rootsOnly: isChild ? undefined : true });
  const found = text === "" ? [] : candidates.filter((record) => record.agentId.startsWith(text));
  const [first, ...others] = found;
  if (first !== undefined && others.length === 0) return first;
  throw new NotFoundError(
    first === undefined
      ? `there is no agent "${text}" in this store; \`list\` shows those there are`
      : `"${text}" fits ${found.length} agents; give more of the id: ${found
          .slice(0, 5)
          .map((one) => one.agentId)
          .join(", ")}`,
  );
}
