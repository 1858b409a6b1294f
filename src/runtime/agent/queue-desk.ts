import type { QueueDesk, Withdrawal } from "../../actors/index.ts";
import type { AgentDefinition } from "../../agents/index.ts";
import type { Clock, TraceHeaders } from "../../base/index.ts";
import type { Queues } from "../../queues/index.ts";
import { type AgentKey, type CallEndedItem, type CallState, callEndedKey, queuedCallKey } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { timeoutOfJob } from "./queued-call.ts";
import { untilReached } from "./until-reached.ts";

/** What is asked of a live agent. */
export interface QueueingAgent {
  readonly key: AgentKey;
  readonly epoch: number;
  readonly definition: AgentDefinition;
  traceOf(turnId: string, callId: string): TraceHeaders | undefined;
}

export interface QueueDeskPlace {
  readonly queues: Queues;
  readonly stores: Stores;
  readonly clock: Clock;
  random(): number;
  /** Somebody posted to these agents. */
  notify(agentIds: readonly string[]): void;
}

const LONGEST_DELAY_MS = 2 ** 31 - 1;

/** The queues as one live agent uses them: it says what is to be run, and takes it back. */
export function queueDesk(agent: QueueingAgent, place: QueueDeskPlace): QueueDesk {
  const { key } = agent;
  const { queues, stores, clock } = place;
  const random = (): number => place.random();
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
      await untilReached(() => queues.add(queue, job, options), { clock, random, signal });
    },
    async withdraw(call, reason, signal) {
      const item = withdrawalOf(call, clock.now());
      const tries = { clock, random, signal };
      const { posted } = await untilReached(() => stores.postCallEnd(key, item), tries);
      const withdrawal = await untilReached(() => whatStands(stores, key, call), tries);
      place.notify(posted);
      // A job that is left behind finds out in the store that it is over.
      if (call.queue !== null)
        queues
          .cancel(call.queue, { ...key, callId: call.callId, attempt: call.attempt }, reason)
          .catch(() => undefined);
      return withdrawal;
    },
  };
}

function withdrawalOf({ turnId, step, callId, attempt }: CallState, at: number): CallEndedItem {
  const key = callEndedKey({ callId, attempt });
  return { kind: "call.ended", key, at, turnId, step, callId, attempt, end: { type: "withdrawn" } };
}

/** No claim is given any more: what the inbox holds is how it ended, and what the record says of the claim is final. */
async function whatStands(stores: Stores, key: AgentKey, call: CallState): Promise<Withdrawal> {
  const name = callEndedKey(call);
  const posted = (await stores.inbox(key)).find((item) => item.key === name);
  if (posted?.kind === "call.ended" && posted.end.type !== "withdrawn") return { end: posted.end };
  const record = await stores.readAgent(key);
  return { isBegun: record?.queued?.[queuedCallKey(call)]?.claimedBy !== null };
}
