import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Axis } from "../run-model/axis.ts";
import type { Span } from "../run-model/timeline.ts";
import { compact, dollars, milliseconds } from "./format.ts";
import { Check, Icon } from "./parts.tsx";
import type { RunSession } from "./run-session.ts";
import { shownTheme } from "./settings.ts";
import { SpanAside } from "./span-aside.tsx";
import { SpanTable, spanWords } from "./span-table.tsx";
import { drawRuler } from "./timeline-canvas.ts";
import { TimelineMap } from "./timeline-map.tsx";
import {
  barsWidth,
  isTable,
  measure,
  measures,
  openedSpan,
  openSpan,
  shownAxis,
  shownWindow,
  wholeRun,
  zoom,
} from "./timeline-state.ts";

/** The controls of the timeline. Its bars are in the rows of the tree below; a click on a bar shows its details. */
export function TimelineView({ run }: { readonly run: RunSession }) {
  useEffect(
    () => () => {
      shownWindow.value = wholeRun;
    },
    [run],
  );
  // Reading the axis updates the timeline's spans.
  const { kinds } = run.axis.value.length > 0 ? run.timeline : { kinds: new Set<Span["kind"]>() };
  const shownKinds = (["model", "tool", "child", "queue", "retry", "person", "budget", "pause"] as const).filter(
    (kind) => kinds.has(kind),
  );
  const axis = shownAxis.value;
  return (
    <div class="timeline">
      <div class="view-bar">
        <ul class="legend">
          {shownKinds.map((kind) => (
            <li key={kind}>
              <span class={`swatch ${kind}`} />
              {spanWords[kind]}
            </li>
          ))}
        </ul>
        <span class="spacer" />
        {!isTable.value && <ZoomButtons />}
        <span class="segments" role="group" aria-label="Width of calls">
          {measures.map((one) => (
            <button
              key={one}
              type="button"
              aria-pressed={one === measure.value}
              onClick={() => {
                measure.value = one;
                shownWindow.value = wholeRun;
              }}
            >
              {one}
            </button>
          ))}
        </span>
        <Check label="as a table" of={isTable} />
      </div>
      {isTable.value ? (
        <SpanTable run={run} opened={openedSpan.value?.span} onOpen={openSpan} />
      ) : (
        axis && (
          <>
            <TimelineMap run={run} axis={axis} />
            <Ruler run={run} axis={axis} />
          </>
        )
      )}
    </div>
  );
}

/** The details of the clicked bar. */
export function OpenedSpan({ run }: { readonly run: RunSession }) {
  const opened = openedSpan.value;
  if (!opened) return null;
  return <SpanAside run={run} {...opened} onClose={() => openSpan(null)} />;
}

function ZoomButtons() {
  return (
    <span class="button-group">
      <button type="button" aria-label="Zoom out" title="Zoom out (-)" onClick={() => zoom(2)}>
        <Icon name="minus" />
      </button>
      <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => zoom(0.5)}>
        <Icon name="plus" />
      </button>
      <button
        type="button"
        aria-label="Whole run"
        title="Whole run (0)"
        onClick={() => {
          shownWindow.value = wholeRun;
        }}
      >
        <Icon name="fit" />
      </button>
    </span>
  );
}

const RULER_HEIGHT = 28;

/** The axis above the bars. A click moves all views to that time. */
function Ruler({ run, axis }: { readonly run: RunSession; readonly axis: Axis }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const moment = run.moment.value;
  const [width, view, theme, by] = [barsWidth.value, shownWindow.value, shownTheme.value, measure.value];
  useLayoutEffect(() => {
    if (!canvas.current || width === 0) return;
    const label = (place: number): string => labelOf(run, axis, place);
    drawRuler(canvas.current, { run, width, height: RULER_HEIGHT, view, axis, label });
  }, [moment, axis, width, view, theme, by]);
  return (
    <div class="timeline-ruler">
      <canvas ref={canvas} onClick={({ offsetX }) => travelTo(run, axis, offsetX / Math.max(1, width))} />
    </div>
  );
}

/** Moves all views to the time at a share of the width. Does nothing on an axis of amounts. */
export function travelTo(run: RunSession, axis: Axis, share: number): void {
  const { from, to } = shownWindow.peek();
  const time = axis.timeAt((from + share * (to - from)) * axis.length);
  if (time === undefined) return;
  run.player.pause();
  run.pin(run.log.countUntil(time));
}

function labelOf(run: RunSession, axis: Axis, place: number): string {
  if (measure.value === "tokens") return compact(Math.round(place));
  if (measure.value === "cost") return dollars(place);
  return milliseconds((axis.timeAt(place) ?? 0) - run.log.startedAt);
}
