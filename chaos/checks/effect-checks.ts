import { type CallGate, type Entry, type EntryOf, gateToldBy } from "../../src/state/index.ts";
import type { AgentEvidence } from "../../src/testing/simulation/evidence.ts";
import type { Attempt } from "../ledger/effect-ledger.ts";

/** The ledger's attempts by key. */
export type AttemptsByKey = ReadonlyMap<string, readonly Attempt[]>;

export function byKey(attempts: readonly Attempt[]): AttemptsByKey {
  return Map.groupBy(attempts, ({ key }) => key);
}

/** The last gate of each call, by its id. */
export function gatesIn(entries: readonly Entry[]): ReadonlyMap<string, CallGate> {
  return new Map(
    entries.flatMap((entry) => {
      const gate = gateToldBy(entry);
      return gate && "callId" in entry && entry.callId !== undefined ? [[entry.callId, gate]] : [];
    }),
  );
}

/** Tools of chaos/worker-agents.ts whose `once` calls can be reconciled with the ledger. */
const reconcilable: ReadonlySet<string> = new Set(["book"]);

/**
 * Compares the ledger with the journal: a keyed call has one effect, a `once` call at most one, and every success has an
 * effect. `isLate` returns true for attempts of a stalled process that was given up; a process that asked the ledger
 * earlier could not know of them.
 */
export function effectViolations(
  { entries }: AgentEvidence,
  ledger: AttemptsByKey,
  isLate: (attempt: Attempt) => boolean = () => false,
): string[] {
  const gates = gatesIn(entries);
  return entries.flatMap((entry) => {
    if (entry.type !== "tool.settled") return [];
    const gate = gates.get(entry.callId);
    if (gate?.kind !== "function") return [];
    const attempts = ledger.get(entry.callId) ?? [];
    return callViolations(entry, gate.effect, { attempts, isLate }).map(
      (text) => `${entry.callId} (${entry.name}): ${text}`,
    );
  });
}

/**
 * Whether an attempt came after another process had taken over the agent of the call: that process may have asked the ledger before. On a
 * busy machine a live process is silent for longer than its lease.
 */
export function isAfterTakeover(agents: readonly AgentEvidence[]): (attempt: Attempt) => boolean {
  const takenAt = new Map<string, number>();
  for (const { entries } of agents) {
    const started = new Map<string, number>();
    for (const entry of entries) {
      if (entry.type === "tool.started" && !started.has(entry.callId)) started.set(entry.callId, entry.epoch);
      for (const [callId, epoch] of started) {
        if (entry.epoch > epoch && !takenAt.has(callId)) takenAt.set(callId, entry.at);
      }
    }
  }
  return ({ key, at }) => at >= (takenAt.get(key) ?? Infinity);
}

function callViolations(
  { outcome, name, error }: EntryOf<"tool.settled">,
  effect: "none" | "keyed" | "once",
  { attempts, isLate }: { readonly attempts: readonly Attempt[]; readonly isLate: (attempt: Attempt) => boolean },
): string[] {
  const effects = attempts.filter(({ applied }) => applied).length;
  const violations: string[] = [];
  // The queue gave up the call because its workers died too often, so its effects are unknown.
  const isGivenUp = outcome === "error" && error?.code.startsWith("job_") === true;
  if (isGivenUp) return effect !== "none" && effects > 1 ? [`a call that was given up had ${effects} effects`] : [];
  if (effect === "keyed" && effects !== 1) violations.push(`a keyed call had ${effects} effects`);
  if (effect === "once" && effects > 1) violations.push(`a once call had ${effects} effects`);
  if (outcome === "success" && effects === 0) violations.push("its outcome is success, but it had no effect");
  if (effect !== "once" && outcome !== "success") violations.push(`it may be repeated, but ended ${outcome}`);
  if (effect === "once" && !reconcilable.has(name) && outcome !== "success" && outcome !== "outcome_unknown") {
    violations.push(`its outcome is unknown, but it ended ${outcome}`);
  }
  if (reconcilable.has(name)) {
    if (outcome === "outcome_unknown") violations.push("the ledger had its outcome, which was ignored");
    const known = attempts.filter((attempt) => attempt.applied && !isLate(attempt)).length;
    if (outcome === "error" && known > 0) violations.push("its outcome is error, but it had an effect");
  }
  return violations;
}

/** Calls whose result was committed before a process died are not attempted afterwards. */
export function repeatedAttempts(
  before: readonly AgentEvidence[],
  attemptsBefore: AttemptsByKey,
  attemptsAfter: AttemptsByKey,
  hookPrefix: string,
): string[] {
  const done = before.flatMap(({ entries }) =>
    entries.flatMap((entry) => {
      if (entry.type === "tool.settled") return [entry.callId];
      if (entry.type === "hook.applied") return [`${hookPrefix}${entry.turnId}:${entry.step}:${entry.hook}`];
      return [];
    }),
  );
  return done.flatMap((key) => {
    const more = (attemptsAfter.get(key)?.length ?? 0) - (attemptsBefore.get(key)?.length ?? 0);
    return more > 0 ? [`${key}: its result was committed, and it was attempted ${more} times more`] : [];
  });
}
