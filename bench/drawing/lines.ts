import type { RunFigures, Row } from "../report.ts";
import { type Colour, element, figure, picture, textAt, ticksTo } from "./svg.ts";

/** Titles and x axes of the studies of growth. */
const studies: Readonly<Record<string, { readonly title: string; readonly axis: string }>> = {
  "growth-turns": { title: "A turn late in the life of an agent", axis: "number of the turn" },
  "growth-agents": { title: "A turn while other agents rest, and what one of these weighs", axis: "agents alive" },
  "growth-children": { title: "A child of a parent that runs many", axis: "children of one parent" },
  "growth-tools": { title: "A turn of two steps with many tools", axis: "tools in a definition" },
};

const units: Readonly<Record<string, string>> = {
  "ms/turn": "ms per turn",
  "ms/child": "ms per child",
  "KB/agent": "KB of heap per agent",
};

interface Curve {
  readonly label: string;
  readonly colour: Colour;
  readonly unit: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

const PANEL = { width: 430, height: 250, left: 64, right: 86, top: 24, bottom: 52 };
const HEAD = 44;
const FOOT = 30;

/** The studies of growth in these figures, by name. */
export function growthIn({ scenarios }: RunFigures): readonly string[] {
  return Object.keys(studies).filter((study) => scenarios.some(({ name }) => name === study));
}

/**
 * The cost in one study by amount of work: one panel per unit, with a logarithmic x axis. Throws if the study is missing.
 */
export function linePicture(study: string, { versions, quick, scenarios }: RunFigures): string {
  const about = studies[study];
  const curves = curvesOf(scenarios.filter(({ name }) => name === study));
  if (about === undefined || curves.length === 0) throw new Error(`These figures have no study of growth "${study}".`);
  const panels = [...new Set(curves.map(({ unit }) => unit))];
  const width = panels.length * PANEL.width;
  const height = HEAD + PANEL.height + FOOT;
  const foot = `troupe ${versions["troupe"] ?? ""}, on Node ${versions["node"] ?? ""}${quick ? "; a quick, coarse run" : ""}`;
  return picture({
    width,
    height,
    title: `${about.title}: ${panels.map((unit) => units[unit] ?? unit).join(", ")}, by ${about.axis}`,
    children: [
      textAt(about.title, { x: 16, y: 26, class: "heading" }),
      ...panels.map((unit, index) => {
        const own = curves.filter((curve) => curve.unit === unit);
        return panel(own, { x: index * PANEL.width, axis: about.axis, unit: units[unit] ?? unit });
      }),
      textAt(foot, { x: 16, y: height - 12, class: "faint small" }),
    ],
  });
}

function panel(
  curves: readonly Curve[],
  { x, axis, unit }: { readonly x: number; readonly axis: string; readonly unit: string },
): string {
  const points = curves.flatMap((curve) => curve.points);
  const [least, most] = [Math.min(...points.map((point) => point.x)), Math.max(...points.map((point) => point.x))];
  const ticks = ticksTo(Math.max(...points.map((point) => point.y)));
  const [left, right] = [x + PANEL.left, x + PANEL.width - PANEL.right];
  const [top, bottom] = [HEAD + PANEL.top, HEAD + PANEL.height - PANEL.bottom];
  const across = (count: number): number =>
    left + ((right - left) * Math.log(count / least)) / (Math.log(most / least) || 1);
  const up = (value: number): number => bottom - ((bottom - top) * value) / (ticks.at(-1) ?? 1);
  const counts = [...new Set(points.map((point) => point.x))].toSorted((one, other) => one - other);
  return element("g", {}, [
    ...ticks.flatMap((tick) => [
      element("line", { x1: left, x2: right, y1: up(tick), y2: up(tick), class: "grid" }),
      textAt(figure(tick), { x: left - 6, y: up(tick) + 4, anchor: "end", class: "faint small" }),
    ]),
    ...countLabels(counts, across).map(({ count, at }) =>
      textAt(figure(count), { x: at, y: bottom + 16, anchor: "middle", class: "faint small" }),
    ),
    textAt(axis, { x: (left + right) / 2, y: bottom + 36, anchor: "middle" }),
    textAt(unit, { x: x + 18, y: (top + bottom) / 2, anchor: "middle", turned: -90 }),
    ...curves.map(({ colour, points: own, label }) => {
      const path = own.map((point) => `${across(point.x).toFixed(1)},${up(point.y).toFixed(1)}`).join(" ");
      const dots = own.map((point) =>
        element(
          "circle",
          {
            cx: across(point.x),
            cy: up(point.y),
            r: 3,
            class: colour,
            "data-at": point.x,
            "data-value": String(point.y),
          },
          [element("title", {}, [`${label}, ${figure(point.x)}: ${figure(point.y)} ${unit}`])],
        ),
      );
      return element("polyline", { points: path, class: `curve ${colour}` }) + dots.join("");
    }),
    ...labelsApart(curves.map((curve) => ({ curve, y: up(curve.points.at(-1)?.y ?? 0) }))).map(({ curve, y }) => {
      const last = curve.points.at(-1)?.y ?? 0;
      return textAt(`${curve.label} ${figure(last)}`, { x: right + 8, y: y + 4, class: `small ${curve.colour}` });
    }),
  ]);
}

/** Counts whose labels do not overlap. The last one is always included. */
function countLabels(counts: readonly number[], across: (count: number) => number) {
  const kept: { readonly count: number; readonly at: number }[] = [];
  for (const count of counts.toReversed()) {
    const at = across(count);
    const next = kept.at(-1);
    if (next === undefined || next.at - at > 34) kept.push({ count, at });
  }
  return kept;
}

/** Positions from top to bottom, at least one text line apart. */
function labelsApart(labels: readonly { readonly curve: Curve; readonly y: number }[]) {
  let lowest = Number.NEGATIVE_INFINITY;
  return labels
    .toSorted((one, other) => one.y - other.y)
    .map(({ curve, y }) => {
      lowest = Math.max(y, lowest + 14);
      return { curve, y: lowest };
    });
}

function curvesOf(rows: readonly Row[]): readonly Curve[] {
  const curves = new Map<string, Curve>();
  for (const { contender, stores, unit, at, ours, bare } of rows) {
    if (at === undefined) continue;
    const key = `${contender ?? stores} ${unit}`;
    const curve = curves.get(key) ?? {
      label: contender ?? (stores === "sqlite" ? "SQLite" : stores),
      colour: contender === undefined ? (stores === "sqlite" ? "sqlite" : "memory") : "bare",
      unit,
      points: [{ x: at.bare, y: bare }],
    };
    curves.set(key, { ...curve, points: [...curve.points, { x: at.ours, y: ours }] });
  }
  return [...curves.values()];
}
