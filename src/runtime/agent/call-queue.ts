import type { CallQueue, Withdrawal } from "../../actors/index.ts";
import type { AgentDefinition } from "../../agents/index.ts";
import { type Clock, type TraceHeaders, untilReached } from "../../base/index.ts";
import { StoreUnavailableError } from "../../errors/index.ts";
import type { Queues, ToolJob } from "../../queues/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  type CallEndedItem,
  callEndedKey,
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

/** The live agent whose calls are queued. */
interface QueueingAgent {
  readonly key: AgentKey;
  readonly epoch: number;
  readonly definition: AgentDefinition;
  traceOf(turnId: string, callId: string): TraceHeaders | undefined;
}

interface CallQueueDependencies {
  readonly queues: Queues;
  readonly stores: Stores;
  readonly clock: Clock;
  random(): number;
  /** Notifies agents that have new inbox items. */
  notify(agentIds: readonly string[]): void;
}

const LONGEST_DELAY_MS = 2 ** 31 - 1;

/** The queues as used by one live agent: it adds jobs and withdraws them. */
export function callQueueOf(agent: QueueingAgent, dependencies: CallQueueDependencies): CallQueue {
  const { key } = agent;
  const { queues, stores, clock } = dependencies;
  const random = (): number => dependencies.random();
  return {
    async add(call, signal) {
      const { queue, callId, attempt, retryAt } = call;
      if (queue === null) return;
      const tool = agent.definition.tools.get(call.name);
      const ours = tool?.kind === "function" ? tool : undefined;
      const isRepeatable = call.gate?.effect !== "once" && ours?.effect !== "once";
      const timeoutMs = ours && timeoutOfJob(ours);
      const delayMs = retryAt === null ? 0 : Math.min(Math.max(0, retryAt - clock.now()), LONGEST_DELAY_MS);
      const job = {
        ...key,
        callId,
        attempt,
        epoch: agent.epoch,
        isRepeatable,
        timeoutMs,
        ...agent.traceOf(call.turnId, callId),
      };
      const options = { priority: ours?.priority, delayMs };
      try {
        await untilReached(() => queues.add(queue, job, options), { clock, random, signal });
      } finally {
        // A recovered agent adds its calls again, and the end of a call may already be in the inbox. Taking that end aborts this
        // effect.
        await cancelIfOver(dependencies, queue, job);
      }
    },
    async withdraw(call, reason, signal) {
      const item = withdrawalOf(call, clock.now());
      const tries = { clock, random, signal };
      const { posted } = await untilReached(() => stores.postCallEnd(key, item), tries);
      const withdrawal = await untilReached(() => readWithdrawal(stores, key, call), tries);
      dependencies.notify(posted);
      // The worker of a job that stays in the queue reads from the store that the call is over.
      if (call.queue !== null)
        queues
          .cancel(call.queue, { ...key, callId: call.callId, attempt: call.attempt }, reason)
          .catch(() => undefined);
      return withdrawal;
    },
  };
}

/**
 * Removes a job that was added after its call had ended and its first job was removed by a worker. If that fails, the job stays
 * until a worker reads from the store that its call is over.
 */
export async function cancelIfOver(
  { queues, stores }: Pick<CallQueueDependencies, "queues" | "stores">,
  queue: string,
  job: Pick<ToolJob, "tenant" | "agentId" | "callId" | "attempt">,
): Promise<void> {
  const cancelled = waitingCall({ stores, tenant: job.tenant }, job).then(async (waiting) => {
    if (!waiting) await queues.cancel(queue, job, "its call has ended");
  });
  await cancelled.catch(() => undefined);
}

function withdrawalOf({ turnId, step, callId, attempt }: CallState, at: number): CallEndedItem {
  const key = callEndedKey({ callId, attempt });
  return { kind: "call.ended", key, at, turnId, step, callId, attempt, end: { type: "withdrawn" } };
}

/** Reads the outcome after the withdrawal was posted: no worker can claim the call any more, so inbox and record are final. */
async function readWithdrawal(stores: Stores, key: AgentKey, call: CallState): Promise<Withdrawal> {
  const name = callEndedKey(call);
  const posted = (await stores.inbox(key)).find((item) => item.key === name);
  if (posted?.kind === "call.ended" && posted.end.type !== "withdrawn") return { end: posted.end };
  const record = await stores.readAgent(key);
  return { isBegun: record?.queued?.[queuedCallKey(call)]?.claimedBy !== null };
}

/** Added to the tool's own time limit, in milliseconds, for credentials, the claim, and posting the end. */
const SPARE_MS = 60_000;
const LONGEST_MS = 2 ** 31 - 1;

/** Time limit of one run of the job, in milliseconds; the process that runs it enforces the tool's own time limit. */
function timeoutOfJob(tool: Tool<never>): number {
  return Math.min(Math.ceil(tool.timeoutMs) * (tool.reconcile ? 2 : 1) + SPARE_MS, LONGEST_MS);
}

interface QueuedCallDependencies {
  readonly stores: Stores;
  readonly tenant: string;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
}

/** A queued call without an end, as stored. */
export interface WaitingCall {
  readonly key: AgentKey;
  readonly record: AgentRecord;
  readonly queued: QueuedCall;
}

/** A queued call with all data that its tool may read. */
export interface KnownCall extends WaitingCall {
  readonly definition: AgentDefinition;
  readonly turn: TurnState;
  readonly call: CallState;
  /** The entries of the open turn, in order. */
  readonly entries: readonly Entry[];
  /** The messages that the entries refer to. */
  readonly messages: ReadonlyMap<string, Message>;
}

/** `undefined` if the call has ended or was withdrawn. Throws a retryable error for another tenant's call. */
export async function waitingCall(
  { stores, tenant: ours }: Pick<QueuedCallDependencies, "stores" | "tenant">,
  { tenant, agentId, callId, attempt }: Pick<ToolJob, "tenant" | "agentId" | "callId" | "attempt">,
): Promise<WaitingCall | undefined> {
  if (tenant !== ours) {
    throw new StoreUnavailableError(`call ${callId} is of tenant "${tenant}"; this worker is of "${ours}"`);
  }
  const key = { tenant, agentId };
  const record = await stores.readAgent(key);
  const queued = record?.queued?.[queuedCallKey({ callId, attempt })];
  return record && queued && !queued.isEnded ? { key, record, queued } : undefined;
}

/** `undefined` if the call is no longer open, or this process does not know its agent's definition. */
export async function knownCall(
  { stores, definitions }: QueuedCallDependencies,
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
    messages: messagesById(messages),
  };
}

/** The messages by id; one that was replaced has its new content, as in the process that owns the agent. */
function messagesById(messages: readonly Message[]): ReadonlyMap<string, Message> {
  const byId = new Map(messages.map((message) => [message.id, message]));
  for (const message of messages) {
    const original = message.role === "user" ? byId.get(message.replaces ?? "") : undefined;
    if (original) byId.set(original.id, { ...original, content: message.content } as Message);
  }
  return byId;
}

/** Ids of the turn's input, of messages of hooks, which may replace it, and of its tool results. */
function messageIdsOf(entry: Entry): readonly string[] {
  if (entry.type === "turn.started") return entry.inputMessageIds;
  if (entry.type === "hook.applied" && entry.hook === "afterUserInput") return entry.patch.addedMessageIds;
  return entry.type === "tool.settled" ? [entry.messageId] : [];
}

/** The tool in this process, if it was granted to the agent. Neither a job nor a model can grant tools. */
export function toolOf({ definition, call, record: { grantedTools } }: KnownCall): Tool<never> | undefined {
  const tool = definition.tools.get(call.name);
  if (tool?.kind !== "function" || (grantedTools && !grantedTools.includes(call.name))) return undefined;
  return tool;
}
