import { useLayoutEffect, useRef } from "preact/hooks";
import type { Axis } from "../run-model/axis.ts";
import { cleared, useSize } from "./canvas.ts";
import type { RunSession } from "./run-session.ts";
import { colour, shownTheme } from "./settings.ts";
import { shownOrder } from "./shown-agents.ts";
import { rowScroll, rowTops, scrollRowsTo, shownWindow } from "./timeline-state.ts";

/**
 * A small overview of all agents over the whole run, with a frame around the visible range. The timeline has keys for it.
 */
export function TimelineMap({ run, axis }: { readonly run: RunSession; readonly axis: Axis }) {
  const { element, size } = useSize();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [theme, order, tops, view, rows] = [
    shownTheme.value,
    shownOrder.value,
    rowTops.value,
    shownWindow.value,
    rowScroll.value,
  ];
  const all = Math.max(1, tops.at(-1) ?? 1, rows.height);
  useLayoutEffect(() => {
    if (canvas.current && size.width > 0) draw(canvas.current, size, { run, axis, order, tops, all });
  }, [size, theme, axis, order, tops, all]);
  const moveTo = (event: PointerEvent): void => {
    const box = element.current?.getBoundingClientRect();
    if (!box || box.width === 0) return;
    const width = view.to - view.from;
    const from = Math.max(0, Math.min(1 - width, (event.clientX - box.left) / box.width - width / 2));
    const top = ((event.clientY - box.top) / box.height) * all - rows.height / 2;
    shownWindow.value = { from, to: from + width };
    scrollRowsTo(Math.max(0, Math.min(all - rows.height, top)));
  };
  return (
    <div class="timeline-map">
      <div
        ref={element}
        class="map-box"
        aria-hidden="true"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          moveTo(event);
        }}
        onPointerMove={(event) => {
          if (event.currentTarget.hasPointerCapture(event.pointerId)) moveTo(event);
        }}
      >
        <canvas ref={canvas} />
        <span
          class="map-frame"
          style={{
            left: percent(view.from),
            width: percent(view.to - view.from),
            top: percent(rows.top / all),
            height: percent(Math.min(1, rows.height / all)),
          }}
        />
      </div>
    </div>
  );
}

function percent(share: number): string {
  return `${share * 100}%`;
}

interface Pictured {
  readonly run: RunSession;
  readonly axis: Axis;
  readonly order: readonly number[];
  readonly tops: readonly number[];
  readonly all: number;
}

/** Draw at most one agent per line of pixels. */
function draw(
  canvas: HTMLCanvasElement,
  { width, height }: { readonly width: number; readonly height: number },
  { run, axis, order, tops, all }: Pictured,
): void {
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const pen = cleared(canvas, width, height);
  if (!pen) return;
  const stride = Math.max(1, Math.floor(order.length / (2 * height)));
  const x = (place: number): number => (place / axis.length) * width;
  for (let row = 0; row < order.length; row += stride) {
    const y = ((tops[row] ?? 0) / all) * height;
    const tall = Math.max(0.75, (((tops[row + stride] ?? all) - (tops[row] ?? 0)) / all) * height * 0.8);
    const end = run.endOf(order[row] ?? 0);
    for (const span of run.timeline.spansOf(order[row] ?? 0)) {
      const range = axis.rangeOf(span, end);
      if (!range) continue;
      const left = x(range.from);
      pen.globalAlpha = span.kind === "child" ? 0.3 : 1;
      pen.fillStyle = colour(span.isFailed ? "bad" : `span-${span.kind}`);
      pen.fillRect(left, y, Math.max(0.75, x(range.to) - left), tall);
    }
  }
}
