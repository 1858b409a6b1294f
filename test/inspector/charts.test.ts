import { readFileSync } from "node:fs";
import { describe, expect, it, test } from "vitest";
import { chartsFile, chartsText } from "../../scripts/charts.ts";
import { lastStates, stateSentences } from "../../scripts/state-sentences.ts";
import { type ChartBox, type Charts, labelLines, pathOf } from "../../src/inspector/ui/chart.ts";
import { agentMachine, toolCallMachine, turnMachine } from "../../src/machines/index.ts";
import { nodesOf } from "../architecture/machine-walk.ts";

const machines = { agent: agentMachine, turn: turnMachine, toolCall: toolCallMachine };
const charts = JSON.parse(readFileSync(chartsFile, "utf8")) as Charts;

test("the charts of the page are those of the machines", async () => {
  const isSame = readFileSync(chartsFile, "utf8") === (await chartsText());
  expect(isSame, "src/inspector/ui/charts.json is not what the machines give: run npm run build:charts").toBe(true);
});

describe.each(["agent", "turn", "toolCall"] as const)("%s", (name) => {
  const paths = nodesOf(machines[name].root)
    .map(({ path }) => path.join("."))
    .filter((path) => path !== "");

  it("has a sentence for each state, and for no other", () => {
    expect(Object.keys(stateSentences[name]).sort()).toEqual(paths.toSorted());
    for (const sentence of Object.values(stateSentences[name])) expect(sentence).toMatch(/^[A-Z][^.]{15,110}\.$/);
    expect(paths).toEqual(expect.arrayContaining([...lastStates[name]]));
  });

  it("shows each state, and each transition by a line, by the boxes of its states, or as one from any state", () => {
    const { states, transitions } = charts[name];
    expect(states.map(({ path }) => path)).toEqual(paths);
    const notesOf = (path: string): string => states.find((state) => state.path === path)?.notes.join(" ") ?? "";
    const untold = transitions.filter(({ from, to, line }) => {
      if (line) return false;
      if (from === "") return !notesOf(to).includes("from any state");
      const [outer = ""] = from.split(".");
      return !new RegExp(`⇥ .*\\b${to}\\b`).test(`${notesOf(from)} ${notesOf(outer)}`);
    });
    expect(untold).toEqual([]);
  });
});

describe.each(["agent", "turn", "toolCall"] as const)("the drawing of %s", (name) => {
  const { states, transitions } = charts[name];
  const labels = transitions.flatMap(({ from, to, label }) =>
    label ? [{ owner: `${from} > ${to}`, box: label }] : [],
  );
  const leaves = states.filter(({ path }) => !states.some((other) => other.path.startsWith(`${path}.`)));

  it("has no states and labels that lie on each other", () => {
    const boxes = [...leaves.map((state) => ({ owner: state.path, box: state as ChartBox })), ...labels];
    const faults = boxes.flatMap((one, index) =>
      boxes.slice(index + 1).flatMap((other) => (overlap(one.box, other.box) ? [`${one.owner}, ${other.owner}`] : [])),
    );
    expect(faults).toEqual([]);
  });

  it("leads no line through the label of another one", () => {
    const lines = transitions.flatMap(({ from, to, line }) =>
      segmentsOf(line ?? []).map((box) => ({ owner: `${from} > ${to}`, box })),
    );
    const faults = lines.flatMap((line) =>
      labels.filter(({ owner, box }) => owner !== line.owner && overlap(box, line.box)).map(({ owner }) => owner),
    );
    expect(faults).toEqual([]);
  });
});

function overlap(one: ChartBox, other: ChartBox): boolean {
  return (
    one.x < other.x + other.width &&
    other.x < one.x + one.width &&
    one.y < other.y + other.height &&
    other.y < one.y + one.height
  );
}

/** The straight parts of a line, as boxes of one pixel. */
function segmentsOf(line: readonly number[]): readonly ChartBox[] {
  const points = Array.from({ length: line.length / 2 }, (_, index) => line.slice(index * 2, index * 2 + 2));
  return points.slice(1).map(([x = 0, y = 0], index) => {
    const [fromX = 0, fromY = 0] = points[index] ?? [];
    const width = Math.abs(x - fromX) + 1;
    return { x: Math.min(x, fromX), y: Math.min(y, fromY), width, height: Math.abs(y - fromY) + 1 };
  });
}

test("a label names entries and the guard that they share, and counts what is too much", () => {
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

test("a line has round corners, smaller ones where it is short", () => {
  expect(pathOf([0, 0, 100, 0, 100, 4])).toBe("M0,0L94,0Q100,0 100,2L100,4");
});
