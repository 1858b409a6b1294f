import type { CallEndedItem, EntryOf, QueuedCall } from "../../src/state/index.ts";
import { JOB_LOOK_MS, type JobTimer, type Stores } from "../../src/stores/index.ts";
import { type MakeEntry, toolStarted } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { agentKey, LEASE_MS, type OpenOptions, type Owner, openAgent } from "./stores-fixtures.ts";

export const CALL = `${TURN}:1:0`;
const ofCall = { turnId: TURN, step: 1, callId: CALL } as const;

/** A root agent with its first turn open. */
export async function openTurn(stores: Stores, options: OpenOptions = {}): Promise<Owner> {
  const owner = await openAgent(stores, options);
  await stores.openTurn(owner.key, { input: "go", actorId: null, limits: null, ifBusy: "refuse" }, NOW);
  await owner.commit({ acknowledged: (await stores.inbox(owner.key)).map(({ key }) => key) });
  return owner;
}

/** The same agent with a call that waits in the queue "browser". */
export async function withQueued(stores: Stores, changes: Partial<EntryOf<"tool.started">> = {}): Promise<Owner> {
  const owner = await openTurn(stores);
  await owner.commit({ entries: [toolStarted({ queue: "browser", ...changes })] });
  return owner;
}

export const callSettled: MakeEntry = (envelope) => ({
  type: "tool.settled",
  ...envelope,
  ...ofCall,
  name: "search",
  outcome: "success",
  messageId: "result",
  durationMs: 1,
  error: null,
  artifactId: null,
});

export const callRetrying: MakeEntry = (envelope) => ({
  type: "tool.retrying",
  ...envelope,
  ...ofCall,
  attempt: 1,
  error: { code: "tool_failed", message: "no", retryable: true },
  retryAt: NOW,
});

export function ended(text = "found it", attempt = 1): CallEndedItem {
  const end = { type: "settled", outcome: "success", text, error: null } as const;
  return { kind: "call.ended", key: "given by the stores", at: NOW, ...ofCall, attempt, end };
}

/** The agent's queued calls according to its record. */
export async function queuedIn(stores: Stores, key = agentKey()): Promise<Readonly<Record<string, QueuedCall>>> {
  return (await stores.readAgent(key))?.queued ?? {};
}

/** The timer of that call. */
export const alarm: JobTimer = {
  kind: "job",
  tenant: TENANT,
  agentId: ROOT,
  id: `job:${CALL}#1`,
  dueAt: NOW + JOB_LOOK_MS,
  turnId: TURN,
  callId: CALL,
  attempt: 1,
  queue: "browser",
};

/** Claims the call for a process, which must be registered. */
export async function claimed(stores: Stores, processId: string, { steady = NOW, attempt = 1, key = agentKey() } = {}) {
  return await stores.claimCall(key, { callId: CALL, attempt, processId, leaseMs: LEASE_MS }, steady);
}
