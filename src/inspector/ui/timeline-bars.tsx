import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Axis } from "../run-model/axis.ts";
import type { Span } from "../run-model/timeline.ts";
import { useSize } from "./canvas.ts";
import { compact, costText, milliseconds, sinceStart } from "./format.ts";
import { selectAgent, selectedAgent } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { shownTheme } from "./settings.ts";
import { shownOrder, shownPath } from "./shown-agents.ts";
import { costOfSpan } from "./span-aside.tsx";
import { spanWords } from "./span-table.tsx";
import { RunMarks } from "./run-marks.tsx";
import { type BarsFrame, drawBars, lanesIn, rowAt } from "./timeline-canvas.ts";
import {
  barsWidth,
  openedSpan,
  openSpan,
  pan,
  rowScroll,
  rowTops,
  shownAxis,
  shownWindow,
  type Window,
  wholeRun,
  zoom,
} from "./timeline-state.ts";
import { travelTo } from "./timeline-view.tsx";
import { oneLine } from "./untrusted.tsx";

interface Hovered {
  readonly span: Span;
  readonly agent: number;
  readonly x: number;
  readonly y: number;
}

interface Drag {
  readonly x: number;
  readonly window: Window;
  isMoved: boolean;
}

/** The bars of the visible agents, aligned with the rows of the tree. */
export function TimelineBars({ run }: { readonly run: RunSession }) {
  const { element, size } = useSize();
  const canvas = useRef<HTMLCanvasElement>(null);
  const drag = useRef<Drag | null>(null);
  const [hovered, setHovered] = useState<Hovered | null>(null);
  const [moment, theme, view, opened, tops] = [
    run.moment.value,
    shownTheme.value,
    shownWindow.value,
    openedSpan.value,
    rowTops.value,
  ];
  const [order, critical, { top }, selected] = [
    shownOrder.value,
    shownPath.value,
    rowScroll.value,
    selectedAgent.value,
  ];
  const axis = shownAxis.value ?? run.axis.value;
  useLayoutEffect(() => {
    barsWidth.value = size.width;
  }, [size.width]);
  useLayoutEffect(() => {
    if (!canvas.current || size.width === 0) return;
    const spans = { critical, hovered: hovered?.span, opened: opened?.span };
    const frame: BarsFrame = { run, order, tops, top, ...size, view, axis, ...spans };
    drawBars(canvas.current, frame);
  }, [moment, axis, size, top, tops, view, theme, hovered?.span, opened, critical, order, selected]);
  const shareAt = (clientX: number): number => {
    const left = canvas.current?.getBoundingClientRect().left ?? 0;
    return size.width === 0 ? 0 : (clientX - left) / size.width;
  };
  const find = (event: MouseEvent): Hovered | null => {
    const box = canvas.current?.getBoundingClientRect();
    if (!box) return null;
    const y = event.clientY - box.top + top;
    const row = rowAt(tops, y);
    const agent = order[row];
    if (agent === undefined) return null;
    const from = tops[row] ?? 0;
    const lanes = lanesIn((tops[row + 1] ?? 0) - from, run.timeline.lanesOf(agent));
    const lane = Math.floor((y - from - lanes.top) / lanes.height);
    const slack = (2 / Math.max(1, size.width)) * (view.to - view.from) * axis.length;
    const place = (view.from + shareAt(event.clientX) * (view.to - view.from)) * axis.length;
    const span = spanAt(run, agent, { axis, place, lane, slack });
    return span ? { span, agent, x: event.clientX - box.left, y: event.clientY - box.top } : null;
  };
  return (
    <div
      ref={element}
      class="timeline-bars"
      role="region"
      aria-label="Timeline of the run; tick “as a table” for the same as a table"
      tabIndex={0}
      onKeyDown={(event) => {
        if (event.key === "+") zoom(0.5);
        else if (event.key === "-") zoom(2);
        else if (event.key === "0") shownWindow.value = wholeRun;
        else if (event.key === "ArrowLeft") pan(view, -0.1);
        else if (event.key === "ArrowRight") pan(view, 0.1);
        else return;
        event.preventDefault();
      }}
      onWheel={(event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.max(0, Math.min(1, shareAt(event.clientX))));
      }}
    >
      <canvas
        ref={canvas}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          drag.current = { x: event.clientX, window: view, isMoved: false };
        }}
        onPointerMove={(event) => {
          const { current } = drag;
          if (!current) return setHovered(find(event));
          const moved = event.clientX - current.x;
          if (Math.abs(moved) > 3) current.isMoved = true;
          if (current.isMoved) pan(current.window, -moved / Math.max(1, size.width));
          return undefined;
        }}
        onPointerLeave={() => setHovered(null)}
        onPointerUp={(event) => {
          const wasDrag = drag.current?.isMoved === true;
          drag.current = null;
          if (wasDrag) return;
          const found = find(event);
          setHovered(null);
          openSpan(found && { agent: found.agent, span: found.span });
          if (found) selectAgent(run.log.agents[found.agent]?.agentId ?? run.runId);
        }}
        onDblClick={(event) => {
          const found = find(event);
          if (!found) return travelTo(run, axis, shareAt(event.clientX));
          run.player.pause();
          run.pin(found.span.first + 1);
        }}
      />
      <RunMarks run={run} axis={axis} view={view} width={size.width} />
      {hovered && <SpanTip run={run} hovered={hovered} width={size.width} />}
    </div>
  );
}

interface SpanPlace {
  readonly axis: Axis;
  readonly place: number;
  readonly lane: number;
  /** How far beside a bar a click still hits it. */
  readonly slack: number;
}

function spanAt(run: RunSession, agent: number, { axis, place, lane, slack }: SpanPlace): Span | undefined {
  const now = run.endOf(agent);
  const spans = run.timeline.spansOf(agent).filter((span) => {
    const range = axis.rangeOf(span, now);
    return range !== undefined && range.from <= place + slack && range.to >= place - slack;
  });
  return spans.find((span) => span.lane === lane) ?? spans.at(-1);
}

function SpanTip({ run, hovered, width }: { run: RunSession; hovered: Hovered; width: number }) {
  const { span, x, y, agent } = hovered;
  const end = Math.min(span.end, run.present.value, run.endOf(agent));
  const figures = [
    milliseconds(end - span.start),
    span.tokens > 0 ? `${compact(span.tokens)} tokens` : "",
    span.tokens > 0 ? costText(costOfSpan(span)) : "",
    span.last < 0 ? "so far" : span.isFailed ? "failed" : "",
  ].filter((part) => part !== "");
  return (
    <div class="tip" style={{ left: `${Math.min(x + 12, width - 240)}px`, top: `${y + 14}px` }}>
      <b>{oneLine(span.label, 80)}</b>
      <span class="quiet">{spanWords[span.kind]}</span>
      <span class="figures">{figures.join(" · ")}</span>
      <span class="figures quiet">from {sinceStart(span.start, run.log.startedAt)}</span>
    </div>
  );
}
