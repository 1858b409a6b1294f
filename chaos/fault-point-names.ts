/** Every fault point of the runtime, in the order in which a step passes them. A test compares it with the sources. */
export const faultPointNames = [
  "turn.opened",
  "commit.before",
  "commit.after",
  "commit.acknowledged",
  "hook.effect",
  "hook.result",
  "model.intent",
  "model.effect",
  "model.result",
  "compact.effect",
  "compact.result",
  "call.gated",
  "request.opened",
  "tool.intent",
  "tool.queued",
  "tool.claimed",
  "tool.body",
  "tool.posted",
  "generate.intent",
  "generate.effect",
  "generate.result",
  "tool.effect",
  "tool.result",
  "reconcile.effect",
  "child.awaited",
  "wait.begun",
  "wait.result",
  "child.intent",
  "child.result",
  "turn.result",
  "projection.written",
] as const;

/**
 * No turn of chaos/worker-agents.ts passes these: nobody is asked there, no tool has a queue, nothing is compacted, and no
 * store is a projection.
 * F21 has the first.
 */
export const pointsElsewhere: ReadonlySet<string> = new Set([
  "request.opened",
  "tool.queued",
  "tool.claimed",
  "tool.body",
  "tool.posted",
  "compact.effect",
  "compact.result",
  "child.awaited",
  "wait.begun",
  "wait.result",
  "projection.written",
]);

export type FaultPointName = (typeof faultPointNames)[number];
