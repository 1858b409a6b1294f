import { type Message, textOf } from "../../src/index.ts";
import { callIdOf, type Entry } from "../../src/state/index.ts";
import type { AgentEvidence } from "../../src/testing/simulation/evidence.ts";
import { type ModelCallLine, sidePrefix, taskPrefix } from "../model/script.ts";

/** The model server's log against the journal of one agent. */
export function modelViolations(agent: AgentEvidence, log: readonly ModelCallLine[]): string[] {
  const { entries, messages } = agent;
  const violations: string[] = [];
  for (const turn of entries.filter((entry) => entry.type === "turn.started")) {
    const own = log.filter(({ task }) => task === taskOf(messages, turn.inputMessageIds[0]));
    for (const call of own)
      if (!call.isLegal) violations.push(`${turn.turnId}:${call.step}: a request with missing results`);
    const ofTurn = entries.filter((entry) => "turnId" in entry && entry.turnId === turn.turnId);
    violations.push(...stepViolations(turn.turnId, ofTurn, own), ...untold(ofTurn, own));
  }
  return [...violations, ...sideViolations(entries, log)];
}

function taskOf(messages: readonly Message[], messageId: string | undefined): string {
  const input = messages.find(({ id }) => id === messageId);
  return textOf(input?.content ?? "").slice(taskPrefix.length);
}

/** Every request that reached the model was granted in the journal. */
function stepViolations(turnId: string, entries: readonly Entry[], log: readonly ModelCallLine[]): string[] {
  const steps = new Set(log.map(({ step }) => step));
  return [...steps].flatMap((step) => {
    const granted = entries.filter((entry) => entry.type === "model.requested" && entry.step === step).length;
    const sent = log.filter((call) => call.step === step).length;
    return sent > granted
      ? [`${turnId}:${step}: the model was asked ${sent} times, the journal grants ${granted}`]
      : [];
  });
}

/** The request after a call with unknown outcome informs the model of it. */
function untold(entries: readonly Entry[], log: readonly ModelCallLine[]): string[] {
  return entries.flatMap((entry) => {
    if (entry.type !== "tool.settled" || entry.outcome !== "outcome_unknown") return [];
    const { turnId, step, callId } = entry;
    const next = log.filter((call) => call.step === step + 1);
    const isTold = next.some(({ told }) =>
      told.some((one) => callIdOf(turnId, one.step, one.index) === callId && /not known/.test(one.text)),
    );
    return isTold ? [] : [`${callId}: its outcome is unknown, but the model was not informed`];
  });
}

/** Calls by hooks and tools: as many requests as granted, and none after their answer was committed. */
function sideViolations(entries: readonly Entry[], log: readonly ModelCallLine[]): string[] {
  const granted = new Map<string, number>();
  const answered = new Set<string>();
  const violations: string[] = [];
  for (const entry of entries) {
    if (entry.type !== "generate.requested" && entry.type !== "generate.responded") continue;
    const asked = sideTaskOf(entry);
    if (entry.type === "generate.responded") answered.add(asked);
    else {
      if (answered.has(asked)) violations.push(`${asked}: asked again after its answer`);
      granted.set(asked, (granted.get(asked) ?? 0) + 1);
    }
  }
  for (const [asked, count] of granted) {
    const sent = log.filter(({ task }) => task === asked).length;
    if (sent > count) violations.push(`${asked}: the model was asked ${sent} times, the journal grants ${count}`);
  }
  return violations;
}

/** The names in side calls of chaos/worker-agents.ts: the running call, or the hook's position. */
export function sideTaskOf(entry: { readonly run: string; readonly turnId: string; readonly step: number }): string {
  const isCall = entry.run.startsWith(entry.turnId);
  return `${sidePrefix}${isCall ? entry.run : `${entry.turnId}:${entry.step}:beforeLlm`}`;
}

/** Calls whose answer was committed before a process died are not requested afterwards. */
export function repeatedRequests(
  before: readonly AgentEvidence[],
  logBefore: number,
  log: readonly ModelCallLine[],
): string[] {
  const later = log.slice(logBefore);
  return before.flatMap(({ entries, messages }) => {
    const tasks = new Map(
      entries.flatMap((entry) =>
        entry.type === "turn.started" ? [[entry.turnId, taskOf(messages, entry.inputMessageIds[0])]] : [],
      ),
    );
    return entries.flatMap((entry) => {
      if (entry.type === "generate.responded") {
        const asked = sideTaskOf(entry);
        return later.some(({ task }) => task === asked) ? [`${asked}: answered, and asked again`] : [];
      }
      if (entry.type !== "model.responded") return [];
      const task = tasks.get(entry.turnId);
      const again = later.some((call) => call.task === task && call.step === entry.step);
      return again ? [`${entry.turnId}:${entry.step}: its answer was committed, and the model was asked again`] : [];
    });
  });
}
