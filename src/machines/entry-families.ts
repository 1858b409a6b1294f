import type { Entry } from "../state/index.ts";

type Family<Type extends string> = Type extends `${infer First}.${string}` ? `${First}.*` : Type;
export type EntryFamily = Family<Entry["type"]>;

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
  "continuation.*": true,
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
 * the fold never sees (design, Machines: no transition depends on them).
 */
export function onEveryEntry<const Transition>(transition: Transition): Record<EntryFamily, Transition> {
  const transitions = Object.keys(families).map((family) => [family, transition] as const);
  return Object.fromEntries(transitions) as Record<EntryFamily, Transition>;
}
