import { NotFoundError } from "../../errors/index.ts";
import { type AgentRecord, DEFAULT_TENANT } from "../../state/index.ts";
import { currentProcess, isRunning, type Stores, formatAgentCursor } from "../../stores/index.ts";
import { readableId } from "../view/format.ts";
import { askJobOf, fileJobOf } from "./job.ts";

/** Maximum number of ids in an error about an ambiguous id. */
const namedAtMost = 5;

/** True if a turn is open, or if the command ended before it started the first one. */
export function isUnfinished(record: Pick<AgentRecord, "openTurnId" | "turnCount" | "metadata">): boolean {
  if (record.openTurnId !== null) return true;
  if (record.turnCount > 0) return false;
  // A chat starts with the person's first message.
  return askJobOf(record.metadata) !== undefined || fileJobOf(record.metadata)?.command === "run";
}

/** An unused id. */
export async function freshId(stores: Stores, prefix: string): Promise<string> {
  for (;;) {
    const agentId = readableId(prefix, Math.random);
    if ((await stores.readAgent({ tenant: DEFAULT_TENANT, agentId })) === undefined) return agentId;
  }
}

/**
 * Finds an agent, including subagents (`ask-mibodu~3fa9c1`), by its id or a prefix of it. Throws `NotFoundError` if no
 * agent or several match.
 */
export async function findAgent(stores: Stores, text: string): Promise<AgentRecord> {
  const exact = await stores.readAgent({ tenant: DEFAULT_TENANT, agentId: text });
  if (exact !== undefined) return exact;
  const [first, ...others] = text === "" ? [] : await startingWith(stores, text);
  if (first !== undefined && others.length === 0) return first;
  if (first === undefined) {
    throw new NotFoundError(`there is no agent "${text}" in this store; \`list\` lists the agents`);
  }
  const ids = [first, ...others].map(({ agentId }) => agentId);
  const some = ids.slice(0, namedAtMost).join(", ");
  throw new NotFoundError(
    ids.length > namedAtMost
      ? `"${text}" matches more than ${namedAtMost} agents; give a longer prefix: ${some}, …`
      : `"${text}" matches ${ids.length} agents; give a longer prefix: ${some}`,
  );
}

/** Reads only agents whose id starts with the text, at most one more than an error names. */
async function startingWith(stores: Stores, text: string): Promise<AgentRecord[]> {
  const rootsOnly = text.includes("~") ? undefined : true;
  const filter = { tenant: DEFAULT_TENANT, rootsOnly, limit: namedAtMost + 1, after: text };
  const next = await stores.listAgents(filter);
  return next.filter(({ agentId }) => agentId.startsWith(text));
}

const agentsAtATime = 200;

/** All agents that match the filter, ordered by id, page by page. */
export async function allAgents(
  stores: Stores,
  filter: Omit<Parameters<Stores["listAgents"]>[0], "order" | "limit" | "after">,
): Promise<AgentRecord[]> {
  const records: AgentRecord[] = [];
  for (;;) {
    const after = records.at(-1)?.agentId;
    const more = await stores.listAgents({ ...filter, limit: agentsAtATime, after });
    records.push(...more);
    if (more.length < agentsAtATime) return records;
  }
}

/** The root agents of a store, newest first. Reads pages only as the caller iterates. */
export async function* rootsByAge(stores: Stores, pageSize: number = agentsAtATime): AsyncGenerator<AgentRecord> {
  for (let after: string | undefined; ; ) {
    const filter = { tenant: DEFAULT_TENANT, rootsOnly: true, order: "newest", limit: pageSize, after } as const;
    const page = await stores.listAgents(filter);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < pageSize) return;
    after = formatAgentCursor(last);
  }
}

/** The process that owns an agent. `unknown`: it is on another machine, so its state cannot be checked. */
export interface Owner {
  readonly pid: number;
  readonly isAlive: boolean | "unknown";
}

/** The process that runs an agent; `undefined` without one, or if it has ended. */
export async function ownerOf(stores: Stores, key: Parameters<Stores["holder"]>[0]): Promise<Owner | undefined> {
  const holder = await stores.holder(key);
  if (holder === undefined) return undefined;
  const { pid, bootId } = holder.process;
  if (bootId !== currentProcess("").bootId) return { pid, isAlive: "unknown" };
  return isRunning(holder.process) ? { pid, isAlive: true } : undefined;
}
