import type { AgentDefinition } from "../../agents/index.ts";
import { StoreUnavailableError } from "../../errors/index.ts";
import type { ToolJob } from "../../queues/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  type CallState,
  type Entry,
  type Message,
  type QueuedCall,
  queuedCallKey,
  type TurnState,
} from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { Tool } from "../../tools/index.ts";
import { MachineFold } from "./rebuild.ts";

/** Beside its own time a tool is given so long, in milliseconds: for secrets, the claim, and its end to be posted. */
const SPARE_MS = 60_000;
const LONGEST_MS = 2 ** 31 - 1;

/** How long a run of the job may take in all: the tool's own time-out is kept by whoever runs it. */
export function timeoutOfJob(tool: Tool<never>): number {
  return Math.min(Math.ceil(tool.timeoutMs) * (tool.reconcile ? 2 : 1) + SPARE_MS, LONGEST_MS);
}

export interface QueuedCallPlace {
  readonly stores: Stores;
  readonly tenant: string;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
}

/** A queued call that has not ended, as the stores have it. */
export interface WaitingCall {
  readonly key: AgentKey;
  readonly record: AgentRecord;
  readonly queued: QueuedCall;
}

/** Such a call with all that its tool may know of it. */
export interface KnownCall extends WaitingCall {
  readonly definition: AgentDefinition;
  readonly turn: TurnState;
  readonly call: CallState;
  /** Of the open turn, in order. */
  readonly entries: readonly Entry[];
  /** Those that its entries name. */
  readonly messages: ReadonlyMap<string, Message>;
}

/** Undefined when the call has ended, or the agent goes on without it. Throws a retryable error for another tenant's. */
export async function waitingCall(
  { stores, tenant: ours }: QueuedCallPlace,
  { tenant, agentId, callId, attempt }: ToolJob,
): Promise<WaitingCall | undefined> {
  if (tenant !== ours) {
    throw new StoreUnavailableError(`call ${callId} is of tenant "${tenant}"; this worker is of "${ours}"`);
  }
  const key = { tenant, agentId };
  const record = await stores.readAgent(key);
  const queued = record?.queued?.[queuedCallKey({ callId, attempt })];
  return record && queued && !queued.isEnded ? { key, record, queued } : undefined;
}

/** Undefined when the call is not open any more, or this process does not know its agent's definition. */
export async function knownCall(
  { stores, definitions }: QueuedCallPlace,
  waiting: WaitingCall,
): Promise<KnownCall | undefined> {
  const { key, record, queued } = waiting;
  const definition = definitions.get(record.definition.name);
  if (!definition) return undefined;
  const fold = new MachineFold(record.checkpoint);
  for (const row of await stores.readJournal(key, (record.checkpoint?.seq ?? 0) + 1)) {
    for (const entry of row.entries) fold.apply(entry);
  }
  const { turn } = fold;
  const call = fold.call(queued.callId);
  if (!turn || !call || call.outcome !== null || call.attempt !== queued.attempt) return undefined;
  const entries = fold.turnEntries;
  const messages = await stores.messagesById(key, entries.flatMap(messageIdsOf));
  return {
    ...waiting,
    definition,
    turn,
    call,
    entries,
    messages: new Map(messages.map((message) => [message.id, message])),
  };
}

/** The input of the turn, and what its tools have given. */
function messageIdsOf(entry: Entry): readonly string[] {
  if (entry.type === "turn.started") return entry.inputMessageIds;
  return entry.type === "tool.settled" ? [entry.messageId] : [];
}

/** The tool as this process has it, if the agent was granted it. What a job or a model says grants nothing (S14). */
export function toolOf({ definition, call, record: { grantedTools } }: KnownCall): Tool<never> | undefined {
  const tool = definition.tools.get(call.name);
  if (tool?.kind !== "function" || (grantedTools && !grantedTools.includes(call.name))) return undefined;
  return tool;
}
