import type { Entry } from "../../state/index.ts";
import type { AgentEvidence } from "./evidence.ts";

/** Invariants of every journal at every moment: no gaps, and a legal order. */
export function journalViolations({ agentId, entries }: AgentEvidence): string[] {
  return [...sequenceViolations(entries), ...turnViolations(entries), ...callViolations(entries)].map(
    (text) => `${agentId}: ${text}`,
  );
}

function sequenceViolations(entries: readonly Entry[]): string[] {
  const violations: string[] = [];
  let epoch = 0;
  let at = 0;
  for (const [index, entry] of entries.entries()) {
    if (entry.seq !== index + 1) violations.push(`entry ${index + 1} has seq ${entry.seq}`);
    if (entry.epoch < epoch) violations.push(`seq ${entry.seq} has epoch ${entry.epoch} after epoch ${epoch}`);
    if (entry.at < at) violations.push(`time goes back at seq ${entry.seq}`);
    ({ epoch, at } = entry);
  }
  return violations;
}

function turnViolations(entries: readonly Entry[]): string[] {
  const violations: string[] = [];
  let open: string | undefined;
  let last: string | undefined;
  let number = 0;
  for (const entry of entries) {
    if (entry.type === "turn.started") {
      if (open !== undefined) violations.push(`turn ${entry.turnId} began inside turn ${open}`);
      if (entry.number !== number + 1) violations.push(`turn ${entry.number} follows turn ${number}`);
      number = entry.number;
      open = entry.turnId;
    } else if (entry.type === "turn.ended") {
      if (open !== entry.turnId) violations.push(`turn ${entry.turnId} ended, but ${open ?? "none"} was open`);
      open = undefined;
      last = entry.turnId;
    } else if (entry.type === "budget.warning" && open === undefined && entry.turnId === last) {
      // Entries about the use of the turn's last commit may follow its end.
      continue;
    } else if ("turnId" in entry && entry.turnId !== undefined && entry.turnId !== open) {
      violations.push(`${entry.type} at seq ${entry.seq} belongs to turn ${entry.turnId}, which is not open`);
    }
  }
  return violations;
}

/** One answer per step, one result per call, and every result before the next request (F23). */
function callViolations(entries: readonly Entry[]): string[] {
  const violations: string[] = [];
  const answered = new Set<string>();
  const settled = new Set<string>();
  const applied = new Set<string>();
  let unsettled = new Set<string>();
  for (const entry of entries) {
    switch (entry.type) {
      case "model.requested":
        if (unsettled.size > 0)
          violations.push(`a model call at seq ${entry.seq} without results of ${list(unsettled)}`);
        if (answered.has(stepOf(entry))) violations.push(`step ${stepOf(entry)} is asked again at seq ${entry.seq}`);
        break;
      case "model.responded":
        if (answered.has(stepOf(entry))) violations.push(`step ${stepOf(entry)} has a second answer, seq ${entry.seq}`);
        answered.add(stepOf(entry));
        unsettled = new Set(entry.calls.map(({ callId }) => callId));
        break;
      case "tool.started":
        if (settled.has(entry.callId)) violations.push(`${entry.callId} was started again after its result`);
        if (entry.effect === "once" && entry.attempt > 1)
          violations.push(`once call ${entry.callId} was started again`);
        break;
      case "tool.settled":
        if (settled.has(entry.callId)) violations.push(`${entry.callId} has a second result, seq ${entry.seq}`);
        if (!unsettled.delete(entry.callId)) violations.push(`${entry.callId} has a result, but was not called`);
        settled.add(entry.callId);
        break;
      case "hook.applied": {
        const key = `${entry.callId ?? entry.inputId ?? stepOf(entry)} ${entry.hook} ${entry.index}`;
        if (applied.has(key)) violations.push(`hook ${key} was applied twice`);
        applied.add(key);
        break;
      }
      case "turn.ended":
        if (unsettled.size > 0) violations.push(`turn ${entry.turnId} ended without results of ${list(unsettled)}`);
        unsettled = new Set();
        break;
      default:
    }
  }
  return violations;
}

function stepOf(entry: { readonly turnId: string; readonly step: number }): string {
  return `${entry.turnId}:${entry.step}`;
}

function list(ids: ReadonlySet<string>): string {
  return [...ids].join(", ");
}
