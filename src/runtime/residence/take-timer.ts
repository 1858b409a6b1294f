import { turnAccountId } from "../../budget/index.ts";
import { signalOfLimit, type Timer } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { Activation } from "../agent/activation.ts";

type LimitTimer = Extract<Timer, { kind: "limit" }>;
type WaitTimer = Extract<Timer, { kind: "wait" }>;

/** What an alarm that is due calls for in its agent. Gives the agents that were posted to. */
export async function takeTimer(
  stores: Stores,
  activation: Activation,
  timer: LimitTimer | WaitTimer,
): Promise<readonly string[]> {
  if (timer.kind === "limit") return await takeLimit(stores, activation, timer);
  takeWait(activation, timer);
  return [];
}

/**
 * A limit on time has run out: the open turn hears of it where it spends under the account, and so does whatever goes on in
 * the background there.
 */
async function takeLimit(stores: Stores, activation: Activation, timer: LimitTimer): Promise<readonly string[]> {
  const { key, identity, clock, definition } = activation;
  const { accountId, limit, id } = timer;
  const holder = { name: definition.name, kinship: "own" } as const;
  const accounts = await stores.accounts(key.tenant, identity.rootAgentId);
  const max = accounts.find((account) => account.id === accountId)?.limits[limit];
  const used = limit === "deadlineAt" ? clock.now() : max;
  const signal = signalOfLimit(limit, accountId, { holder, used, max });
  const command = { turnId: null, accountId, by: key.agentId, reason: signal.message, stopReason: signal.reason };
  const outcome = await stores.abort(key, command, clock.now());
  const parents = new Map(accounts.map((account) => [account.id, account.parentId]));
  const turnId = activation.openTurnId;
  for (let at = turnId === null ? null : turnAccountId(turnId); at !== null; at = parents.get(at) ?? null) {
    if (at !== accountId || turnId === null) continue;
    activation.append({ type: "timer.due", turnId, timerId: id, signal });
  }
  activation.writer.clearTimer(id);
  return outcome.type === "notFound" ? [] : outcome.posted;
}

/** A call has waited long enough for children in the background. */
function takeWait(activation: Activation, { turnId, callId, id }: WaitTimer): void {
  const call = activation.openTurnId === turnId ? activation.call(turnId, callId) : undefined;
  if (call?.wait && call.outcome === null) activation.append({ type: "call.expired", turnId, step: call.step, callId });
  activation.writer.clearTimer(id);
}
