// The state of the timeline, shared by its controls, ruler and bars, which are in different locations of the page.
import { computed, signal } from "@preact/signals";
import { AmountAxis, type Axis } from "../run-model/axis.ts";
import { note, route, session } from "./page-state.ts";
import { shownRows } from "./shown-agents.ts";
import type { OpenSpan } from "./span-aside.tsx";

/** The visible range of the axis, from 0 to 1. */
export interface Window {
  readonly from: number;
  readonly to: number;
}

export const wholeRun: Window = { from: 0, to: 1 };

export const measures = ["time", "tokens", "cost"] as const;
export const measure = signal<(typeof measures)[number]>("time");
export const isTable = signal(false);
export const shownWindow = signal(wholeRun);
/** The open bar: it begins at the moment that `span` in the address names. */
export const openedSpan = computed((): OpenSpan | null => {
  const run = session.value;
  const { span: address } = route.value;
  if (!run || address === null || run.length.value === 0) return null;
  const count = run.countAt(address);
  if (count === null) return null;
  const agent = run.log.agentOf(count - 1);
  const span = run.timeline.spansOf(agent).find(({ first }) => first === count - 1);
  return span ? { agent, span } : null;
});

export function openSpan(opened: OpenSpan | null): void {
  note({ span: opened && (session.peek()?.log.addressOf(opened.span.first + 1) ?? null) });
}

/** Width of the bars and of the ruler. */
export const barsWidth = signal(0);

/** Whether the rows of the tree show bars. */
export const hasBars = computed(() => route.value.view === "timeline" && !isTable.value);

/** The axis of time, or of the amounts that each agent spent. */
export const shownAxis = computed((): Axis | undefined => {
  const run = session.value;
  const time = run?.axis.value;
  const by = measure.value;
  if (!run || by === "time") return time;
  const rows = run.log.agents.map(({ index }) => run.timeline.spansOf(index));
  return new AmountAxis(rows, ({ tokens, costMicros }) => (by === "tokens" ? tokens : costMicros));
});

const ROW_HEIGHT = 40;
const LOW_HEIGHT = 24;
/** With more rows than this, all rows are low. */
const MOST_HIGH = 40;

export const isLow = computed(() => hasBars.value && shownRows.value.length > MOST_HIGH);

/** The top of each row, and the end of the last row. With bars, a row is as high as its lanes. */
export const rowTops = computed((): readonly number[] => {
  const rows = shownRows.value;
  const timeline = hasBars.value && !isLow.value ? session.value?.timeline : undefined;
  // Reading the axis updates the timeline's spans.
  if (timeline) void session.value?.axis.value;
  const tops = [0];
  for (const { agent } of rows) {
    const lanes = timeline?.lanesOf(agent.index) ?? 0;
    tops.push((tops.at(-1) ?? 0) + (isLow.value ? LOW_HEIGHT : Math.max(ROW_HEIGHT, 9 + lanes * 16)));
  }
  return tops;
});

/** Scroll offset and visible height of the rows. */
export const rowScroll = signal({ top: 0, height: 0 });

let scroller: HTMLElement | null = null;

/** The scrolling element of the rows. */
export function setScroller(element: HTMLElement | null): void {
  scroller = element;
}

export function scrollRowsTo(top: number): void {
  if (scroller) scroller.scrollTop = top;
}

export function zoom(factor: number, around = 0.5): void {
  const { from, to } = shownWindow.peek();
  const width = Math.min(1, Math.max(0.0005, (to - from) * factor));
  const middle = from + (to - from) * around;
  const start = Math.max(0, Math.min(1 - width, middle - width * around));
  shownWindow.value = { from: start, to: start + width };
}

/** `share`: share of the width to move by. */
export function pan({ from, to }: Window, share: number): void {
  const width = to - from;
  const start = Math.max(0, Math.min(1 - width, from + share * width));
  shownWindow.value = { from: start, to: start + width };
}
