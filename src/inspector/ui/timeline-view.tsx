import { signal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { AmountAxis, type Axis } from "../run-model/axis.ts";
import type { Span } from "../run-model/timeline.ts";
import { useSize } from "./canvas.ts";
import { compact, costText, dollars, milliseconds, shortId, sinceStart } from "./format.ts";
import { Check, Icon } from "./parts.tsx";
import { selectAgent, selectedAgent } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { shownOrder, shownPath } from "./shown-agents.ts";
import { shownTheme } from "./settings.ts";
import { drawTimeline, rowAt, type TimelineFrame, type Window } from "./timeline-canvas.ts";
import { TimelineMap } from "./timeline-map.tsx";
import { costOfSpan, type OpenSpan, SpanAside } from "./span-aside.tsx";
import { SpanTable, spanWords } from "./span-table.tsx";
import { oneLine } from "./untrusted.tsx";

const LABEL_WIDTH = 148;
const AXIS_HEIGHT = 28;

const measures = ["time", "tokens", "cost"] as const;
const measure = signal<(typeof measures)[number]>("time");
const isTable = signal(false);

/** When each agent did what: a row an agent, lanes for what ran at the same time. A click on a bar shows all about it. */
export function TimelineView({ run }: { readonly run: RunSession }) {
  const [opened, setOpened] = useState<OpenSpan | null>(null);
  const [view, setView] = useState<Window>({ from: 0, to: 1 });
  // The axis takes the newest spans in.
  const { kinds } = run.axis.value.length > 0 ? run.timeline : { kinds: new Set<Span["kind"]>() };
  const shownKinds = (["model", "tool", "child", "queue", "retry", "person", "budget", "pause"] as const).filter(
    (kind) => kinds.has(kind),
  );
  return (
    <div class={opened ? "timeline-columns with-detail" : "timeline-columns"}>
      <div class="timeline">
        <div class="view-bar">
          <ul class="legend">
            {shownKinds.map((kind) => (
              <li key={kind}>
                <span class={`swatch ${kind}`} />
                {spanWords[kind]}
              </li>
            ))}
          </ul>
          <span class="spacer" />
          <span class="segments" role="group" aria-label="Width of calls">
            {measures.map((one) => (
              <button
                key={one}
                type="button"
                aria-pressed={one === measure.value}
                onClick={() => {
                  measure.value = one;
                  setView({ from: 0, to: 1 });
                }}
              >
                {one}
              </button>
            ))}
          </span>
          <Check label="as a table" of={isTable} />
        </div>
        {isTable.value ? (
          <SpanTable run={run} opened={opened?.span} onOpen={setOpened} />
        ) : (
          <TimelineCanvas run={run} view={view} setView={setView} opened={opened?.span} onOpen={setOpened} />
        )}
      </div>
      {opened && <SpanAside run={run} {...opened} onClose={() => setOpened(null)} />}
    </div>
  );
}

/** Time, or what each agent has spent. */
function useAxis(run: RunSession): Axis {
  const time = run.axis.value;
  const by = measure.value;
  return useMemo(() => {
    if (by === "time") return time;
    const rows = run.log.agents.map(({ index }) => run.timeline.spansOf(index));
    return new AmountAxis(rows, ({ tokens, costMicros }) => (by === "tokens" ? tokens : costMicros));
  }, [run, time, by]);
}

function labelOf(run: RunSession, place: number, axis: Axis): string {
  if (measure.value === "tokens") return compact(Math.round(place));
  if (measure.value === "cost") return dollars(place);
  return milliseconds((axis.timeAt(place) ?? 0) - run.log.startedAt);
}

function zoomed({ from, to }: Window, factor: number, around: number): Window {
  const width = Math.min(1, Math.max(0.0005, (to - from) * factor));
  const middle = from + (to - from) * around;
  const start = Math.max(0, Math.min(1 - width, middle - width * around));
  return { from: start, to: start + width };
}

interface CanvasProps {
  readonly run: RunSession;
  readonly view: Window;
  readonly setView: (view: Window) => void;
  readonly opened: Span | undefined;
  readonly onOpen: (span: OpenSpan | null) => void;
}

interface Hovered {
  readonly span: Span;
  readonly agent: number;
  readonly x: number;
  readonly y: number;
}

function TimelineCanvas({ run, view, setView, opened, onOpen }: CanvasProps) {
  const { element, size } = useSize();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [top, setTop] = useState(0);
  const [hovered, setHovered] = useState<Hovered | null>(null);
  const drag = useRef<{ x: number; view: Window; moved: boolean } | null>(null);
  const moment = run.moment.value;
  const axis = useAxis(run);
  const theme = shownTheme.value;
  const order = shownOrder.value;
  const tops = useMemo(() => rowTops(run, order), [run, order, axis]);
  const critical = shownPath.value;
  const frame: TimelineFrame = {
    run,
    order,
    tops,
    top,
    width: Math.max(0, size.width - LABEL_WIDTH),
    height: Math.max(0, size.height - AXIS_HEIGHT),
    view,
    axis,
    label: (place) => labelOf(run, place, axis),
    critical,
    hovered: hovered?.span,
    opened,
  };
  useLayoutEffect(() => {
    if (canvas.current && frame.width > 0) drawTimeline(canvas.current, frame, AXIS_HEIGHT);
  }, [moment, axis, size, top, view, theme, hovered?.span, opened, critical, order, selectedAgent.value]);
  const shareAt = (clientX: number): number => {
    const left = canvas.current?.getBoundingClientRect().left ?? 0;
    return frame.width === 0 ? 0 : (clientX - left) / frame.width;
  };
  const placeAt = (clientX: number): number => (view.from + shareAt(clientX) * (view.to - view.from)) * axis.length;
  const find = (event: MouseEvent): Hovered | null => {
    const box = canvas.current?.getBoundingClientRect();
    if (!box) return null;
    const y = event.clientY - box.top - AXIS_HEIGHT + top;
    const row = rowAt(tops, y);
    const agent = order[row];
    if (agent === undefined || event.clientY - box.top < AXIS_HEIGHT) return null;
    const from = tops[row] ?? 0;
    const lane = (y - from) / Math.max(1, (tops[row + 1] ?? 0) - from);
    const slack = (2 / Math.max(1, frame.width)) * (view.to - view.from) * axis.length;
    const span = spanAt(run, agent, { axis, place: placeAt(event.clientX), lane, slack });
    return span ? { span, agent, x: event.clientX - box.left + LABEL_WIDTH, y: event.clientY - box.top } : null;
  };
  /** Takes all views to the time at that place; on an axis of amounts there is none. */
  const travel = (clientX: number): void => {
    const time = axis.timeAt(placeAt(clientX));
    if (time === undefined) return;
    run.player.pause();
    run.pin(run.log.countUntil(time));
  };
  const first = rowAt(tops, top);
  const last = Math.min(order.length, rowAt(tops, top + frame.height) + 1);
  return (
    <>
      <TimelineMap
        run={run}
        axis={axis}
        order={order}
        tops={tops}
        view={view}
        rows={{ top, height: frame.height }}
        onMove={(next, nextTop) => {
          setView(next);
          if (element.current) element.current.scrollTop = nextTop;
        }}
      >
        <span class="button-group">
          <button
            type="button"
            aria-label="Zoom out"
            title="Zoom out (-)"
            onClick={() => setView(zoomed(view, 2, 0.5))}
          >
            <Icon name="minus" />
          </button>
          <button
            type="button"
            aria-label="Zoom in"
            title="Zoom in (+)"
            onClick={() => setView(zoomed(view, 0.5, 0.5))}
          >
            <Icon name="plus" />
          </button>
          <button
            type="button"
            aria-label="Whole run"
            title="Whole run (0)"
            onClick={() => setView({ from: 0, to: 1 })}
          >
            <Icon name="fit" />
          </button>
        </span>
      </TimelineMap>
      <div
        ref={element}
        class="timeline-scroll"
        role="region"
        aria-label="Timeline of the run; tick “as a table” for the same as a table"
        tabIndex={0}
        onScroll={({ currentTarget }) => setTop(currentTarget.scrollTop)}
        onKeyDown={(event) => {
          if (event.key === "+") setView(zoomed(view, 0.5, 0.5));
          else if (event.key === "-") setView(zoomed(view, 2, 0.5));
          else if (event.key === "0") setView({ from: 0, to: 1 });
          else if (event.key === "ArrowLeft") setView(panned(view, -0.1));
          else if (event.key === "ArrowRight") setView(panned(view, 0.1));
          else return;
          event.preventDefault();
        }}
        onWheel={(event) => {
          if (!event.ctrlKey && !event.metaKey) return;
          event.preventDefault();
          setView(zoomed(view, event.deltaY > 0 ? 1.25 : 0.8, Math.max(0, Math.min(1, shareAt(event.clientX)))));
        }}
      >
        <div class="timeline-space" style={{ height: `${(tops.at(-1) ?? 0) + AXIS_HEIGHT}px` }}>
          <div class="timeline-pane" style={{ height: `${size.height}px` }}>
            <div class="timeline-labels" style={{ width: `${LABEL_WIDTH}px`, paddingTop: `${AXIS_HEIGHT}px` }}>
              <div style={{ transform: `translateY(${(tops[first] ?? 0) - top}px)` }}>
                {order.slice(first, last).map((index, place) => {
                  const agent = run.log.agents[index];
                  if (!agent) return null;
                  return (
                    <button
                      key={index}
                      type="button"
                      tabIndex={-1}
                      class={index === selectedAgent.value ? "timeline-label selected" : "timeline-label"}
                      style={{
                        height: `${(tops[first + place + 1] ?? 0) - (tops[first + place] ?? 0)}px`,
                        paddingLeft: `${8 + Math.min(agent.depth, 4) * 10}px`,
                      }}
                      onClick={() => selectAgent(agent.agentId)}
                    >
                      <b>{oneLine(agent.name, 40)}</b> <code class="id">{shortId(agent.agentId)}</code>
                    </button>
                  );
                })}
              </div>
            </div>
            <canvas
              ref={canvas}
              onPointerDown={(event) => {
                event.currentTarget.setPointerCapture(event.pointerId);
                drag.current = { x: event.clientX, view, moved: false };
              }}
              onPointerMove={(event) => {
                const { current } = drag;
                if (!current) return setHovered(find(event));
                const moved = event.clientX - current.x;
                if (Math.abs(moved) > 3) current.moved = true;
                if (current.moved) setView(panned(current.view, -moved / Math.max(1, frame.width)));
                return undefined;
              }}
              onPointerLeave={() => setHovered(null)}
              onPointerUp={(event) => {
                const wasDrag = drag.current?.moved === true;
                drag.current = null;
                if (wasDrag) return;
                if (event.offsetY < AXIS_HEIGHT) return travel(event.clientX);
                const found = find(event);
                setHovered(null);
                onOpen(found && { agent: found.agent, span: found.span });
                if (found) selectAgent(run.log.agents[found.agent]?.agentId ?? run.runId);
              }}
              onDblClick={(event) => {
                const found = find(event);
                if (!found) return travel(event.clientX);
                run.player.pause();
                run.pin(found.span.first + 1);
              }}
            />
            {hovered && <SpanTip run={run} hovered={hovered} width={size.width} />}
          </div>
        </div>
      </div>
    </>
  );
}

function panned({ from, to }: Window, share: number): Window {
  const width = to - from;
  const start = Math.max(0, Math.min(1 - width, from + share * width));
  return { from: start, to: start + width };
}

/** In a small run a row is as high as its lanes; in a large one all are low. */
function rowTops(run: RunSession, order: readonly number[]): number[] {
  const tops = [0];
  for (const agent of order) {
    const height = order.length > 40 ? 20 : 9 + Math.max(1, run.timeline.lanesOf(agent)) * 16;
    tops.push((tops.at(-1) ?? 0) + height);
  }
  return tops;
}

interface SpanPlace {
  readonly axis: Axis;
  readonly place: number;
  /** From 0 to 1 within the row. */
  readonly lane: number;
  /** How far beside a bar still hits it. */
  readonly slack: number;
}

function spanAt(run: RunSession, agent: number, { axis, place, lane, slack }: SpanPlace): Span | undefined {
  const wanted = Math.floor(lane * Math.max(1, run.timeline.lanesOf(agent)));
  const now = run.endOf(agent);
  const spans = run.timeline.spansOf(agent).filter((span) => {
    const range = axis.rangeOf(span, now);
    return range !== undefined && range.from <= place + slack && range.to >= place - slack;
  });
  return spans.find((span) => span.lane === wanted) ?? spans.at(-1);
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
