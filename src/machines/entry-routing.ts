import type { Entry, EntryType } from "../state/index.ts";

type Family<Type extends string> = Type extends `${infer First}.${string}` ? `${First}.*` : Type;
type EntryFamily = Family<Entry["type"]>;

const families: Record<EntryFamily, true> = {
  "agent.*": true,
  "conversation.*": true,
  "hooks.*": true,
  "messages.*": true,
  "output.*": true,
  "context.*": true,
  "request.*": true,
  "turn.*": true,
  "instructions.*": true,
  "hook.*": true,
  "stop.*": true,
  "timer.*": true,
  "budget.*": true,
  "effect.*": true,
  "model.*": true,
  "generate.*": true,
  "call.*": true,
  "tool.*": true,
  "child.*": true,
  "artifact.*": true,
  "intent.*": true,
  warning: true,
};

/**
 * The same transition for every kind of entry. A bare `*` would also match XState's own done and error events, which
 * the fold never sees: no transition depends on them (docs/architecture.md).
 */
export function onEveryEntry<const Transition>(transition: Transition): Record<EntryFamily, Transition> {
  const transitions = Object.keys(families).map((family) => [family, transition] as const);
  return Object.fromEntries(transitions) as Record<EntryFamily, Transition>;
}

/**
 * The entries that a machine reacts to. Other entries do not change its state, and sending them would cost a transition; both
 * live and in the fold they are skipped.
 */
const ofAgent: ReadonlySet<EntryType> = new Set<EntryType>([
  "agent.starting",
  "agent.started",
  "agent.pausing",
  "agent.paused",
  "agent.resumed",
  "agent.shutdown",
  "turn.started",
  "turn.ended",
  "child.spawned",
  "child.ended",
  "child.reported",
  "intent.refused",
  "budget.freed",
  "request.opened",
  "request.decided",
  "context.compacted",
  "conversation.cleared",
]);

const notOfTurn: ReadonlySet<EntryType> = new Set<EntryType>([
  "agent.starting",
  "agent.started",
  "agent.pausing",
  "agent.paused",
  "agent.shutdown",
  "artifact.saved",
  "budget.changed",
  "budget.warning",
  "call.expired",
  "call.gated",
  "tool.noted",
  "turn.waiting",
  "conversation.seeded",
  "conversation.cleared",
  "warning",
]);

export function agentHears(entry: Entry): boolean {
  return ofAgent.has(entry.type) || (entry.type === "tool.settled" && typeof entry.stub === "number");
}

export function turnHears(entry: Entry): boolean {
  return !notOfTurn.has(entry.type);
}

/** Whether the entry is sent to all calls of the turn, because it names no call and any of them may wait for it. */
export function allCallsHear(entry: Entry): boolean {
  if (entry.type === "child.ended") return entry.callId === undefined;
  return entry.type === "agent.resumed" || entry.type === "child.reported";
}
