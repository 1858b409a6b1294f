import {
  type Chart,
  type ChartBox,
  type ChartLayout,
  type ChartState,
  type ChartTransition,
  chartText,
  labelLines,
  nameLines,
  pathOf,
  textLines,
} from "./chart.ts";
import { middleOf } from "./chart-camera.ts";
import { milliseconds } from "./format.ts";
import { isWithin, type MachineMoment, type MachineName, pathOfValue } from "./machine-history.ts";

interface PartsProps {
  readonly chart: Chart;
  readonly layout: ChartLayout;
  readonly machine: MachineMoment | undefined;
  readonly name: MachineName;
}

/** A chart in one of its layouts, with the active path and the last edge taken. */
export function ChartParts({ chart, layout, machine, name }: PartsProps) {
  const taken = takenEdge(chart, layout, machine);
  const states = chart.states.map((state, index) => ({
    state,
    box: layout.boxes[index] ?? noBox,
    kind: classOf(state, chart, machine),
  }));
  const edges = layout.lines.map((line, index) => ({ line, index })).filter(({ line }) => line.length > 0);
  const markers = { plain: `arrow-${name}`, taken: `arrow-taken-${name}` };
  return (
    <>
      <defs>
        {Object.entries(markers).map(([kind, id]) => (
          <marker
            key={id}
            id={id}
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth={kind === "taken" ? 11 : 7}
            markerHeight={kind === "taken" ? 11 : 7}
            // A pulsing edge is wide for a moment; its arrow does not change.
            markerUnits="userSpaceOnUse"
            orient="auto"
          >
            <path d="M0 0.500 8 4 0 7.500Z" class={`arrow ${kind}`} />
          </marker>
        ))}
      </defs>
      {states.map(({ state, box, kind }) => (
        <StateBox key={state.path} state={state} box={box} kind={kind} />
      ))}
      {layout.dots.map((line, index) => (
        <g key={index} class="beginning">
          <circle cx={line[0]} cy={line[1]} r={4} />
          <path d={pathOf(line)} marker-end={`url(#${markers.plain})`} />
        </g>
      ))}
      {edges.map(
        ({ line, index }) =>
          index !== taken?.index && (
            <path key={index} class="edge" d={pathOf(line)} marker-end={`url(#${markers.plain})`} />
          ),
      )}
      {taken && (
        <path
          // A new element restarts the animation.
          key={`taken ${machine?.id} ${machine?.last?.seq}`}
          class="edge taken"
          d={taken.path}
          marker-end={`url(#${markers.taken})`}
        />
      )}
      {states.map(({ state, box, kind }) => (
        <StateTexts
          key={state.path}
          state={state}
          box={box}
          kind={kind}
          isNear={layout.isNear}
          visit={machine?.visits.get(state.path)}
        />
      ))}
      {layout.labels.map(
        (box, index) =>
          box && (
            <EdgeLabel
              key={index}
              box={box}
              causes={chart.transitions[index]?.causes ?? []}
              isTaken={index === taken?.index}
            />
          ),
      )}
    </>
  );
}

const noBox: ChartBox = [0, 0, 0, 0];

interface StateProps {
  readonly state: ChartState;
  readonly box: ChartBox;
  readonly kind: string;
}

function StateBox({ state: { about, isLast = false }, box: [x, y, width, height], kind }: StateProps) {
  return (
    <g class={kind}>
      <title>{about}</title>
      <rect x={x} y={y} width={width} height={height} rx={6} />
      {isLast && <rect class="inner" x={x + 3} y={y + 3} width={width - 6} height={height - 6} rx={4} />}
    </g>
  );
}

function classOf({ path, isLast = false }: ChartState, chart: Chart, machine: MachineMoment | undefined): string {
  const isParent = chart.states.some((other) => other.path.startsWith(`${path}.`));
  const isActive = machine !== undefined && isWithin(machine.path, path);
  const seen = isActive ? " active" : machine?.visits.has(path) === true ? " visited" : "";
  return `state${isParent ? " parent" : ""}${seen}${isLast ? " end" : ""}`;
}

interface StateTextProps extends StateProps {
  readonly isNear: boolean;
  readonly visit: { readonly count: number; readonly ms: number } | undefined;
}

/** Drawn above all lines, with a background behind each letter. */
function StateTexts({ state, box: [x, y, width], kind, isNear, visit }: StateTextProps) {
  const names = nameLines(state.path, isNear);
  const lines = isNear ? textLines(state) : [];
  const isOuter = kind.includes("parent");
  const padding = chartText.padding[isNear ? "near" : "far"];
  const left = isOuter ? x + padding : x + width / 2;
  const anchor = isOuter ? "start" : "middle";
  const top = y + padding / 2;
  return (
    <g class={`${kind} texts`}>
      <text class="state-name" text-anchor={anchor}>
        {names.map((text, index) => (
          <tspan key={text} x={left} y={top + chartText.stateLineHeight * 0.72 + chartText.lineHeight * index}>
            {text}
          </tspan>
        ))}
      </text>
      {lines.map((line, index) => (
        <text
          key={line}
          class={index === 0 && state.effect !== undefined ? "effect" : "state-note"}
          x={left}
          y={top + chartText.stateLineHeight + chartText.lineHeight * (index + 0.72)}
          text-anchor={anchor}
        >
          {line.replace(/^⇥\s*/, "to ")}
        </text>
      ))}
      {isNear && visit && (
        <text class="visit" x={x + width - 4} y={y - 4} text-anchor="end">
          {visit.count}× {milliseconds(visit.ms)}
        </text>
      )}
    </g>
  );
}

interface LabelProps {
  readonly box: ChartBox;
  readonly causes: ChartTransition["causes"];
  readonly isTaken: boolean;
}

/** Drawn above all lines, on a background. */
function EdgeLabel({ box: [x, y, width, height], causes, isTaken }: LabelProps) {
  return (
    <g class={isTaken ? "label taken" : "label"}>
      <rect x={x} y={y} width={width} height={height} rx={3} />
      {labelLines(causes).map((text, index) => (
        <text key={text} x={x + width / 2} y={y + chartText.lineHeight * (index + 0.74)} text-anchor="middle">
          {text}
        </text>
      ))}
    </g>
  );
}

/** The last edge taken: its line in the layout, else a straight line between both states. */
function takenEdge(
  { states, transitions }: Chart,
  { lines, boxes }: ChartLayout,
  machine: MachineMoment | undefined,
): { readonly index: number; readonly path: string } | undefined {
  const last = machine?.last;
  if (!last) return undefined;
  const [source, target] = [pathOfValue(last.from), pathOfValue(last.to)];
  const fits = transitions.map(({ from, to, causes }, index) => {
    if (lines[index]?.length === 0 || !isWithin(source, from) || !isWithin(target, to)) return 0;
    const [chosen] = causes.filter(([entry, guard]) => covers(entry, last.entry) && guard === (last.guard ?? ""));
    // Prefer the innermost states, and ignore a line without a matching cause.
    return chosen ? from.length + to.length : 0;
  });
  const index = fits.indexOf(Math.max(...fits));
  const line = lines[index];
  if (line && (fits[index] ?? 0) > 0) return { index, path: pathOf(line) };
  const boxOf = (path: string): ChartBox | undefined => boxes[states.findIndex((state) => state.path === path)];
  const [fromBox, toBox] = [boxOf(source), boxOf(target)];
  return fromBox && toBox ? { index: -1, path: straightPath(fromBox, toBox) } : undefined;
}

/** Whether a cause's type, which may end in `.*`, matches the type of an entry. */
function covers(type: string, entry: string): boolean {
  return type === entry || (type.endsWith(".*") && entry.startsWith(type.slice(0, -1)));
}

/** A line from the border of one box to the border of another. */
function straightPath(from: ChartBox, to: ChartBox): string {
  return `M${edgeToward(from, to).join()}L${edgeToward(to, from).join()}`;
}

function edgeToward(box: ChartBox, other: ChartBox): readonly number[] {
  const [middle, aim] = [middleOf(box), middleOf(other)];
  const [x, y] = [aim.x - middle.x, aim.y - middle.y];
  const [, , width, height] = box;
  const share = Math.min(1, width / 2 / Math.max(1, Math.abs(x)), height / 2 / Math.max(1, Math.abs(y)));
  return [middle.x + x * share, middle.y + y * share].map(Math.round);
}
