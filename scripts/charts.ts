import { join } from "node:path";
import elk, { type ElkExtendedEdge, type ElkLabel, type ElkNode, type ElkShape } from "elkjs/lib/elk.bundled.js";
import type { AnyStateMachine, AnyStateNode } from "xstate";
import {
  type Chart,
  type ChartBox,
  type ChartLayout,
  type Charts,
  type ChartState,
  type ChartTransition,
  chartText,
  labelLines,
  nameLines,
  textLines,
} from "../src/inspector/ui/chart.ts";
import { agentMachine, type EffectMeta, toolCallMachine, turnMachine } from "../src/machines/index.ts";
import { repositoryRoot } from "./run-command.ts";
import { lastStates, stateSentences } from "./state-sentences.ts";

/** The page's file with the charts. */
export const chartsFile = join(repositoryRoot, "src/inspector/ui/charts.json");

/**
 * The content of that file: compact, with one state, transition or list of positions per line, so that diffs are readable.
 */
export async function chartsText(): Promise<string> {
  const text = JSON.stringify(await layOutCharts());
  return `${text.replaceAll(/\{"(?=path|from|isNear)|"(?=boxes|lines|labels|dots)/g, "\n$&")}\n`;
}

/** The three statecharts with layouts. The result is deterministic. */
async function layOutCharts(): Promise<Charts> {
  return {
    agent: await layOut(agentMachine, "agent"),
    turn: await layOut(turnMachine, "turn"),
    toolCall: await layOut(toolCallMachine, "toolCall"),
  };
}

/**
 * If more lines than this lead to one state, they are not drawn; their source boxes name the state instead. Lines between
 * such states are drawn.
 */
const mostLinesTo = 6;

async function layOut(machine: AnyStateMachine, name: keyof Charts): Promise<Chart> {
  const nodes = statesIn(machine.root);
  const transitions = [machine.root, ...nodes].flatMap(transitionsOf);
  const pathsWithLines = nodes
    // A state with child states is central to the machine and keeps its lines.
    .filter((node) => Object.keys(node.states).length > 0 || leadingTo(pathIn(node), transitions).length <= mostLinesTo)
    .map(pathIn);
  const isDrawn = ({ from, to }: ChartTransition): boolean =>
    from !== "" && (pathsWithLines.includes(to) || !pathsWithLines.includes(from));
  const drawn = transitions.filter(isDrawn);
  const states = nodes.map((node) => describe(node, { name, paths: nodes.map(pathIn), transitions, drawn }));
  const beginnings = beginningsIn(machine.root).map(({ state }) => state);
  const layouts: ChartLayout[] = [];
  for (const shape of shapes[name]) {
    layouts.push(await placed({ root: machine.root, states, transitions, drawn, beginnings }, shape));
  }
  return { states, transitions, beginnings, layouts };
}

interface Unplaced extends Omit<Chart, "layouts"> {
  readonly root: AnyStateNode;
  readonly drawn: readonly ChartTransition[];
}

async function placed(chart: Unplaced, shape: Shape): Promise<ChartLayout> {
  const { width = 0, height = 0, ...root } = await new elk.default().layout(graphOf(chart, shape));
  const boxes = new Map(nodesIn(root).map((node) => [node.id, boxOf(node)]));
  const edges = new Map((root.edges ?? []).map((edge) => [edge.id, edge]));
  const its = chart.transitions.map((transition) => edges.get(edgeId(transition)));
  return {
    isNear: shape.isNear,
    width: Math.ceil(width),
    height: Math.ceil(height),
    boxes: chart.states.map(({ path }) => boxes.get(path) ?? boxOf({})),
    lines: its.map((edge) => (edge ? lineOf(edge) : [])),
    labels: shape.isNear ? its.map((edge) => edge?.labels?.map(boxOf)[0] ?? null) : [],
    dots: chart.beginnings.map((state) => {
      // The line begins at the edge of the dot; from the center it would be hidden.
      const [x = 0, y = 0, ...rest] = lineOf(edges.get(beginningId(state)));
      return shape.options["elk.direction"] === "RIGHT" ? [x - dotSize / 2, y, ...rest] : [x, y - dotSize / 2, ...rest];
    }),
  };
}

function statesIn(node: AnyStateNode): readonly AnyStateNode[] {
  return Object.values(node.states).flatMap((child) => [child, ...statesIn(child)]);
}

function pathIn(node: AnyStateNode): string {
  return node.path.join(".");
}

/** One for each target state of the node. Transitions without a target are left out. */
function transitionsOf(node: AnyStateNode): readonly ChartTransition[] {
  const from = pathIn(node);
  const causes = new Map<string, [string, string][]>();
  for (const [entry, transitions] of node.transitions) {
    for (const { target = [], guard } of transitions) {
      for (const to of target.map(pathIn)) causes.set(to, [...(causes.get(to) ?? []), [entry, guardName(guard)]]);
    }
  }
  return [...causes].map(([to, its]) => ({ from, to, causes: its }));
}

function guardName(guard: unknown): string {
  if (guard === undefined) return "";
  if (typeof guard === "string") return guard;
  // The result of `and([…])`: a function with a field.
  const { guards } = guard as { readonly guards?: readonly unknown[] };
  if (guards?.every((one) => typeof one === "string") === true) return guards.join(" & ");
  throw new Error("A guard has no name; name it in setup({ guards }).");
}

function leadingTo(path: string, transitions: readonly ChartTransition[]): readonly ChartTransition[] {
  return transitions.filter(({ from, to }) => from !== "" && to === path);
}

interface Surroundings {
  readonly name: keyof Charts;
  /** All states, in the machine's order. */
  readonly paths: readonly string[];
  readonly transitions: readonly ChartTransition[];
  readonly drawn: readonly ChartTransition[];
}

function describe(node: AnyStateNode, surroundings: Surroundings): ChartState {
  const { name, transitions } = surroundings;
  const path = pathIn(node);
  const about = stateSentences[name][path];
  if (about === undefined)
    throw new Error(`The state ${path} of ${name} has no sentence in scripts/state-sentences.ts.`);
  const { effect } = (node.meta ?? {}) as Partial<EffectMeta>;
  const isFromAnywhere = transitions.some(({ from, to }) => from === "" && to === path);
  // The parent state has the note for all its child states.
  const outer = path.split(".").slice(0, -1).join(".");
  const known = outer === "" ? [] : aimsOf(outer, surroundings);
  const aims = aimsOf(path, surroundings).filter((aim) => !known.includes(aim));
  return {
    path,
    about,
    ...(effect !== undefined && { effect }),
    notes: [...(isFromAnywhere ? ["from any state"] : []), ...aimLines(aims)],
    ...(lastStates[name].includes(path) && { isLast: true }),
  };
}

/** The target states of a state without a line. */
function aimsOf(path: string, { paths, transitions, drawn }: Surroundings): readonly string[] {
  const aims = transitions.filter((one) => one.from === path && !drawn.includes(one)).map(({ to }) => to);
  return paths.filter((one) => aims.includes(one));
}

const aimsInLine = 2;

function aimLines(aims: readonly string[]): readonly string[] {
  if (aims.length <= aimsInLine) return aims.length === 0 ? [] : [`⇥ ${aims.join(", ")}`];
  return [`⇥ ${aims.slice(0, aimsInLine).join(", ")},`, aims.slice(aimsInLine).join(", ")];
}

interface Shape {
  /** Whether it shows transition labels and descriptions of states; if not, only the states and their lines. */
  readonly isNear: boolean;
  readonly options: Readonly<Record<`elk.${string}`, string>>;
}

const layered = {
  "elk.algorithm": "layered",
  "elk.hierarchyHandling": "INCLUDE_CHILDREN",
  "elk.edgeRouting": "ORTHOGONAL",
  "elk.json.edgeCoords": "ROOT",
  "elk.json.shapeCoords": "ROOT",
  "elk.layered.nodePlacement.strategy": "NETWORK_SIMPLEX",
  "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
} as const;

const nearShape: Shape = {
  isNear: true,
  options: {
    ...layered,
    "elk.direction": "RIGHT",
    "elk.padding": "[top=16,left=16,bottom=16,right=16]",
    "elk.spacing.nodeNode": "28",
    "elk.spacing.edgeNode": "24",
    "elk.spacing.edgeEdge": "12",
    "elk.spacing.edgeLabel": "4",
    "elk.layered.spacing.nodeNodeBetweenLayers": "36",
    "elk.layered.spacing.edgeNodeBetweenLayers": "20",
    "elk.layered.spacing.edgeEdgeBetweenLayers": "12",
    "elk.layered.cycleBreaking.strategy": "MODEL_ORDER",
  },
};

const far = {
  ...layered,
  "elk.padding": "[top=2,left=2,bottom=2,right=2]",
  "elk.spacing.componentComponent": "12",
  "elk.spacing.nodeNode": "12",
  "elk.spacing.edgeNode": "7",
  "elk.spacing.edgeEdge": "5",
  "elk.layered.spacing.nodeNodeBetweenLayers": "12",
  "elk.layered.spacing.edgeNodeBetweenLayers": "8",
  "elk.layered.spacing.edgeEdgeBetweenLayers": "6",
} as const;

/** For boxes that are wider than they are high. */
const wide = {
  ...far,
  "elk.direction": "RIGHT",
  "elk.layered.considerModelOrder.strategy": "NONE",
  "elk.layered.cycleBreaking.strategy": "GREEDY",
} as const;

/** For other boxes: at most three states side by side. */
const tall = {
  ...far,
  "elk.direction": "DOWN",
  "elk.layered.cycleBreaking.strategy": "GREEDY",
  "elk.layered.layering.strategy": "COFFMAN_GRAHAM",
  "elk.layered.layering.coffmanGraham.layerBound": "3",
} as const;

const minWidth = { "elk.layered.layering.strategy": "MIN_WIDTH" } as const;
const tallByOrder = { ...tall, ...minWidth, "elk.layered.cycleBreaking.strategy": "MODEL_ORDER" } as const;

/** The smallest of many tried layouts. The page uses the one that fits its box at the largest scale. */
const shapes: Readonly<Record<keyof Charts, readonly Shape[]>> = {
  agent: [{ isNear: false, options: wide }, { isNear: false, options: tall }, nearShape],
  turn: [{ isNear: false, options: wide }, { isNear: false, options: tallByOrder }, nearShape],
  toolCall: [{ isNear: false, options: { ...wide, ...minWidth } }, { isNear: false, options: tallByOrder }, nearShape],
};

const dotSize = 10;

function graphOf({ root, states, drawn }: Unplaced, { isNear, options }: Shape): ElkNode {
  const known = new Map(states.map((state) => [state.path, state]));
  const nodeOf = (node: AnyStateNode): ElkNode => {
    const inner = Object.values(node.states).map(nodeOf);
    const beginning = beginningOf(node);
    const children =
      beginning === undefined ? inner : [{ id: beginning.id, width: dotSize, height: dotSize }, ...inner];
    const state = known.get(pathIn(node));
    if (state === undefined) return { id: "", children };
    const { width, height } = sizeOf(state, isNear);
    if (children.length === 0) return { id: state.path, width, height };
    const gap = isNear ? 16 : 8;
    const layoutOptions = {
      "elk.padding": `[top=${height + gap / 4},left=${gap},bottom=${gap},right=${gap}]`,
      "elk.nodeSize.constraints": "MINIMUM_SIZE",
      "elk.nodeSize.minimum": `(${width},${height})`,
    };
    return { id: state.path, children, layoutOptions };
  };
  const transitionEdges = drawn.map((transition): ElkExtendedEdge => {
    const edge = { id: edgeId(transition), sources: [transition.from], targets: [transition.to] };
    return isNear ? { ...edge, labels: [labelOf(transition)] } : edge;
  });
  const beginningEdges = beginningsIn(root).map(({ id, state }) => ({ id, sources: [id], targets: [state] }));
  return { ...nodeOf(root), layoutOptions: options, edges: [...beginningEdges, ...transitionEdges] };
}

function labelOf({ causes }: ChartTransition): ElkLabel {
  const lines = labelLines(causes);
  const width = Math.ceil(Math.max(...lines.map((line) => widthOf(line) * chartText.size)));
  return {
    text: lines.join("\n"),
    // The label is on the line, with a gap on both sides.
    width: width + 8,
    height: lines.length * chartText.lineHeight,
    layoutOptions: { "elk.edgeLabels.inline": "true" },
  };
}

function edgeId({ from, to }: ChartTransition): string {
  return `${from} > ${to}`;
}

function beginningId(state: string): string {
  return `> ${state}`;
}

function beginningOf(node: AnyStateNode): { readonly id: string; readonly state: string } | undefined {
  const [first] = node.config.initial === undefined ? [] : (node.initial.target ?? []);
  return first === undefined ? undefined : { id: beginningId(pathIn(first)), state: pathIn(first) };
}

function beginningsIn(root: AnyStateNode): readonly { readonly id: string; readonly state: string }[] {
  return [root, ...statesIn(root)].flatMap((node) => beginningOf(node) ?? []);
}

/** Minimum size of a box for its texts. */
function sizeOf(state: ChartState, isNear: boolean): { readonly width: number; readonly height: number } {
  const names = nameLines(state.path, isNear);
  const small = isNear ? textLines(state) : [];
  const padding = chartText.padding[isNear ? "near" : "far"];
  const widths = [
    ...names.map((text) => widthOf(text) * boldness * chartText.stateSize),
    ...small.map((text) => widthOf(text) * chartText.size),
  ];
  const nameHeight = chartText.stateLineHeight + (names.length - 1) * chartText.lineHeight;
  return {
    width: Math.ceil(Math.max(isNear ? 64 : 0, ...widths) + 2 * padding),
    height: nameHeight + small.length * chartText.lineHeight + padding,
  };
}

const boldness = 1.13;

/** Letter widths of DejaVu Sans in hundredths of the font size. It is wider than the fonts of most systems. */
const letterWidths: readonly (readonly [hundredths: number, letters: string])[] = [
  [28, "'IJijl"],
  [35, " ,./:;|f"],
  [40, "!()-[]t"],
  [45, "r"],
  [60, '?csz"*_FLPkvxy'],
  [85, "&DGOQ#+<=>~⇥"],
  [100, "@WMm%…"],
  [80, "w"],
  [74, "ABCKRVXZHNU"],
];

function widthOf(text: string): number {
  const widths = Array.from(text, (letter) => letterWidths.find(([, letters]) => letters.includes(letter))?.[0] ?? 64);
  return widths.reduce((sum, width) => sum + width, 0) / 100;
}

function nodesIn(node: ElkNode): readonly ElkNode[] {
  return (node.children ?? []).flatMap((child) => [child, ...nodesIn(child)]);
}

function boxOf({ x = 0, y = 0, width = 0, height = 0 }: ElkShape): ChartBox {
  return [Math.round(x), Math.round(y), Math.ceil(width), Math.ceil(height)];
}

function lineOf(edge: ElkExtendedEdge | undefined): readonly number[] {
  const [section] = edge?.sections ?? [];
  if (section === undefined) throw new Error("The layout left a line out.");
  const line = [Math.round(section.startPoint.x), Math.round(section.startPoint.y)];
  for (const point of [...(section.bendPoints ?? []), section.endPoint]) {
    const [x, y] = [Math.round(point.x), Math.round(point.y)];
    // A step along the same axis as the previous one extends it. A line that starts downward keeps its first x.
    const isToX = line.length % 2 === 0;
    const [beforeX, beforeY] = isToX ? line.slice(-2) : line.slice(-2).toReversed();
    if (x === beforeX && y === beforeY) continue;
    const isOnX = y === beforeY;
    if (isOnX === isToX) line.push(isOnX ? x : y);
    else if (line.length === 2) line.push(line[0] ?? 0, y);
    else line[line.length - 1] = isOnX ? x : y;
  }
  return line;
}
