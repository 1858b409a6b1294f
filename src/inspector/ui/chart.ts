/**
 * The statecharts with the position of each state, line and label. `npm run build:charts` writes `charts.json` from the
 * machines, so that the page needs no layout library. Lengths are in CSS pixels at 100 %, from the upper left corner.
 */
export interface Charts {
  readonly agent: Chart;
  readonly turn: Chart;
  readonly toolCall: Chart;
}

export interface Chart {
  /** Parent states come before their children. */
  readonly states: readonly ChartState[];
  /** One for each pair of states. */
  readonly transitions: readonly ChartTransition[];
  /** The initial states of the machine and of its parent states. */
  readonly beginnings: readonly string[];
  /** Layouts of the states for boxes of several shapes, and one near layout with details. */
  readonly layouts: readonly ChartLayout[];
}

/** The positions of a chart's elements. */
export interface ChartLayout {
  /** Whether it has transition labels and descriptions of states. If not, it has only state names. */
  readonly isNear: boolean;
  readonly width: number;
  readonly height: number;
  /** In the order of `states`. */
  readonly boxes: readonly ChartBox[];
  /**
   * In the order of `transitions`: x and y of the first point, then alternately the next x and the next y. Empty if the
   * line is not drawn; in a near layout the boxes of both states then have notes about it.
   */
  readonly lines: readonly (readonly number[])[];
  /** In the order of `transitions`; `null` without a drawn line. Empty unless the layout is near. Texts are centered. */
  readonly labels: readonly (ChartBox | null)[];
  /** In the order of `beginnings`. The first point of a line is the center of the dot, which is 10 wide. */
  readonly dots: readonly (readonly number[])[];
}

export type ChartBox = readonly [x: number, y: number, width: number, height: number];

export interface ChartState {
  /** As in the machine's value: `thinking.calling`. */
  readonly path: string;
  /** One sentence for readers who do not know the machine. */
  readonly about: string;
  /** The effect that runs while the state is active. */
  readonly effect?: string;
  /** Transitions without a line that lead to or from the state, one text per line. */
  readonly notes: readonly string[];
  /** True for a final state. */
  readonly isLast?: boolean;
}

export interface ChartTransition {
  /** The path of a state; empty for the machine itself, whose transitions apply in every state. */
  readonly from: string;
  readonly to: string;
  /** Entry type and guard name. The guard is empty if there is none; the type is empty if no entry is needed. */
  readonly causes: readonly (readonly [entry: string, guard: string])[];
}

/** The sizes with which boxes and labels were measured; `state…` are sizes of state names. */
export const chartText = {
  size: 12,
  lineHeight: 16,
  stateSize: 13,
  stateLineHeight: 20,
  /** Left and right of the texts in a state's box; half of it above and below. */
  padding: { near: 10, far: 6 },
} as const;

/** The name of a state in its box. Unless near, each word of the name is on its own line. */
export function nameLines(path: string, isNear: boolean): readonly string[] {
  const name = path.slice(path.lastIndexOf(".") + 1);
  return isNear ? [name] : name.split(/(?=[A-Z])/);
}

const mostLetters = 30;

/** The lines below the name in a state's box, in a near layout. */
export function textLines({ effect, about, notes }: ChartState): readonly string[] {
  const told = about.match(new RegExp(`.{1,${mostLetters}}(?: |$)`, "g")) ?? [];
  return [...(effect === undefined ? [] : [effect]), ...told.map((line) => line.trim()), ...notes];
}

/** A label with more causes shows only their number. */
const mostLabelLines = 4;

/**
 * The lines of a transition's label: its entries, and below them their common guard. Of guards combined by `and` it shows
 * the last one, which distinguishes the transition from others.
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

/** The points of a line. */
export function pointsOf(line: readonly number[]): readonly Point[] {
  return line.slice(1).flatMap((to, index): readonly Point[] => {
    const before = line[index] ?? 0;
    const point: Point = index % 2 === 0 ? [before, to] : [to, before];
    // A line that starts downward keeps its first x.
    return index === 1 && to === line[0] ? [] : [point];
  });
}

/** A line as the `d` of an SVG path, with rounded corners. */
export function pathOf(line: readonly number[]): string {
  const points = pointsOf(line);
  const parts = points.map((point, index) => {
    const before = points[index - 1];
    const after = points[index + 1];
    if (before === undefined) return `M${point.join()}`;
    if (after === undefined) return `L${point.join()}`;
    return `L${toward(point, before).join()}Q${point.join()} ${toward(point, after).join()}`;
  });
  return parts.join("");
}

export type Point = readonly [x: number, y: number];

/** The point at the distance of a corner's radius, or at half the distance if that is shorter. */
function toward([x, y]: Point, [otherX, otherY]: Point): Point {
  const length = Math.hypot(otherX - x, otherY - y);
  const share = length === 0 ? 0 : Math.min(cornerRadius / length, 0.5);
  return [round(x + (otherX - x) * share), round(y + (otherY - y) * share)];
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
