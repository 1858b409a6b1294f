import { useEffect, useRef, useState } from "preact/hooks";
import { useSize } from "./canvas.ts";
import {
  type Camera,
  centred,
  fitted,
  LEAST_NEAR_SCALE,
  middleOf,
  nearLayout,
  type Position,
  stateAt,
  wholeLayout,
  zoomedAt,
} from "./chart-camera.ts";
import { ChartParts } from "./chart-parts.tsx";
import type { Chart } from "./chart.ts";
import type { MachineMoment, MachineName } from "./machine-history.ts";
import { Icon } from "./parts.tsx";

const MOST_SCALE = 2.5;
/** Initial scale of the near layout: small enough to show much context, large enough to read. */
const NEAR_SCALE = LEAST_NEAR_SCALE;
/** Pinch factor that switches to the near layout. */
const PINCH = 1.15;

/** A chart in the near layout. Without a position it follows the active state. */
interface NearView {
  readonly scale: number;
  readonly at?: Position;
}

interface DrawingProps {
  readonly chart: Chart;
  readonly machine: MachineMoment | undefined;
  readonly name: MachineName;
  /** Name of the machine, such as "turn". */
  readonly what: string;
}

/** A chart with its active path: as a whole with state names, or zoomed in with all details. */
export function ChartDrawing({ chart, machine, name, what }: DrawingProps) {
  const { element, size } = useSize();
  const [near, setNear] = useState<NearView | null>(null);
  const layout = near ? nearLayout(chart) : wholeLayout(chart, size);
  const active = chart.states.findIndex(({ path }) => path === machine?.path);
  const camera: Camera = near
    ? near.at
      ? { scale: near.scale, ...near.at }
      : centred(layout, layout.boxes[active], near.scale, size)
    : fitted(layout, size);

  /** Zooms at a point or, by key, at the active state. */
  const zoom = (factor: number, point?: Position): void => {
    if (!near) {
      if (factor <= 1) return;
      const place = point && nearLayout(chart).boxes[stateAt(layout, camera, point)];
      if (!place || !point) setNear({ scale: NEAR_SCALE });
      else {
        const { x, y } = middleOf(place);
        setNear({ scale: NEAR_SCALE, at: { x: point.x - x * NEAR_SCALE, y: point.y - y * NEAR_SCALE } });
      }
      return;
    }
    const scale = Math.min(MOST_SCALE, near.scale * factor);
    if (scale < LEAST_NEAR_SCALE * 0.999) setNear(null);
    else if (!near.at && !point) setNear({ scale });
    else setNear({ scale, at: zoomedAt(camera, scale, point ?? { x: size.width / 2, y: size.height / 2 }) });
  };
  const move = (x: number, y: number): void => {
    if (near) setNear({ scale: near.scale, at: { x: camera.x + x, y: camera.y + y } });
  };
  const pointAt = (clientX: number, clientY: number): Position => {
    const { left, top } = element.current?.getBoundingClientRect() ?? { left: 0, top: 0 };
    return { x: clientX - left, y: clientY - top };
  };

  const wheel = useRef<((event: WheelEvent) => void) | undefined>(undefined);
  wheel.current = (event) => {
    const isZoom = event.ctrlKey || event.metaKey;
    if (!isZoom && !near) return;
    event.preventDefault();
    if (isZoom) zoom(event.deltaY > 0 ? 0.87 : PINCH, pointAt(event.clientX, event.clientY));
    else move(-event.deltaX, -event.deltaY);
  };
  useEffect(() => {
    const { current } = element;
    // Preact's wheel listeners are passive, but zooming must prevent scrolling.
    const listen = (event: WheelEvent): void => wheel.current?.(event);
    current?.addEventListener("wheel", listen, { passive: false });
    return () => current?.removeEventListener("wheel", listen);
  }, []);

  const pointers = useRef(new Map<number, Position>());
  const drag = (event: PointerEvent): void => {
    const before = pointers.current.get(event.pointerId);
    if (!before) return;
    const now = { x: event.clientX, y: event.clientY };
    const other = [...pointers.current].find(([id]) => id !== event.pointerId)?.[1];
    if (!other) move(now.x - before.x, now.y - before.y);
    else {
      const factor = distance(now, other) / distance(before, other);
      // The whole chart switches to the near layout in one step, so require a larger pinch.
      if (!near && factor < PINCH) return;
      zoom(factor, pointAt((now.x + other.x) / 2, (now.y + other.y) / 2));
    }
    pointers.current.set(event.pointerId, now);
  };
  const release = ({ pointerId }: PointerEvent): void => {
    pointers.current.delete(pointerId);
  };

  return (
    <div
      ref={element}
      class={near ? "chart-box near" : "chart-box"}
      tabIndex={0}
      role="group"
      aria-label={`Statechart of the ${what}`}
      onKeyDown={(event) => {
        if (event.key === "+") zoom(1.25);
        else if (event.key === "-") zoom(0.8);
        else if (event.key === "0") setNear(null);
        else if (event.key === "ArrowLeft") move(60, 0);
        else if (event.key === "ArrowRight") move(-60, 0);
        else if (event.key === "ArrowUp") move(0, 60);
        else if (event.key === "ArrowDown") move(0, -60);
        else return;
        event.preventDefault();
      }}
      onPointerDown={(event) => {
        if (event.target instanceof Element && event.target.closest("button")) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        pointers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
      }}
      onPointerMove={drag}
      onPointerUp={release}
      onPointerCancel={release}
    >
      <svg class="chart" width="100%" height="100%" role="img" aria-label={chartWords(machine)}>
        {size.width > 0 && (
          <g transform={`translate(${camera.x} ${camera.y}) scale(${camera.scale})`}>
            <ChartParts chart={chart} layout={layout} machine={machine} name={name} />
          </g>
        )}
      </svg>
      <span class="button-group chart-zoom">
        <button type="button" aria-label="Zoom out" title="Zoom out (-)" onClick={() => zoom(0.8)}>
          <Icon name="minus" />
        </button>
        <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => zoom(1.25)}>
          <Icon name="plus" />
        </button>
        <button
          type="button"
          aria-pressed={!near}
          aria-label="Whole chart"
          title="Whole chart (0)"
          onClick={() => setNear(null)}
        >
          <Icon name="fit" />
        </button>
      </span>
    </div>
  );
}

function distance(one: Position, other: Position): number {
  return Math.max(1, Math.hypot(one.x - other.x, one.y - other.y));
}

function chartWords(machine: MachineMoment | undefined): string {
  return machine ? `Active state: ${machine.path}. The table of transitions says how it got there.` : "No active state";
}
