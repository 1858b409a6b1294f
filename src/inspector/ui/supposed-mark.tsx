import type { Axis } from "../run-model/axis.ts";
import type { RunSession } from "./run-session.ts";
import type { Window } from "./timeline-state.ts";

interface MarkProps {
  readonly run: RunSession;
  readonly axis: Axis;
  /** The visible range of the axis. */
  readonly view: Window;
  /** In pixels. */
  readonly width: number;
}

/** Marks where the run would have ended under the tried limit. Draws nothing on an axis of amounts. */
export function SupposedMark({ run, axis, view, width }: MarkProps) {
  const end = run.supposing.outcome.value?.end;
  const place = end && axis.positionOf(end.time);
  if (place == null) return null;
  const share = (Math.min(1, place / axis.length) - view.from) / (view.to - view.from);
  if (share < 0 || share > 1) return null;
  return (
    <span
      class="supposed-mark"
      role="img"
      aria-label="End under the limit that is tried"
      style={{ left: `${share * width}px` }}
    />
  );
}
