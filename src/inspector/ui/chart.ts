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
  /** A state comes before the states inside it. */
  readonly states: readonly ChartState[];
  /** One for each pair of states. */
  readonly transitions: readonly ChartTransition[];
  /** The states in which the machine, or a state with others inside, begins. */
  readonly beginnings: readonly string[];
  /** Of the same states for boxes of several shapes, and one to be read from near. */
  readonly layouts: readonly ChartLayout[];
}

/** Where the parts of a chart are. */
export interface ChartLayout {
  /** It has room for labels of transitions and for what each state is for; else only for the names of states. */
  readonly isNear: boolean;
  readonly width: number;
  readonly height: number;
  /** In the order of the states. */
  readonly boxes: readonly ChartBox[];
  /**
   * In the order of the transitions: x and y of its first point, then the x and the y to which it leads in turn. Empty where the line
   * is not drawn: from near the boxes of both states say it.
   */
  readonly lines: readonly (readonly number[])[];
  /** In the order of the transitions, of those that are drawn; none in a layout that is not near. The text is centred in it. */
  readonly labels: readonly (ChartBox | null)[];
  /** In the order of the beginnings; the first point of a line is the middle of the dot, which is 10 wide. */
  readonly dots: readonly (readonly number[])[];
}

export type ChartBox = readonly [x: number, y: number, width: number, height: number];

export interface ChartState {
  /** As in the value of the machine: `thinking.calling`. */
  readonly path: string;
  /** One sentence for readers who do not know the machine. */
  readonly about: string;
  /** The effect that runs while the state is active. */
  readonly effect?: string;
  /** Where it leads to, and comes from, without a line; one text a line. */
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
}

/** The sizes by which boxes and labels were measured; `state` is the name of a state. */
export const chartText = {
  size: 12,
  lineHeight: 16,
  stateSize: 13,
  stateLineHeight: 20,
  /** Beside the texts in the box of a state, and half of it above and below them. */
  padding: { near: 10, far: 6 },
} as const;

/** The name of a state in its box, from far in several lines where it is of several words. */
export function nameLines(path: string, isNear: boolean): readonly string[] {
  const name = path.slice(path.lastIndexOf(".") + 1);
  return isNear ? [name] : name.split(/(?=[A-Z])/);
}

const mostLetters = 30;

/** What a state's box says below its name when it is seen from near. */
export function textLines({ effect, about, notes }: ChartState): readonly string[] {
  const told = about.match(new RegExp(`.{1,${mostLetters}}(?: |$)`, "g")) ?? [];
  return [...(effect === undefined ? [] : [effect]), ...told.map((line) => line.trim()), ...notes];
}

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

/** The points of a line. */
export function pointsOf(line: readonly number[]): readonly Point[] {
  return line.slice(1).flatMap((to, index): readonly Point[] => {
    const before = line[index] ?? 0;
    const point: Point = index % 2 === 0 ? [before, to] : [to, before];
    // A line that begins downward stays at its first x.
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

/** The point that is a corner's radius away, or half of the way, if that is less. */
function toward([x, y]: Point, [otherX, otherY]: Point): Point {
  const length = Math.hypot(otherX - x, otherY - y);
  const share = length === 0 ? 0 : Math.min(cornerRadius / length, 0.5);
  return [round(x + (otherX - x) * share), round(y + (otherY - y) * share)];
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
