/**
 * The statecharts as the page draws them: where each state, line and label is. `npm run build:charts` writes `charts.json` from
 * the machines, so that the page needs no layout library. Lengths are in CSS pixels at 100 %, from the upper left corner.
 */
export interface Charts {
  readonly agent: Chart;
  readonly turn: Chart;
  readonly toolCall: Chart;
}

export interface Chart {
  readonly width: number;
  readonly height: number;
  /** A state comes before the states inside it. */
  readonly states: readonly ChartState[];
  /** One for each pair of states. */
  readonly transitions: readonly ChartTransition[];
  /** Arrows from a dot to the state in which the machine, or a state with others inside, begins. */
  readonly beginnings: readonly ChartBeginning[];
}

export interface ChartBox {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface ChartState extends ChartBox {
  /** As in the value of the machine: `thinking.calling`. */
  readonly path: string;
  /** One sentence for somebody who does not know the machine. */
  readonly about: string;
  /** The effect that runs while the state is active. */
  readonly effect?: string;
  /** What its box says under its name, one text a line. */
  readonly notes: readonly string[];
  /** True where nothing follows any more. */
  readonly isLast?: boolean;
}

export interface ChartTransition {
  /** The path of a state; empty for the machine itself, whose transitions apply in every state. */
  readonly from: string;
  readonly to: string;
  /** Type of the entry and name of the guard, which is empty where there is none; the type is empty where no entry is needed. */
  readonly causes: readonly (readonly [entry: string, guard: string])[];
  /** x and y in turn, with right angles between. Absent where the line is not drawn: the boxes of both states say it. */
  readonly line?: readonly number[];
  /** The lines of its text are centred in it. */
  readonly label?: ChartBox;
}

export interface ChartBeginning {
  readonly state: string;
  /** As in a transition; its first point is the middle of the dot, which is 10 wide. */
  readonly line: readonly number[];
}

/** The sizes by which boxes and labels were measured; `state` is the name of a state. */
export const chartText = { size: 12, lineHeight: 16, stateSize: 13, stateLineHeight: 20, padding: 10 } as const;

/** More causes than these are only counted in a label. */
const mostLabelLines = 4;

/**
 * The lines of a transition's label: its entries, and below them the guard that they share. Of guards that have to hold together it
 * names the last one, which tells the transition from others.
 */
export function labelLines(causes: ChartTransition["causes"]): readonly string[] {
  if (causes.length > mostLabelLines) return [`${causes.length} events`];
  const told = causes.map(([entry, guard]) => ({ entry, guard: guard && `[${guard.split(" & ").at(-1)}]` }));
  const [first] = told;
  if (told.some(({ guard }) => guard !== first?.guard))
    return told.map(({ entry, guard }) => `${entry} ${guard}`.trim());
  return [...told.map(({ entry }) => entry), first?.guard ?? ""].filter((line) => line !== "");
}

const cornerRadius = 6;

/** A line as the `d` of an SVG path, with rounded corners. */
export function pathOf(line: readonly number[]): string {
  const points = Array.from(
    { length: line.length / 2 },
    (_, index) => [line[index * 2] ?? 0, line[index * 2 + 1] ?? 0] as const,
  );
  const parts = points.map((point, index) => {
    const before = points[index - 1];
    const after = points[index + 1];
    if (before === undefined) return `M${point.join()}`;
    if (after === undefined) return `L${point.join()}`;
    return `L${toward(point, before).join()}Q${point.join()} ${toward(point, after).join()}`;
  });
  return parts.join("");
}

type Point = readonly [x: number, y: number];

/** The point that is a corner's radius away, or half of the way, if that is less. */
function toward([x, y]: Point, [otherX, otherY]: Point): Point {
  const length = Math.hypot(otherX - x, otherY - y);
  const share = length === 0 ? 0 : Math.min(cornerRadius / length, 0.5);
  return [round(x + (otherX - x) * share), round(y + (otherY - y) * share)];
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
