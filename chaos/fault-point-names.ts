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
  "tool.noted",
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
  "webhook.sent",
] as const;

/**
 * No turn of chaos/worker-agents.ts passes these: it opens no requests, its tools use no queue and return no parts, nothing
 * is compacted, no store is a projection, and there is no server. F21 covers the first; test/remote and test/server/a2a
 * cover those of calls in parts and of webhooks.
 */
export const pointsElsewhere: ReadonlySet<string> = new Set([
  "request.opened",
  "tool.queued",
  "tool.claimed",
  "tool.body",
  "tool.posted",
  "tool.noted",
  "compact.effect",
  "compact.result",
  "child.awaited",
  "wait.begun",
  "wait.result",
  "projection.written",
  "webhook.sent",
]);

export type FaultPointName = (typeof faultPointNames)[number];
