import { readFileSync } from "node:fs";
import { describe, expect, it, test } from "vitest";
import { chartsFile, chartsText } from "../../scripts/charts.ts";
import { lastStates, stateSentences } from "../../scripts/state-sentences.ts";
import { type ChartBox, type Charts, labelLines, pathOf, pointsOf } from "../../src/inspector/ui/chart.ts";
import { agentMachine, toolCallMachine, turnMachine } from "../../src/machines/index.ts";
import { nodesOf } from "../architecture/machine-walk.ts";

const machines = { agent: agentMachine, turn: turnMachine, toolCall: toolCallMachine };
const charts = JSON.parse(readFileSync(chartsFile, "utf8")) as Charts;

test("the charts of the page are those of the machines", async () => {
  const isSame = readFileSync(chartsFile, "utf8") === (await chartsText());
  expect(isSame, "src/inspector/ui/charts.json differs from the machines; run npm run build:charts").toBe(true);
});

describe.each(["agent", "turn", "toolCall"] as const)("%s", (name) => {
  const paths = nodesOf(machines[name].root)
    .map(({ path }) => path.join("."))
    .filter((path) => path !== "");

  it("has a sentence for each state and for no other", () => {
    expect(Object.keys(stateSentences[name]).sort()).toEqual(paths.toSorted());
    for (const sentence of Object.values(stateSentences[name])) expect(sentence).toMatch(/^[A-Z][^.]{15,110}\.$/);
    expect(paths).toEqual(expect.arrayContaining([...lastStates[name]]));
  });

  it("shows each state, and each transition as a line, by nested boxes, or as one from any state", () => {
    const { states, transitions, layouts } = charts[name];
    expect(states.map(({ path }) => path)).toEqual(paths);
    const notesOf = (path: string): string => states.find((state) => state.path === path)?.notes.join(" ") ?? "";
    for (const { boxes, lines } of layouts) {
      expect(boxes).toHaveLength(states.length);
      const untold = transitions.filter(({ from, to }, index) => {
        if ((lines[index] ?? []).length > 0) return false;
        if (from === "") return !notesOf(to).includes("from any state");
        const [outer = ""] = from.split(".");
        return !new RegExp(`⇥ .*\\b${to}\\b`).test(`${notesOf(from)} ${notesOf(outer)}`);
      });
      expect(untold).toEqual([]);
    }
  });

  it("has a wide layout, a high one, and one for close reading, which alone has labels", () => {
    const { layouts } = charts[name];
    expect(layouts.map(({ isNear, labels }) => [isNear, labels.length > 0])).toEqual([
      [false, false],
      [false, false],
      [true, true],
    ]);
    const [wide, high] = layouts.map(({ width, height }) => width / height);
    expect(wide).toBeGreaterThan(2);
    expect(high).toBeLessThan(1.1);
  });
});

const drawings = (["agent", "turn", "toolCall"] as const).flatMap((name) =>
  charts[name].layouts.map((layout, index) => ({ what: `${name} ${index}`, chart: charts[name], layout })),
);

describe.each(drawings)("the drawing of $what", ({ chart: { states, transitions }, layout }) => {
  const labels = transitions.flatMap(({ from, to }, index) => {
    const box = layout.labels[index];
    return box ? [{ owner: `${from} > ${to}`, box }] : [];
  });
  const leaves = states.flatMap(({ path }, index) =>
    states.some((other) => other.path.startsWith(`${path}.`))
      ? []
      : [{ owner: path, box: layout.boxes[index] ?? none }],
  );

  it("has no overlapping states or labels, and none outside its frame", () => {
    const boxes = [...leaves, ...labels];
    const faults = boxes.flatMap((one, index) =>
      boxes.slice(index + 1).flatMap((other) => (overlap(one.box, other.box) ? [`${one.owner}, ${other.owner}`] : [])),
    );
    expect(faults).toEqual([]);
    const outside = boxes.filter(
      ({ box: [x, y, width, height] }) => x < 0 || y < 0 || x + width > layout.width || y + height > layout.height,
    );
    expect(outside).toEqual([]);
  });

  it("has no line through a state or another line's label", () => {
    const lines = transitions.flatMap(({ from, to }, index) =>
      segmentsOf(layout.lines[index] ?? []).map((box) => ({ owner: `${from} > ${to}`, box, ends: [from, to] })),
    );
    const faults = lines.flatMap((line) => [
      ...labels.filter(({ owner, box }) => owner !== line.owner && overlap(box, line.box)),
      ...leaves.filter(({ owner, box }) => !line.ends.includes(owner) && overlap(box, line.box)),
    ]);
    expect(faults).toEqual([]);
  });
});

const none: ChartBox = [0, 0, 0, 0];

function overlap(one: ChartBox, other: ChartBox): boolean {
  const [x, y, width, height] = one;
  const [otherX, otherY, otherWidth, otherHeight] = other;
  return x < otherX + otherWidth && otherX < x + width && y < otherY + otherHeight && otherY < y + height;
}

/** The straight segments of a line, as boxes one pixel wide. */
function segmentsOf(line: readonly number[]): readonly ChartBox[] {
  const points = pointsOf(line);
  return points.slice(1).map(([x, y], index) => {
    const [fromX = 0, fromY = 0] = points[index] ?? [];
    return [Math.min(x, fromX), Math.min(y, fromY), Math.abs(x - fromX) + 1, Math.abs(y - fromY) + 1];
  });
}

test("a label contains entries and their common guard, and counts omitted ones", () => {
  expect(labelLines([["a.b", ""]])).toEqual(["a.b"]);
  expect(labelLines([["", "isOver"]])).toEqual(["[isOver]"]);
  expect(
    labelLines([
      ["a.b", "one & two"],
      ["c.d", "two"],
    ]),
  ).toEqual(["a.b", "c.d", "[two]"]);
  expect(
    labelLines([
      ["a.b", "one"],
      ["c.d", ""],
    ]),
  ).toEqual(["a.b [one]", "c.d"]);
  expect(labelLines(Array.from({ length: 5 }, () => ["a.b", ""] as const))).toEqual(["5 events"]);
});

test("a line alternates between horizontal and vertical segments with round corners, which are smaller on short segments", () => {
  expect(pathOf([0, 0, 100, 4])).toBe("M0,0L94,0Q100,0 100,2L100,4");
  expect(pointsOf([0, 0, 0, 50, 20])).toEqual([
    [0, 0],
    [0, 50],
    [20, 50],
  ]);
});
