import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useSize } from "./canvas.ts";
import { type Chart, type ChartState, type ChartTransition, chartText, labelLines, pathOf } from "./chart.ts";
import { milliseconds } from "./format.ts";
import { Icon } from "./parts.tsx";
import { isWithin, type MachineMoment, pathOfValue } from "./machine-history.ts";

/** Below this, text would be under 10 pixels. */
const LEAST_SCALE = 10 / chartText.size;
const MOST_SCALE = 2.5;
const MARGIN = 16;
/** Free below a chart, so that the buttons cover no state. */
const BUTTONS_HEIGHT = 36;

interface Camera {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

/** A chart with its active path, to pan and zoom. It follows the active state until somebody moves it. */
export function ChartDrawing({
  chart,
  machine,
}: {
  readonly chart: Chart;
  readonly machine: MachineMoment | undefined;
}) {
  const { element, size } = useSize();
  const [camera, setCamera] = useState<Camera>({ x: MARGIN, y: MARGIN, scale: 1 });
  const [follows, setFollows] = useState(true);
  const drag = useRef<{ x: number; y: number; camera: Camera } | null>(null);
  const active = chart.states.find(({ path }) => path === machine?.path);
  useLayoutEffect(() => {
    if (size.width === 0 || !follows) return;
    setCamera(cameraOn(chart, active, size));
  }, [chart, active?.path, size, follows]);
  useEffect(() => {
    const { current } = element;
    // Preact listens to wheels passively, and zooming must keep the page still.
    const wheel = (event: WheelEvent): void => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = (current as HTMLElement).getBoundingClientRect();
      setFollows(false);
      setCamera((now) =>
        zoomedAt(now, event.deltaY > 0 ? 0.87 : 1.15, event.clientX - box.left, event.clientY - box.top),
      );
    };
    current?.addEventListener("wheel", wheel, { passive: false });
    return () => current?.removeEventListener("wheel", wheel);
  }, []);
  const zoom = (factor: number): void => {
    setFollows(false);
    setCamera(zoomedAt(camera, factor, size.width / 2, size.height / 2));
  };
  const move = (x: number, y: number): void => {
    setFollows(false);
    setCamera({ ...camera, x: camera.x + x, y: camera.y + y });
  };
  return (
    <div
      ref={element}
      class="chart-box"
      tabIndex={0}
      role="group"
      aria-label="Statechart"
      onKeyDown={(event) => {
        if (event.key === "+") zoom(1.25);
        else if (event.key === "-") zoom(0.8);
        else if (event.key === "0") setFollows(true);
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
        drag.current = { x: event.clientX, y: event.clientY, camera };
      }}
      onPointerMove={(event) => {
        const from = drag.current;
        if (!from) return;
        setFollows(false);
        setCamera({
          ...from.camera,
          x: from.camera.x + event.clientX - from.x,
          y: from.camera.y + event.clientY - from.y,
        });
      }}
      onPointerUp={() => {
        drag.current = null;
      }}
    >
      <svg class="chart" width="100%" height="100%" role="img" aria-label={chartWords(machine)}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0.500 8 4 0 7.500Z" class="arrow" />
          </marker>
          <marker id="arrow-last" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">
            <path d="M0 0.500 8 4 0 7.500Z" class="arrow last" />
          </marker>
        </defs>
        <g class="camera" transform={`translate(${camera.x} ${camera.y}) scale(${camera.scale})`}>
          {chart.states.map((state) => (
            <StateBox key={state.path} state={state} chart={chart} machine={machine} />
          ))}
          {chart.beginnings.map(({ state, line }) => (
            <g key={state} class="beginning">
              <circle cx={line[0]} cy={line[1]} r={4} />
              <path d={pathOf(line)} marker-end="url(#arrow)" />
            </g>
          ))}
          {chart.transitions.map((transition) => (
            <EdgeLine key={keyOf(transition)} transition={transition} isLast={isLast(transition, machine)} />
          ))}
          {chart.states.map((state) => (
            <StateTexts key={state.path} state={state} chart={chart} machine={machine} />
          ))}
          {chart.transitions.map((transition) => (
            <EdgeLabel key={keyOf(transition)} transition={transition} isLast={isLast(transition, machine)} />
          ))}
        </g>
      </svg>
      <span class="button-group chart-zoom">
        <button type="button" aria-label="Zoom out" onClick={() => zoom(0.8)}>
          <Icon name="minus" />
        </button>
        <button type="button" aria-label="Zoom in" onClick={() => zoom(1.25)}>
          <Icon name="plus" />
        </button>
        <button
          type="button"
          aria-pressed={follows}
          aria-label="Follow the active state"
          onClick={() => setFollows(true)}
        >
          <Icon name="fit" />
        </button>
      </span>
    </div>
  );
}

/** The whole chart where it is readable so, else the part around the active state. */
function cameraOn(
  chart: Chart,
  active: ChartState | undefined,
  size: { readonly width: number; readonly height: number },
): Camera {
  const { width } = size;
  const height = size.height - BUTTONS_HEIGHT;
  const whole = Math.min((width - 2 * MARGIN) / chart.width, (height - 2 * MARGIN) / chart.height);
  const scale = Math.min(1.15, Math.max(LEAST_SCALE, whole));
  const centre = (length: number, room: number, at: number): number => {
    if (length * scale <= room - 2 * MARGIN) return (room - length * scale) / 2;
    return Math.min(MARGIN, Math.max(room - length * scale - MARGIN, room / 2 - at * scale));
  };
  const x = active ? active.x + active.width / 2 : 0;
  const y = active ? active.y + active.height / 2 : chart.height / 2;
  return { scale, x: centre(chart.width, width, x), y: centre(chart.height, height, y) };
}

function zoomedAt({ x, y, scale }: Camera, factor: number, atX: number, atY: number): Camera {
  const next = Math.max(LEAST_SCALE * 0.999, Math.min(MOST_SCALE, scale * factor));
  const ratio = next / scale;
  return { scale: next, x: atX - (atX - x) * ratio, y: atY - (atY - y) * ratio };
}

function chartWords(machine: MachineMoment | undefined): string {
  return machine ? `Active state: ${machine.path}. The table of transitions says how it got there.` : "No active state";
}

interface StateProps {
  readonly state: ChartState;
  readonly chart: Chart;
  readonly machine: MachineMoment | undefined;
}

function StateBox({ state, chart, machine }: StateProps) {
  const { x, y, width, height, about } = state;
  return (
    <g class={classOf({ state, chart, machine })}>
      <title>{about}</title>
      <rect x={x} y={y} width={width} height={height} rx={6} />
      {state.isLast && <rect class="inner" x={x + 3} y={y + 3} width={width - 6} height={height - 6} rx={4} />}
    </g>
  );
}

function isParent({ path }: ChartState, chart: Chart): boolean {
  return chart.states.some((other) => other.path.startsWith(`${path}.`));
}

function classOf({ state, chart, machine }: StateProps): string {
  const isActive = machine !== undefined && isWithin(machine.path, state.path);
  const seen = isActive ? " active" : machine?.visits.has(state.path) === true ? " visited" : "";
  return `state${isParent(state, chart) ? " parent" : ""}${seen}${state.isLast ? " end" : ""}`;
}

/** Above all lines, each letter on a ground that hides them. */
function StateTexts({ state, chart, machine }: StateProps) {
  const { path, x, y, width, notes, effect } = state;
  const isOuter = isParent(state, chart);
  const visit = machine?.visits.get(path);
  const lines = [...(effect === undefined ? [] : [effect]), ...notes];
  const left = isOuter ? x + chartText.padding : x + width / 2;
  const anchor = isOuter ? "start" : "middle";
  return (
    <g class={`${classOf({ state, chart, machine })} texts`}>
      <text class="state-name" x={left} y={y + 5 + chartText.stateLineHeight * 0.72} text-anchor={anchor}>
        {path.slice(path.lastIndexOf(".") + 1)}
      </text>
      {lines.map((line, index) => (
        <text
          key={line}
          class={index === 0 && effect !== undefined ? "effect" : "state-note"}
          x={left}
          y={y + 5 + chartText.stateLineHeight + chartText.lineHeight * (index + 0.72)}
          text-anchor={anchor}
        >
          {line.replace(/^⇥\s*/, "to ")}
        </text>
      ))}
      {visit && (
        <text class="visit" x={x + width - 4} y={y - 4} text-anchor="end">
          {visit.count}× {milliseconds(visit.ms)}
        </text>
      )}
    </g>
  );
}

interface EdgeProps {
  readonly transition: ChartTransition;
  readonly isLast: boolean;
}

function keyOf({ from, to }: ChartTransition): string {
  return `${from}>${to}`;
}

function EdgeLine({ transition: { line }, isLast }: EdgeProps) {
  if (!line) return null;
  return (
    <g class={isLast ? "edge last" : "edge"}>
      <path d={pathOf(line)} marker-end={isLast ? "url(#arrow-last)" : "url(#arrow)"} />
    </g>
  );
}

/** Above all lines, on a ground that hides them. */
function EdgeLabel({ transition: { line, label, causes }, isLast }: EdgeProps) {
  if (!line || !label) return null;
  return (
    <g class={isLast ? "edge last" : "edge"}>
      <rect x={label.x} y={label.y} width={label.width} height={label.height} rx={3} />
      {labelLines(causes).map((text, index) => (
        <text
          key={text}
          x={label.x + label.width / 2}
          y={label.y + chartText.lineHeight * (index + 0.74)}
          text-anchor="middle"
        >
          {text}
        </text>
      ))}
    </g>
  );
}

/** Whether the machine's last transition is drawn by this line. */
function isLast({ from, to, causes }: ChartTransition, machine: MachineMoment | undefined): boolean {
  const last = machine?.last;
  if (!last) return false;
  const source = pathOfValue(last.from);
  const target = pathOfValue(last.to);
  return (
    (from === "" || isWithin(source, from)) && isWithin(target, to) && causes.some(([entry]) => entry === last.entry)
  );
}
