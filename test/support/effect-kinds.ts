/**
 * The effects of a runtime that are visible outside. For each kind a scene of `test/runtime/intent-first.test.ts` shows that its intent
 * is committed first. `test/architecture/effects.test.ts` finds the code in `src` that causes effects, and requires that each is
 * assigned to kinds of this list.
 */
export const scenes = {
  tools: ["model", "tool", "tool again", "tool in a worker", "job", "request", "code", "event", "result"],
  subagents: ["model", "tool", "generate", "subagent", "event", "result"],
  hooks: ["model", "summary", "tool", "hook", "code", "event", "result"],
  failures: ["model", "model again", "tool", "tool again", "reconcile", "event", "result"],
  queues: ["model", "wake", "job", "job again", "job withdrawn", "tool", "tool in a worker", "tool again"],
  timers: ["model", "tool", "deadline", "request", "expiry", "end of a wait", "event", "result"],
  remote: ["model", "remote message", "remote answer", "remote end", "request", "event", "result"],
  copies: ["model", "copy", "event", "result"],
  webhooks: ["webhook"],
} as const;

export type Scene = keyof typeof scenes;
export type EffectKind = (typeof scenes)[Scene][number];
