import type { RunLog } from "./run-log.ts";
import type { Span, Timeline } from "./timeline.ts";

/** By agent index, the spans without which the run would have ended sooner. */
export type CriticalPath = ReadonlyMap<number, ReadonlySet<Span>>;

/**
 * The spans that determined how long the run took. Goes backwards from the end, always to the span that ended last, and
 * through the child that was waited for longest.
 */
export function criticalPath({ agents, startedAt }: RunLog, timeline: Timeline, present: number): CriticalPath {
  const path = new Map<number, Set<Span>>();
  const walk = (agent: number, from: number, to: number): void => {
    const own = path.get(agent) ?? new Set();
    let time = to;
    while (time > from) {
      const span = lastBefore(timeline.spansOf(agent), from, time);
      if (!span || own.has(span)) return;
      path.set(agent, own.add(span));
      if (span.kind === "child") {
        const last = lastChild(agents[agent]?.children ?? [], span.start, time + 5);
        if (last) walk(last.child, span.start, Math.min(last.end, time));
      }
      time = Math.min(span.start, time - 0.001);
    }
  };
  const lastChild = (children: readonly number[], from: number, to: number) => {
    let last: { readonly child: number; readonly end: number } | undefined;
    for (const child of children) {
      const end = Math.min(timeline.spansOf(child).at(-1)?.end ?? 0, present);
      if (end > from && end <= to && end > (last?.end ?? 0)) last = { child, end };
    }
    return last;
  };
  for (const { index, parent } of agents) if (parent < 0) walk(index, startedAt, present);
  return path;
}

/** The span that ended last within a time range. */
function lastBefore(spans: readonly Span[], from: number, until: number): Span | undefined {
  let last: Span | undefined;
  for (const span of spans) {
    if (span.start >= until) break;
    if (span.end > from && Math.min(span.end, until) > Math.min(last?.end ?? from, until)) last = span;
  }
  return last;
}
