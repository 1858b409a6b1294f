import type { RunFigures, Row } from "../report.ts";
import { scenarios } from "../scenario.ts";
import { type Colour, element, figure, picture, textAt, ticksTo } from "./svg.ts";

interface Bar {
  readonly label: string;
  readonly colour: Colour;
  /** Share of the bare loop's speed. */
  readonly speed: number;
  readonly value: number;
  readonly unit: string;
}

/** One line about the turns of each scenario, for its panel. */
const captions: Readonly<Record<string, string>> = {
  "turns-1": "one model call a turn, one conversation at a time",
  "turns-64": "one model call a turn, 64 conversations at a time",
  "loop-10": "ten steps: nine tool calls, one after the other",
  "calls-8": "two steps: eight tool calls at once",
  "stream-16": "16 streams at a time, 512 pieces each",
  "subagents-50": "50 subagents at once, each with a tool call",
};

const WIDTH = 880;
const MARGIN = 16;
const LABELS = 104;
const VALUES = 108;
const BAR = 17;
const HEAD = 64;
const FOOT = 74;

/** The speed of each contender in each scenario, relative to the bare loop. Throws if there are no scenarios. */
export function barPicture({ versions, quick, scenarios: rows }: RunFigures): string {
  const panels = scenarios
    .map(({ name }) => ({ name, bars: barsOf(rows.filter((row) => row.name === name)) }))
    .filter(({ bars }) => bars.length > 0);
  if (panels.length === 0) throw new Error("These figures have no scenarios, so there are no bars to draw.");
  const speeds = panels.flatMap(({ bars }) => bars.map(({ speed }) => speed));
  const ticks = ticksTo(Math.max(...speeds));
  const most = ticks.at(-1) ?? 1;
  const panelHeight = 44 + Math.max(...panels.map(({ bars }) => bars.length)) * BAR + 26;
  const panelWidth = (WIDTH - 3 * MARGIN) / 2;
  const scale = (panelWidth - LABELS - VALUES) / most;
  const drawn = panels.map(({ name, bars }, index) => {
    const x = MARGIN + (index % 2) * (panelWidth + MARGIN);
    const top = HEAD + Math.floor(index / 2) * panelHeight;
    const left = x + LABELS;
    const bottom = top + 26 + bars.length * BAR;
    return element("g", {}, [
      textAt(name, { x, y: top + 4, class: "heading" }),
      textAt(captions[name] ?? "", { x, y: top + 18, class: "faint small" }),
      ...ticks.map((tick) => {
        const at = left + tick * scale;
        const line = element("line", {
          x1: at,
          x2: at,
          y1: top + 24,
          y2: bottom + 4,
          class: tick === 1 ? "grid" : "grid dashed",
        });
        return line + textAt(figure(tick), { x: at, y: bottom + 17, anchor: "middle", class: "faint small" });
      }),
      ...bars.flatMap(({ label, colour, speed, value, unit }, row) => {
        const y = top + 26 + row * BAR;
        const width = speed * scale;
        return [
          textAt(label, { x: left - 6, y: y + 12, anchor: "end" }),
          element("rect", {
            x: left,
            y: y + 2,
            width,
            height: BAR - 4,
            class: `bar ${colour}`,
            "data-speed": String(speed),
          }),
          textAt(`${speed.toFixed(2)} · ${figure(value)} ${unit}`, { x: left + width + 5, y: y + 12, class: "small" }),
        ];
      }),
    ]);
  });
  const height = HEAD + Math.ceil(panels.length / 2) * panelHeight + FOOT;
  const { troupe = "", node = "", ...others } = versions;
  const peers = Object.entries(others).map(([name, version]) => `${name} ${version}`);
  const foot = [
    "Bars: speed, as a share of the bare loop's; longer is faster. Beside them the measured figure. The model answers at once, on the same machine.",
    "Each turn of troupe is journalled and budgeted, and on SQLite survives its process; the bare loop and the libraries keep nothing.",
    `${[`troupe ${troupe}`, ...peers].join(", ")}, on Node ${node}${quick ? "; a quick, coarse run" : ""}`,
  ];
  return picture({
    width: WIDTH,
    height,
    title: "Speed of troupe and of other libraries, of that of a bare openai loop",
    children: [
      textAt("Speed of an agent's turn, where a bare openai loop is 1", { x: MARGIN, y: 28, class: "heading" }),
      ...drawn,
      ...foot.map((line, index) =>
        textAt(line, { x: MARGIN, y: height - FOOT + 22 + index * 18, class: "faint small" }),
      ),
    ],
  });
}

function barsOf(rows: readonly Row[]): readonly Bar[] {
  const [first] = rows;
  if (first === undefined) return [];
  const bare: Bar = { label: "bare openai", colour: "bare", speed: 1, value: first.bare, unit: unitOf(first) };
  const others = rows.map(
    (row): Bar => ({
      label: row.contender ?? `troupe, ${row.stores === "sqlite" ? "SQLite" : row.stores}`,
      colour: row.contender === undefined ? (row.stores === "sqlite" ? "sqlite" : "memory") : "peer",
      speed: row.better === "higher" ? row.ratio : 1 / row.ratio,
      value: row.ours,
      unit: unitOf(row),
    }),
  );
  return [bare, ...others];
}

function unitOf({ unit }: Row): string {
  return unit === "ms/turn" ? "ms" : unit;
}
