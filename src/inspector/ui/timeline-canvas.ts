import type { Axis } from "../run-model/axis.ts";
import type { CriticalPath } from "../run-model/critical-path.ts";
import type { Span } from "../run-model/timeline.ts";
import { cleared, hatch } from "./canvas.ts";
import { milliseconds } from "./format.ts";
import { selectedAgent } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { colour } from "./settings.ts";
import type { Window } from "./timeline-state.ts";

interface AxisFrame {
  readonly run: RunSession;
  readonly width: number;
  readonly height: number;
  readonly view: Window;
  readonly axis: Axis;
}

export interface RulerFrame extends AxisFrame {
  /** Formats a position on the axis. */
  readonly label: (place: number) => string;
}

export interface BarsFrame extends AxisFrame {
  /** Agents in row order. */
  readonly order: readonly number[];
  /** The top of each row, and the end of the last row. */
  readonly tops: readonly number[];
  /** Scroll offset of the rows. */
  readonly top: number;
  /** Spans without which the run would have ended sooner; `undefined` unless *critical only* is on. */
  readonly critical: CriticalPath | undefined;
  readonly hovered: Span | undefined;
  /** The open span, shown in the detail pane. */
  readonly opened: Span | undefined;
}

type Pen = CanvasRenderingContext2D;

/** Prepares a canvas of the size of the frame. */
function penOn(canvas: HTMLCanvasElement, { width, height }: AxisFrame): Pen | null {
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  return cleared(canvas, width, height);
}

function placeIn({ axis, width, view }: AxisFrame): AxisPlace {
  const scale = width / ((view.to - view.from) * axis.length);
  return { axis, scale, x: (place) => (place - view.from * axis.length) * scale };
}

export function drawBars(canvas: HTMLCanvasElement, frame: BarsFrame): void {
  const pen = penOn(canvas, frame);
  if (!pen) return;
  const place = placeIn(frame);
  drawGrid(pen, frame, place);
  drawRows(pen, frame, place.x);
  drawMoment(pen, frame, place);
}

export function drawRuler(canvas: HTMLCanvasElement, frame: RulerFrame): void {
  const pen = penOn(canvas, frame);
  if (!pen) return;
  const place = placeIn(frame);
  drawAxis(pen, frame, place);
  drawMoment(pen, frame, place);
}

/** Greatest height of bars. */
const MOST_LANE = 20;

/** Top and height of the lanes of a row. */
export function lanesIn(rowHeight: number, lanes: number): { readonly top: number; readonly height: number } {
  const count = Math.max(1, lanes);
  const height = Math.min(MOST_LANE, (rowHeight - 7) / count);
  return { top: (rowHeight - 1 - count * height) / 2, height };
}

function drawRows(pen: Pen, frame: BarsFrame, x: (place: number) => number): void {
  const { run, order, tops, top, width, height, critical, axis } = frame;
  const moment = run.moment.peek();
  const colours = coloursOf(pen);
  const line = colour("line-soft");
  for (let row = rowAt(tops, top); row < order.length && (tops[row] ?? 0) < top + height; row += 1) {
    const agent = order[row] ?? 0;
    const y = (tops[row] ?? 0) - top;
    const rowHeight = (tops[row + 1] ?? 0) - (tops[row] ?? 0);
    pen.fillStyle = line;
    pen.fillRect(0, y + rowHeight - 1, width, 1);
    const { top: lanesTop, height: laneHeight } = lanesIn(rowHeight, run.timeline.lanesOf(agent));
    const now = run.endOf(agent);
    for (const span of run.timeline.spansOf(agent)) {
      const range = axis.rangeOf(span, now);
      if (!range) continue;
      const [from, to] = [x(range.from), x(range.to)];
      if (to < 0 || from > width) continue;
      const isFuture = span.first >= moment.count;
      pen.globalAlpha = isFuture ? 0.22 : critical && critical.get(agent)?.has(span) !== true ? 0.3 : 1;
      // In a low row, spans that exclude all other work take the full height.
      const isAlone = laneHeight < 8 && span.lane === 0 && span.kind !== "tool" && span.kind !== "queue";
      const box = {
        // Of an interrupted call, possibly only the beginning is known.
        x: span.last < 0 ? Math.min(from, width - 4) : from,
        y: y + lanesTop + span.lane * laneHeight,
        width: Math.max(span.last < 0 ? 4 : 1.5, to - from - 0.5),
        laneHeight: isAlone ? rowHeight - 7 : laneHeight,
      };
      const isBroken = span.isFailed || (span.last < 0 && run.lost.peek().has(agent));
      drawSpan(pen, span, { ...box, colours, isBroken, hasLabel: !isFuture });
      if (span === frame.hovered || span === frame.opened) outline(pen, box);
    }
    pen.globalAlpha = 1;
  }
}

interface SpanBox {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly laneHeight: number;
  readonly colours: Colours;
  readonly hasLabel: boolean;
  /** Whether the span failed or was interrupted. */
  readonly isBroken: boolean;
}

/** The row at a vertical position. */
export function rowAt(tops: readonly number[], y: number): number {
  let low = 0;
  let high = tops.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((tops[middle + 1] ?? Number.POSITIVE_INFINITY) > y) high = middle;
    else low = middle + 1;
  }
  return low;
}

interface Colours {
  readonly fills: ReadonlyMap<string, string | CanvasPattern>;
  readonly failed: string;
  readonly onFill: string;
  readonly text: string;
  readonly panel: string;
  readonly muted: string;
}

function coloursOf(pen: Pen): Colours {
  const plain = ["model", "tool", "retry", "person"] as const;
  const hatched = ["child", "queue", "budget", "pause"] as const;
  const fills = new Map<string, string | CanvasPattern>(plain.map((kind) => [kind, colour(`span-${kind}`)]));
  for (const kind of hatched) fills.set(kind, hatch(pen, colour(`span-${kind}`)));
  return {
    fills,
    failed: colour("bad"),
    onFill: colour("on-span"),
    text: colour("text"),
    panel: colour("panel"),
    muted: colour("muted"),
  };
}

function drawSpan(pen: Pen, span: Span, { x, y, width, laneHeight, colours, hasLabel, isBroken }: SpanBox): void {
  const tall = Math.max(2, laneHeight - (laneHeight > 5 ? 1.5 : 0.5));
  pen.fillStyle = colours.fills.get(span.kind) ?? colours.text;
  pen.beginPath();
  pen.roundRect(x, y, width, tall, Math.min(3, tall / 3, width / 2));
  pen.fill();
  if (isBroken) drawFailure(pen, { x, y, width, tall }, colours);
  if (!hasLabel || tall < 12 || width < 28) return;
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const isSolid = typeof colours.fills.get(span.kind) === "string";
  pen.fillStyle = isSolid ? colours.onFill : colours.text;
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width - 4, tall);
  pen.clip();
  const left = Math.max(x, 0) + (isBroken ? 18 : 6);
  if (!isSolid) {
    const wide = pen.measureText(span.label).width;
    pen.fillStyle = colours.panel;
    pen.fillRect(left - 3, y, wide + 6, tall);
    pen.fillStyle = colours.muted;
  }
  pen.fillText(span.label, left, y + tall / 2 + 0.5);
  pen.restore();
}

/** Draws a red frame, and a cross if there is room for it. */
function drawFailure(
  pen: Pen,
  { x, y, width, tall }: { readonly x: number; readonly y: number; readonly width: number; readonly tall: number },
  { failed, panel }: Colours,
): void {
  pen.strokeStyle = failed;
  pen.fillStyle = failed;
  if (width < 6 || tall < 5) {
    pen.fillRect(x, y, width, tall);
    return;
  }
  pen.lineWidth = 2;
  pen.strokeRect(x + 1, y + 1, width - 2, tall - 2);
  if (width < 16 || tall < 12) return;
  const [left, middle] = [Math.max(x, 0), y + tall / 2];
  pen.fillRect(left, y, 14, tall);
  pen.strokeStyle = panel;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(left + 4, middle - 3);
  pen.lineTo(left + 10, middle + 3);
  pen.moveTo(left + 10, middle - 3);
  pen.lineTo(left + 4, middle + 3);
  pen.stroke();
}

function outline(pen: Pen, { x, y, width, laneHeight }: Omit<SpanBox, "colours" | "hasLabel" | "isBroken">): void {
  pen.strokeStyle = colour("text");
  pen.lineWidth = 1.5;
  pen.strokeRect(x - 0.5, y - 0.5, width + 1, laneHeight);
}

interface AxisPlace {
  readonly axis: Axis;
  /** Pixels per unit of the axis. */
  readonly scale: number;
  readonly x: (place: number) => number;
}

function stepOf({ scale }: AxisPlace): number {
  const least = 84 / scale;
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((times) => times * power >= least) ?? 10);
}

/** Draws the lines behind the rows, the selected row and idle gaps. */
function drawGrid(pen: Pen, { order, tops, top, width, height, view }: BarsFrame, place: AxisPlace): void {
  const { axis, scale, x } = place;
  const row = order.indexOf(selectedAgent.peek());
  if (row >= 0) {
    pen.fillStyle = colour("selected");
    pen.fillRect(0, (tops[row] ?? 0) - top, width, (tops[row + 1] ?? 0) - (tops[row] ?? 0));
  }
  pen.fillStyle = colour("line-soft");
  const from = view.from * axis.length;
  const step = stepOf(place);
  for (let at = Math.ceil(from / step) * step; at <= view.to * axis.length; at += step) {
    pen.fillRect(Math.round((at - from) * scale), 0, 1, height);
  }
  pen.fillStyle = hatch(pen, colour("line"));
  for (const { place: at, width: wide } of axis.gaps) pen.fillRect(x(at), 0, wide * scale, height);
}

function drawAxis(pen: Pen, { width, height, view, label: labelOf }: RulerFrame, place: AxisPlace): void {
  const { axis, scale, x } = place;
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const step = stepOf(place);
  const from = view.from * axis.length;
  const gapMiddles = axis.gaps.map((gap) => x(gap.place + gap.width / 2));
  const [line, muted] = [colour("line"), colour("muted")];
  for (let at = Math.ceil(from / step) * step; at <= view.to * axis.length; at += step) {
    const left = (at - from) * scale;
    // A gap folds idle time, so it gets no ticks.
    if (axis.gaps.some((gap) => at > gap.place && at < gap.place + gap.width)) continue;
    pen.fillStyle = line;
    pen.fillRect(Math.round(left), height - 6, 1, 6);
    pen.fillStyle = muted;
    if (gapMiddles.some((middle) => Math.abs(middle - left - 16) < 64)) continue;
    const label = at === 0 ? "0" : labelOf(at);
    if (left + 4 + pen.measureText(label).width > width) continue;
    pen.fillText(label, left + 4, height / 2);
  }
  pen.fillStyle = line;
  pen.fillRect(0, height - 1, width, 1);
  let free = 0;
  for (const gap of axis.gaps) {
    const [left, right] = [x(gap.place), x(gap.place + gap.width)];
    free = drawGap(pen, { left, right, ms: gap.to - gap.from, free }, { width, height });
  }
}

/** Draws a line at the page's moment, if it is an earlier one. */
function drawMoment(pen: Pen, { run, width, height }: AxisFrame, { axis, x }: AxisPlace): void {
  const at = axis.positionOf(run.moment.peek().time);
  const head = at === undefined ? -1 : x(at);
  pen.fillStyle = colour("accent");
  if (!run.isLive.peek() && head >= 0 && head <= width) pen.fillRect(Math.round(head) - 1, 0, 2, height);
}

interface GapPlace {
  readonly left: number;
  readonly right: number;
  readonly ms: number;
  /** The end of the previous gap's label. */
  readonly free: number;
}

/** Returns the end of the gap's label. A gap without room gets no label. */
function drawGap(
  pen: Pen,
  { left, right, ms, free }: GapPlace,
  { width, height }: { readonly width: number; readonly height: number },
): number {
  if (right < 0 || left > width) return free;
  const text = `${milliseconds(ms)} idle`;
  const wide = pen.measureText(text).width;
  const at = Math.max(4, Math.min(width - wide - 4, (left + right - wide) / 2));
  if (at < free) return free;
  pen.fillStyle = colour("panel");
  pen.fillRect(at - 4, height / 2 - 8, wide + 8, 16);
  pen.fillStyle = colour("muted");
  pen.fillText(text, at, height / 2);
  return at + wide + 8;
}
