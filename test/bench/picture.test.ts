import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { barPicture } from "../../bench/drawing/bars.ts";
import { filesOf } from "../../bench/drawing/files.ts";
import { linePicture } from "../../bench/drawing/lines.ts";
import { ticksTo } from "../../bench/drawing/svg.ts";
import type { Row, RunFigures } from "../../bench/report.ts";
import { repositoryRoot } from "../../scripts/run-command.ts";

function row(changes: Partial<Row> & Pick<Row, "name" | "ours" | "bare">): Row {
  const ratio = changes.ours / changes.bare;
  return { stores: "memory", unit: "ms/turn", better: "lower", ratio, ...changes };
}

const growth = (count: number, ours: number, changes: Partial<Row> = {}): Row =>
  row({ name: "growth-agents", variant: `agents ${count}`, at: { ours: count, bare: 1 }, ours, bare: 2, ...changes });

const figures: RunFigures = {
  versions: { troupe: "1.2.3", node: "24.0.0", "a<b>&c": "4.5.6" },
  quick: false,
  scenarios: [
    row({ name: "loop-10", ours: 20, bare: 10 }),
    row({ name: "loop-10", stores: "none", contender: "a<b>&c", ours: 40, bare: 10 }),
    row({ name: "turns-64", stores: "sqlite", unit: "turns/s", better: "higher", ours: 1_500, bare: 1_000 }),
    growth(100, 3),
    growth(10_000, 4),
    growth(10_000, 1, { unit: "KB/agent", at: { ours: 10_000, bare: 100 }, stores: "sqlite" }),
    row({ name: "persisted", ours: 1, bare: 1 }),
  ],
};

/**
 * The elements in order, with their attributes. Throws if the text is not well-formed XML of the simple kind that is
 * drawn.
 */
function elementsOf(svg: string) {
  const open: string[] = [];
  const elements: { readonly name: string; readonly attributes: ReadonlyMap<string, string> }[] = [];
  const text = svg.replaceAll(
    /<(\/?)([a-z]+)((?: [a-zA-Z0-9-]+="[^"<>]*")*)(\/?)>/g,
    (_, end, name, written, single) => {
      if (end === "/") {
        if (open.pop() !== name) throw new Error(`</${name}> ends nothing.`);
        return "";
      }
      const attributes = [...String(written).matchAll(/ ([a-zA-Z0-9-]+)="([^"]*)"/g)];
      elements.push({ name, attributes: new Map(attributes.map(([, key = "", value = ""]) => [key, value])) });
      if (single !== "/") open.push(name);
      return "";
    },
  );
  if (open.length > 0) throw new Error(`<${open.join("><")}> is not closed.`);
  if (/[<>]/.test(text) || /&(?!amp;|lt;|gt;|quot;)/.test(svg)) throw new Error("Something is not escaped.");
  return elements;
}

const numbers = (svg: string, attribute: string): readonly number[] =>
  elementsOf(svg)
    .flatMap(({ attributes }) => Number(attributes.get(attribute) ?? Number.NaN))
    .filter(Number.isFinite);

describe("the bars", () => {
  const svg = barPicture(figures);

  test("are as long as the speed relative to the bare loop, for every unit", () => {
    const bars = elementsOf(svg).filter(({ attributes }) => attributes.has("data-speed"));
    const lengths = bars.map(
      ({ attributes }) => Number(attributes.get("width")) / Number(attributes.get("data-speed")),
    );
    // The scenarios' own order: turns-64, then loop-10.
    expect(numbers(svg, "data-speed")).toEqual([1, 1.5, 1, 0.5, 0.25]);
    for (const length of lengths) expect(length).toBeCloseTo(lengths[0] ?? 0, 0);
    expect(svg).toContain("1.50 · 1,500 turns/s");
    expect(svg).toContain("0.50 · 20 ms");
    expect(svg).toContain("0.25 · 40 ms");
  });

  test("name the contenders, the versions, and which direction is good; names are escaped", () => {
    for (const text of ["bare openai", "troupe, memory", "troupe, SQLite", "a&lt;b&gt;&amp;c", "longer is faster"]) {
      expect(svg).toContain(text);
    }
    expect(svg).toContain("troupe 1.2.3, a&lt;b&gt;&amp;c 4.5.6, on Node 24.0.0<");
    expect(barPicture({ ...figures, quick: true })).toContain("a quick, coarse run");
    expect(svg).not.toMatch(/20\d\d-|20\d\d</);
  });

  test("need a scenario", () => {
    expect(() => barPicture({ ...figures, scenarios: [] })).toThrow("These figures have no scenarios");
  });
});

describe("the curves", () => {
  const svg = linePicture("growth-agents", figures);

  test("begin at the base of the comparison, with a panel for each unit", () => {
    expect(numbers(svg, "data-at")).toEqual([1, 100, 10_000, 100, 10_000]);
    expect(numbers(svg, "data-value")).toEqual([2, 3, 4, 2, 1]);
    for (const text of ["agents alive", "ms per turn", "KB of heap per agent", "troupe 1.2.3, on Node 24.0.0"]) {
      expect(svg).toContain(`${text}<`);
    }
  });

  test("rise with the cost, and extend right by powers of ten", () => {
    const [x1 = 0, x2 = 0, x3 = 0] = numbers(svg, "cx");
    const [y1 = 0, y2 = 0, y3 = 0] = numbers(svg, "cy");
    expect(x2 - x1).toBeCloseTo(x3 - x2, 0);
    expect(y1 - y2).toBeCloseTo(y2 - y3, 0);
    expect(y1).toBeGreaterThan(y3);
  });

  test("need their study", () => {
    expect(() => linePicture("growth-tools", figures)).toThrow('no study of growth "growth-tools"');
  });
});

test.each([
  [0.3, [0, 0.1, 0.2, 0.3]],
  [1.13, [0, 0.5, 1, 1.5]],
  [47, [0, 10, 20, 30, 40, 50]],
])("steps up to %d", (largest, steps) => {
  expect(ticksTo(largest)).toEqual(steps.map((step) => expect.closeTo(step)));
});

describe("files", () => {
  test("are drawn for the measured studies, and the data is stored next to them", () => {
    const files = filesOf(figures);
    expect([...files.keys()]).toEqual([
      "docs/pictures/bench.svg",
      "bench/pictures/scenarios.json",
      "bench/pictures/growth-agents.svg",
      "bench/pictures/growth.json",
    ]);
    const kept = JSON.parse(files.get("bench/pictures/growth.json") ?? "") as RunFigures;
    expect(kept.scenarios.map(({ name }) => name)).toEqual(["growth-agents", "growth-agents", "growth-agents"]);
    expect([...filesOf({ ...figures, scenarios: figures.scenarios.slice(-1) }).keys()]).toEqual([]);
  });

  test.each(["scenarios", "growth"])("the pictures in the repository are those of %s.json", (name) => {
    const kept = JSON.parse(readFileSync(join(repositoryRoot, `bench/pictures/${name}.json`), "utf8")) as RunFigures;
    const pictures = [...filesOf(kept)].filter(([path]) => path.endsWith(".svg"));
    expect(pictures.length).toBeGreaterThan(0);
    for (const [path, svg] of pictures) {
      const isDrawn = readFileSync(join(repositoryRoot, path), "utf8") === svg;
      expect(isDrawn, `${path}: draw it again: node bench/picture.ts, see bench/README.md`).toBe(true);
      expect(elementsOf(svg).length, path).toBeGreaterThan(20);
    }
  });
});
