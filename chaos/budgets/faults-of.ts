import type { Account, Reservation } from "../../src/budget/index.ts";
import type { Holder } from "./holder.ts";
import { fits, LEAST_OUTPUT, type PlainCall, type Reference, sizeOf } from "./reference.ts";

export interface Seen {
  readonly accounts: readonly Account[];
  /** Keys of the waiting calls, as stored. */
  readonly line: readonly string[];
  /** Whether all agents that were told of free budget have asked again. */
  readonly isQuiet: boolean;
  readonly now: number;
}

/** The differences between the accounts and the reference. */
export function faultsOf(seen: Seen, reference: Reference, holders: readonly Holder[]): string[] {
  const { accounts, line, isQuiet, now } = seen;
  const faults = holders.flatMap(({ agentId, node }) => {
    const account = accounts.find(({ id }) => id === `turn:${agentId}#1`);
    return account ? amountFaults(account, reference, node) : [`account ${node} is gone`];
  });
  for (const key of reference.line.keys()) {
    if (!line.includes(key) && !reference.mayForget(key, now))
      faults.push(`${key} waits, but is missing in the stored queue`);
  }
  for (const { id, parentId, line: own } of accounts) {
    const waiting = parentId === null ? line.length : 0;
    if ((own?.waiting ?? 0) !== waiting)
      faults.push(`${id}: its number of waiting calls differs from the stored queue`);
  }
  return [...faults, ...(isQuiet ? quietFaults(reference) : [])];
}

function amountFaults(account: Account, reference: Reference, node: number): string[] {
  const { id, limits, used, reserved, models } = account;
  const out = reference.reserved(node);
  const spent = reference.used(node);
  const beyond = reference.beyond(node);
  const steps = reference.steps(node);
  const { maxTokens = Infinity, maxCostMicros = Infinity, maxSteps = Infinity, maxTreeSteps = Infinity } = limits;
  const ofModels = Object.values(models);
  const tokensOfModels = ofModels.reduce((sum, { inputTokens, outputTokens }) => sum + inputTokens + outputTokens, 0);
  const costOfModels = ofModels.reduce((sum, { costMicros }) => sum + costMicros, 0);
  const checks: readonly (readonly [boolean, string])[] = [
    [
      reserved.tokens === out.tokens && reserved.costMicros === out.micros,
      "reserved amounts differ from the calls in flight",
    ],
    [used.tokens === spent.tokens && used.costMicros === spent.micros, "used amounts differ from the settled calls"],
    [used.steps === steps.own && used.treeSteps === steps.tree, "steps differ from the steps made"],
    [tokensOfModels === used.tokens && costOfModels === used.costMicros, "use by model does not add up"],
    [used.tokens + reserved.tokens <= maxTokens + beyond.tokens, "over its tokens"],
    [used.costMicros + reserved.costMicros <= maxCostMicros + beyond.micros, "over its cost"],
    [used.steps <= maxSteps && used.treeSteps <= maxTreeSteps, "over its steps"],
  ];
  return checks.flatMap(([holds, fault]) => (holds ? [] : [`${id}: ${fault}`]));
}

/** After all agents have asked, each call that still waits must wait for another call. */
function quietFaults(reference: Reference): string[] {
  const faults: string[] = [];
  for (const [index, { call, blockedOn }] of [...reference.line.values()].entries()) {
    const isOut = [...reference.out.values()].some(({ holder }) =>
      reference.chain(holder).some((node) => reference.chain(call.holder).includes(node)),
    );
    if (!isOut) faults.push(`${call.key} waits, but no call is in flight`);
    if (index === 0 && reference.blockedOn(call).length === 0)
      faults.push(`${call.key} is first in the queue and fits, but still waits`);
    if (reference.isExhausted(call, [...blockedOn])) faults.push(`${call.key} waits, but can never be granted`);
  }
  return faults;
}

/** The faults of a grant. Call it before the reference records the grant. */
export function grantFaults(call: PlainCall, granted: Reservation, reference: Reference): string[] {
  const { outputTokens, tokens, costMicros } = granted;
  const size = sizeOf(call, reference.outputOf(call));
  const hasRoom = !reference.isExhausted(call) && reference.blockedOn(call).length === 0;
  return [
    ...(hasRoom ? [] : [`${call.key} was granted without room`]),
    ...(fits({ tokens, micros: costMicros }, size) ? [] : [`${call.key} got more than the limits leave`]),
    ...(outputTokens >= Math.min(call.outputTokens, LEAST_OUTPUT) ? [] : [`${call.key} got too little output`]),
  ];
}

/** The faults of telling the call to wait, and of refusing it permanently. */
export function refusalFaults(
  call: PlainCall,
  reference: Reference,
): { readonly mustWait: readonly string[]; readonly budget: readonly string[] } {
  if (reference.isExhausted(call)) {
    return { mustWait: [`${call.key} was told to wait, but can never be granted`], budget: [] };
  }
  const isAlone = [...reference.line.keys()].every((key) => key === call.key);
  const waitsForNobody = isAlone && reference.blockedOn(call).length === 0;
  return {
    mustWait: waitsForNobody ? [`${call.key} was told to wait, but no other call blocks it`] : [],
    budget: [`${call.key} was refused permanently although enough is left`],
  };
}
