import type { AgentRequest } from "../../src/index.ts";
import type { EntryOf } from "../../src/state/index.ts";
import type { AgentEvidence } from "../../src/testing/simulation/evidence.ts";
import type { Attempt } from "../ledger/effect-ledger.ts";
import type { AttemptsByKey } from "./effect-checks.ts";

/** The ledger's name for the effect of a call with these arguments. */
export type DeedOf = (name: string, args: AgentRequest["arguments"]) => string;

/**
 * Compares the decisions with the journal and the ledger: every call made one request and was decided once, nothing ran
 * before or without its approval, and every call ran with the approved arguments (F21).
 */
export function decisionViolations(
  agent: AgentEvidence,
  requests: readonly AgentRequest[],
  ledger: AttemptsByKey,
  deedOf: DeedOf,
): string[] {
  const asked = new Set(requests.map(({ callId }) => callId));
  const unasked = agent.entries.flatMap((entry) =>
    entry.type === "tool.started" && !asked.has(entry.callId) ? [`${entry.callId}: it ran without a request`] : [],
  );
  return [
    ...unasked,
    ...requests.flatMap((request) => {
      const isFirst = requests.find(({ callId }) => callId === request.callId) === request;
      const attempts = ledger.get(request.callId) ?? [];
      return [
        ...(isFirst ? [] : ["it was asked about twice"]),
        ...journalFaults(agent, request),
        ...(isAllowed(request) ? effectFaults(agent, request, attempts, deedOf) : refusalFaults(request, attempts)),
      ].map((text) => `${request.requestId}: ${text}`);
    }),
  ];
}

function isAllowed({ decision }: AgentRequest): boolean {
  return decision?.verdict === "approved" || decision?.verdict === "edited";
}

/** The request is opened once and decided once, as stored, and the call does not start before. */
function journalFaults({ entries }: AgentEvidence, { requestId, callId, status, decision }: AgentRequest): string[] {
  if (status !== "decided" || !decision) return [`it is ${status}, though its turn has ended`];
  const opened = entries.filter((entry) => entry.type === "request.opened" && entry.requestId === requestId);
  const decided = entries.filter((entry) => entry.type === "request.decided" && entry.requestId === requestId);
  const [entry] = decided;
  const faults: string[] = [];
  if (opened.length !== 1) faults.push(`it was opened ${opened.length} times`);
  if (decided.length !== 1) faults.push(`its decision was journalled ${decided.length} times`);
  if (entry?.type === "request.decided" && (entry.verdict !== decision.verdict || entry.by !== decision.by)) {
    faults.push(
      `it is stored as ${decision.verdict} by ${decision.by}, but was journalled as ${entry.verdict} by ${entry.by}`,
    );
  }
  const early = entries.some(
    (one) => one.type === "tool.started" && one.callId === callId && one.seq < (entry?.seq ?? Infinity),
  );
  return early ? [...faults, "its call was started before the decision"] : faults;
}

function refusalFaults({ decision }: AgentRequest, attempts: readonly Attempt[]): string[] {
  return attempts.length > 0 ? [`it was ${decision?.verdict ?? "not decided"}, and its call was attempted`] : [];
}

function effectFaults(
  { entries }: AgentEvidence,
  request: AgentRequest,
  attempts: readonly Attempt[],
  deedOf: DeedOf,
): string[] {
  const { callId, name, decision } = request;
  const deed = deedOf(name, decision?.arguments ?? request.arguments);
  const faults = attempts.flatMap(({ tool }) =>
    tool === deed ? [] : [`"${deed}" was approved, and "${tool}" was attempted`],
  );
  const effects = attempts.filter(({ applied }) => applied).length;
  const settled = entries.find((entry): entry is EntryOf<"tool.settled"> => {
    return entry.type === "tool.settled" && entry.callId === callId;
  });
  const gate = entries.find((entry): entry is EntryOf<"call.gated"> => {
    return entry.type === "call.gated" && entry.callId === callId;
  });
  if (effects > 1) faults.push(`it had ${effects} effects`);
  if (settled?.outcome === "success" && effects === 0) faults.push("its outcome is success, but it had no effect");
  const mayBeUnknown = gate?.effect === "once";
  if (settled?.outcome !== "success" && !(mayBeUnknown && settled?.outcome === "outcome_unknown")) {
    faults.push(`it was ${decision?.verdict}, and ended ${settled?.outcome ?? "not at all"}`);
  }
  return faults;
}
