/** Every fault point of the runtime, in the order in which a step passes them. A test compares it with the sources. */
export const faultPointNames = [
  "commit.before",
  "commit.after",
  "commit.acknowledged",
  "hook.effect",
  "hook.result",
  "model.intent",
  "model.effect",
  "model.result",
  "call.gated",
  "tool.intent",
  "generate.intent",
  "generate.effect",
  "generate.result",
  "tool.effect",
  "tool.result",
  "reconcile.effect",
  "child.intent",
  "child.result",
  "turn.result",
] as const;
export type FaultPointName = (typeof faultPointNames)[number];
