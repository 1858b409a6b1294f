import type { RunLog } from "./run-log.ts";
import type { Span, Timeline } from "./timeline.ts";

/** A span without which the run would have ended sooner. */
export interface CriticalSpan {
  /** Place of the agent in the log. */
  readonly agent: number;
  readonly span: Span;
}

/**
 * What determined how long a run took until a time: from its end backwards the span that ended last, and within a wait for
 * subagents those of the subagent that ended last.
 */
export function criticalPath(log: RunLog, timeline: Timeline, until: number): CriticalSpan[] {
  const path = new Map<Span, number>();
  const { agents } = log;
  const walk = (agent: number, from: number, to: number): void => {
    let time = to;
    while (time > from) {
      const end = time;
      const before = timeline.spansOf(agent).filter((span) => span.start < end && span.end > from);
      const span = before.toSorted((one, other) => Math.min(other.end, end) - Math.min(one.end, end))[0];
      if (!span || path.has(span)) return;
      path.set(span, agent);
      if (span.kind === "child") {
        const last = (agents[agent]?.children ?? [])
          .map((child) => ({ child, end: Math.min(timeline.spansOf(child).at(-1)?.end ?? 0, until) }))
          .filter((child) => child.end > span.start && child.end <= end + 5)
          .toSorted((one, other) => other.end - one.end)[0];
        if (last) walk(last.child, span.start, Math.min(last.end, end));
      }
      time = Math.min(span.start, end - 0.001);
    }
  };
  for (const { index, parent } of agents) if (parent < 0) walk(index, log.startedAt, until);
  return [...path].map(([span, agent]) => ({ agent, span }));
}
