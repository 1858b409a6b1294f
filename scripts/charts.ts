import { join } from "node:path";
import elk, { type ElkExtendedEdge, type ElkNode } from "elkjs/lib/elk.bundled.js";
import type { AnyStateMachine, AnyStateNode } from "xstate";
import {
  type Chart,
  type ChartBeginning,
  type ChartBox,
  type Charts,
  type ChartState,
  type ChartTransition,
  chartText,
  labelLines,
} from "../src/inspector/ui/chart.ts";
import { agentMachine, type EffectMeta, toolCallMachine, turnMachine } from "../src/machines/index.ts";
import { repositoryRoot } from "./run-command.ts";
import { lastStates, stateSentences } from "./state-sentences.ts";

/** The file in which the page finds its charts. */
export const chartsFile = join(repositoryRoot, "src/inspector/ui/charts.json");

/** The content of that file: compact, one state or transition a line, so that a change of it can be read. */
export async function chartsText(): Promise<string> {
  const text = JSON.stringify(await layOutCharts());
  return `${text.replaceAll(/\{"(?=path|from|state")/g, "\n$&")}\n`;
}

/** The three statecharts, laid out. The same machines give the same charts. */
async function layOutCharts(): Promise<Charts> {
  return {
    agent: await layOut(agentMachine, "agent"),
    turn: await layOut(turnMachine, "turn"),
    toolCall: await layOut(toolCallMachine, "toolCall"),
  };
}

/**
 * More lines than these to one state are not drawn: the boxes that they come from name the state instead. Lines between such states
 * are drawn.
 */
const mostLinesTo = 6;

type Undrawn = Omit<ChartTransition, "line" | "label">;
type Unplaced = Omit<ChartState, keyof ChartBox>;

async function layOut(machine: AnyStateMachine, name: keyof Charts): Promise<Chart> {
  const nodes = statesIn(machine.root);
  const transitions = [machine.root, ...nodes].flatMap(transitionsOf);
  const pathsWithLines = nodes
    // A state with others inside is what the machine is about, and keeps its lines.
    .filter((node) => Object.keys(node.states).length > 0 || leadingTo(pathIn(node), transitions).length <= mostLinesTo)
    .map(pathIn);
  const isDrawn = ({ from, to }: Undrawn): boolean =>
    from !== "" && (pathsWithLines.includes(to) || !pathsWithLines.includes(from));
  const drawn = transitions.filter(isDrawn);
  const states = nodes.map((node) => describe(node, { name, paths: nodes.map(pathIn), transitions, drawn }));
  const { width = 0, height = 0, ...root } = await new elk.default().layout(graphOf(machine.root, states, drawn));
  const boxes = new Map(nodesIn(root).map((node) => [node.id, boxOf(node)]));
  const edges = new Map((root.edges ?? []).map((edge) => [edge.id, edge]));
  return {
    width: Math.ceil(width),
    height: Math.ceil(height),
    states: states.map((state) => ({ ...state, ...(boxes.get(state.path) ?? boxOf({})) })),
    transitions: transitions.map((transition) => ({ ...transition, ...drawingOf(edges.get(edgeId(transition))) })),
    beginnings: beginningsIn(machine.root).map(({ id, state }) => {
      // It begins at the edge of the dot, which is hidden when it begins in the middle.
      const [x = 0, ...rest] = lineOf(edges.get(id));
      return { state, line: [x - dotSize / 2, ...rest] };
    }),
  };
}

function statesIn(node: AnyStateNode): readonly AnyStateNode[] {
  return Object.values(node.states).flatMap((child) => [child, ...statesIn(child)]);
}

function pathIn(node: AnyStateNode): string {
  return node.path.join(".");
}

/** One for each state that the node leads to. What leads nowhere, and only notes an entry down, is left out. */
function transitionsOf(node: AnyStateNode): readonly Undrawn[] {
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
  // As `and([…])` makes it: a function with a field.
  const { guards } = guard as { readonly guards?: readonly unknown[] };
  if (guards?.every((one) => typeof one === "string") === true) return guards.join(" & ");
  throw new Error("A guard has no name; name it in setup({ guards }).");
}

function leadingTo(path: string, transitions: readonly Undrawn[]): readonly Undrawn[] {
  return transitions.filter(({ from, to }) => from !== "" && to === path);
}

interface Surroundings {
  readonly name: keyof Charts;
  /** Of all states, in the order of the machine. */
  readonly paths: readonly string[];
  readonly transitions: readonly Undrawn[];
  readonly drawn: readonly Undrawn[];
}

function describe(node: AnyStateNode, surroundings: Surroundings): Unplaced {
  const { name, transitions } = surroundings;
  const path = pathIn(node);
  const about = stateSentences[name][path];
  if (about === undefined)
    throw new Error(`The state ${path} of ${name} has no sentence in scripts/state-sentences.ts.`);
  const { effect } = (node.meta ?? {}) as Partial<EffectMeta>;
  const isFromAnywhere = transitions.some(({ from, to }) => from === "" && to === path);
  // The state around it says where it leads to, and so for all that is inside.
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

/** The states that a state leads to without a line. */
function aimsOf(path: string, { paths, transitions, drawn }: Surroundings): readonly string[] {
  const aims = transitions.filter((one) => one.from === path && !drawn.includes(one)).map(({ to }) => to);
  return paths.filter((one) => aims.includes(one));
}

const aimsInLine = 2;

function aimLines(aims: readonly string[]): readonly string[] {
  if (aims.length <= aimsInLine) return aims.length === 0 ? [] : [`⇥ ${aims.join(", ")}`];
  return [`⇥ ${aims.slice(0, aimsInLine).join(", ")},`, aims.slice(aimsInLine).join(", ")];
}

const graphOptions = {
  "elk.algorithm": "layered",
  "elk.direction": "RIGHT",
  "elk.hierarchyHandling": "INCLUDE_CHILDREN",
  "elk.edgeRouting": "ORTHOGONAL",
  "elk.json.edgeCoords": "ROOT",
  "elk.json.shapeCoords": "ROOT",
  "elk.padding": "[top=16,left=16,bottom=16,right=16]",
  "elk.spacing.nodeNode": "28",
  "elk.spacing.edgeNode": "24",
  "elk.spacing.edgeEdge": "12",
  "elk.spacing.edgeLabel": "4",
  "elk.layered.spacing.nodeNodeBetweenLayers": "36",
  "elk.layered.spacing.edgeNodeBetweenLayers": "20",
  "elk.layered.spacing.edgeEdgeBetweenLayers": "12",
  "elk.layered.nodePlacement.strategy": "NETWORK_SIMPLEX",
  "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
  "elk.layered.cycleBreaking.strategy": "MODEL_ORDER",
} as const;

const dotSize = 10;

function graphOf(root: AnyStateNode, states: readonly Unplaced[], drawn: readonly Undrawn[]): ElkNode {
  const known = new Map(states.map((state) => [state.path, state]));
  const nodeOf = (node: AnyStateNode): ElkNode => {
    const inner = Object.values(node.states).map(nodeOf);
    const beginning = beginningOf(node);
    const children =
      beginning === undefined ? inner : [{ id: beginning.id, width: dotSize, height: dotSize }, ...inner];
    const state = known.get(pathIn(node));
    if (state === undefined) return { id: "", children };
    const { width, height } = sizeOf(state);
    if (children.length === 0) return { id: state.path, width, height };
    const layoutOptions = {
      "elk.padding": `[top=${height + 4},left=16,bottom=16,right=16]`,
      "elk.nodeSize.constraints": "MINIMUM_SIZE",
      "elk.nodeSize.minimum": `(${width},${height})`,
    };
    return { id: state.path, children, layoutOptions };
  };
  const transitionEdges = drawn.map((transition): ElkExtendedEdge => {
    const lines = labelLines(transition.causes);
    const width = Math.ceil(Math.max(...lines.map((line) => widthOf(line) * chartText.size)));
    const label = {
      text: lines.join("\n"),
      // It lies on the line, with a gap on both sides.
      width: width + 8,
      height: lines.length * chartText.lineHeight,
      layoutOptions: { "elk.edgeLabels.inline": "true" },
    };
    return { id: edgeId(transition), sources: [transition.from], targets: [transition.to], labels: [label] };
  });
  const beginningEdges = beginningsIn(root).map(({ id, state }) => ({ id, sources: [id], targets: [state] }));
  return { ...nodeOf(root), layoutOptions: graphOptions, edges: [...beginningEdges, ...transitionEdges] };
}

function edgeId({ from, to }: Undrawn): string {
  return `${from} > ${to}`;
}

function beginningOf(node: AnyStateNode): { readonly id: string; readonly state: string } | undefined {
  const [first] = node.config.initial === undefined ? [] : (node.initial.target ?? []);
  return first === undefined ? undefined : { id: `> ${pathIn(first)}`, state: pathIn(first) };
}

function beginningsIn(root: AnyStateNode): readonly { readonly id: string; readonly state: string }[] {
  return [root, ...statesIn(root)].flatMap((node) => beginningOf(node) ?? []);
}

/** The least that a box needs for its texts. */
function sizeOf({ path, effect, notes }: Unplaced): { readonly width: number; readonly height: number } {
  const name = path.split(".").at(-1) ?? "";
  const small = [...(effect === undefined ? [] : [effect]), ...notes];
  const widths = [
    widthOf(name) * boldness * chartText.stateSize,
    ...small.map((text) => widthOf(text) * chartText.size),
  ];
  return {
    width: Math.ceil(Math.max(64, ...widths) + 2 * chartText.padding),
    height: chartText.stateLineHeight + small.length * chartText.lineHeight + chartText.padding,
  };
}

const boldness = 1.13;

/** The widths of letters in hundredths of the size of the type, of DejaVu Sans, which is wider than what most systems show. */
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

function boxOf({ x = 0, y = 0, width = 0, height = 0 }: Partial<ChartBox>): ChartBox {
  return { x: Math.round(x), y: Math.round(y), width: Math.ceil(width), height: Math.ceil(height) };
}

function drawingOf(edge: ElkExtendedEdge | undefined): Pick<ChartTransition, "line" | "label"> {
  if (edge === undefined) return {};
  const [label] = edge.labels ?? [];
  return { line: lineOf(edge), ...(label && { label: boxOf(label) }) };
}

function lineOf(edge: ElkExtendedEdge | undefined): ChartBeginning["line"] {
  const [section] = edge?.sections ?? [];
  if (section === undefined) throw new Error("The layout left a line out.");
  const points = [section.startPoint, ...(section.bendPoints ?? []), section.endPoint];
  return points.flatMap(({ x, y }) => [Math.round(x), Math.round(y)]);
}
