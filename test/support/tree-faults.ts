import { type Entry, isIntent } from "../../src/state/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { entriesOf, orderFault } from "./journal-probes.ts";
import { count, type Tally } from "./random-world.ts";

/** The faults in the stored data of a tree of agents when all of it is at rest. */
export async function faultsOfTree(stores: Stores, rootAgentId: string, tally: Tally): Promise<string[]> {
  const faults: string[] = [];
  const open = await stores.requests({ tenant: "default", rootAgentId, status: "open" });
  for (const { requestId } of open) faults.push(`request ${requestId} is open, and no turn waits for it`);
  for (const { id, reserved, activeCount } of await stores.accounts("default", rootAgentId)) {
    if (reserved.tokens > 0 || activeCount > 0) faults.push(`account ${id} is not at rest`);
  }
  for (const { agentId, openTurnId } of await stores.listAgents({ tenant: "default", rootAgentId })) {
    const entries = await entriesOf(stores, agentId);
    const found = [journalFault(entries), orderFault(await stores.messages({ tenant: "default", agentId }))];
    if (openTurnId !== null) found.push(`turn ${openTurnId} is open`);
    for (const fault of found) if (fault !== undefined) faults.push(`${agentId}: ${fault}`);
    for (const entry of entries) {
      if (entry.type === "turn.ended") count(tally.ended, entry.stopReason);
      if (entry.type === "tool.settled") count(tally.outcomes, entry.outcome);
      if (entry.type === "context.compacted") tally.compactions += 1;
    }
  }
  return faults;
}

/**
 * F23: no model call begins before each call of the answer before has its one result, after which nothing is proposed for it;
 * and each granted call of `generate()` ends once.
 */
function journalFault(entries: readonly Entry[]): string | undefined {
  const open = new Set<string>();
  const settled = new Set<string>();
  const generating = new Set<string>();
  for (const [index, entry] of entries.entries()) {
    if (entry.seq !== index + 1) return `entry ${index + 1} has seq ${entry.seq}`;
    if (entry.type === "model.responded") for (const { callId } of entry.calls) open.add(callId);
    if (entry.type === "tool.settled") {
      if (settled.has(entry.callId)) return `call ${entry.callId} has two results`;
      if (!open.delete(entry.callId)) return `call ${entry.callId} has a result, and was never asked for`;
      settled.add(entry.callId);
    }
    const isProposal = isIntent(entry) || entry.type === "intent.refused";
    if (isProposal && "callId" in entry && entry.callId !== undefined && settled.has(entry.callId)) {
      return `${entry.type} of call ${entry.callId} comes after its result`;
    }
    if (entry.type === "generate.requested" && entry.reservation) generating.add(`${entry.run} ${entry.index}`);
    if (entry.type === "generate.responded" || entry.type === "generate.failed") {
      if (!generating.delete(`${entry.run} ${entry.index}`)) return `${entry.run} has a second end of its generate()`;
    }
    if (entry.type === "model.requested" && entry.reservation && open.size > 0) {
      return `step ${entry.step} asks the model while ${[...open].join(", ")} have no result`;
    }
    if (entry.type === "turn.ended" && open.size > 0) return `a turn ended while ${[...open].join(", ")} had no result`;
  }
  return undefined;
}
