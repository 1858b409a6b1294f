import type { Axis } from "../run-model/axis.ts";
import { divergedPlace } from "./replay-part.tsx";
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

/**
 * Marks where the run would have ended under the tried limit, and where its replay diverged. Draws nothing on an axis of amounts.
 */
export function RunMarks(props: MarkProps) {
  const end = props.run.supposing.outcome.value?.end;
  const diverged = divergedPlace.value;
  return (
    <>
      {end && <Mark {...props} time={end.time} label="End under the limit that is tried" />}
      {diverged >= 0 && (
        <Mark {...props} time={props.run.log.timeOf(diverged)} label="First divergence of the replay" />
      )}
    </>
  );
}

function Mark({ axis, view, width, time, label }: MarkProps & { readonly time: number; readonly label: string }) {
  const place = axis.positionOf(time);
  if (place == null) return null;
  const share = (Math.min(1, place / axis.length) - view.from) / (view.to - view.from);
  if (share < 0 || share > 1) return null;
  return (
    <span class="supposed-mark" role="img" aria-label={label} title={label} style={{ left: `${share * width}px` }} />
  );
}
