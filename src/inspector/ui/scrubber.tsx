import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { cleared, useSize } from "./canvas.ts";
import { sinceStart } from "./format.ts";
import { Icon } from "./parts.tsx";
import { goLive } from "./page-state.ts";
import { speeds } from "./player.ts";
import type { RunSession } from "./run-session.ts";
import { colour, shownTheme } from "./settings.ts";
import { RunMarks } from "./run-marks.tsx";
import { wholeRun } from "./timeline-state.ts";
import type { SpanKind } from "../run-model/timeline.ts";

/** The slider for the moment, above a histogram of the activity. */
export function Scrubber({ run }: { readonly run: RunSession }) {
  const moment = run.moment.value;
  const { log } = run;
  const isPlaying = run.player.isPlaying.value;
  const length = run.length.value;
  return (
    <section class="scrubber" aria-label="Moment">
      <div class="scrub-controls">
        <button
          type="button"
          title="Previous event ([)"
          aria-label="Previous event"
          onClick={() => run.player.stepEvent(-1)}
        >
          <Icon name="back" />
        </button>
        <button
          type="button"
          class="play"
          title={isPlaying ? "Pause (space)" : "Play (space)"}
          aria-label={isPlaying ? "Pause" : "Play"}
          onClick={() => (isPlaying ? run.player.pause() : run.player.play())}
        >
          <Icon name={isPlaying ? "pause" : "play"} />
        </button>
        <button type="button" title="Next event (])" aria-label="Next event" onClick={() => run.player.stepEvent(1)}>
          <Icon name="forward" />
        </button>
        <select
          aria-label="Speed"
          value={run.player.speed.value}
          onChange={({ currentTarget }) => {
            run.player.speed.value = speeds.find((speed) => String(speed) === currentTarget.value) ?? 1;
          }}
        >
          {speeds.map((speed) => (
            <option key={speed} value={speed}>
              {speed}×
            </option>
          ))}
        </select>
      </div>
      <Track run={run} />
      <div class="scrub-place">
        <span class="figures scrub-time">{sinceStart(run.time, log.startedAt)}</span>
        <span class="figures quiet scrub-count">
          {moment.count.toLocaleString("en")} / {length.toLocaleString("en")}
        </span>
        <button
          type="button"
          class={run.isLive.value && !run.isStale.value ? "live on" : "live"}
          aria-pressed={run.isLive.value}
          title="Follow the newest (L)"
          onClick={() => goLive(run)}
        >
          Live
        </button>
      </div>
    </section>
  );
}

/** The kinds that are drawn, from the bottom up. */
const stacked: readonly SpanKind[] = ["model", "tool", "retry", "person"];
const BAR_WIDTH = 3;

function Track({ run }: { readonly run: RunSession }) {
  const { element, size } = useSize();
  const canvas = useRef<HTMLCanvasElement>(null);
  const axis = run.axis.value;
  const theme = shownTheme.value;
  const bars = Math.max(1, Math.floor(size.width / BAR_WIDTH));
  const density = useMemo(() => densityOf(run, bars), [run, axis, bars]);
  const failures = useMemo(() => failuresOf(run, bars), [run, axis, bars]);
  const moment = run.moment.value;
  const place = Math.min(1, axis.positionOf(moment.time) / axis.length);
  const shown = run.isLive.value ? 1 : place;
  useLayoutEffect(() => {
    if (canvas.current && size.width > 0) draw(canvas.current, size, { density, failures });
  }, [density, failures, size, theme]);
  const pin = (clientX: number): void => {
    const box = element.current?.getBoundingClientRect();
    if (!box || box.width === 0) return;
    const share = Math.max(0, Math.min(1, (clientX - box.left) / box.width));
    run.player.pause();
    if (share >= 1) goLive(run);
    else run.pin(run.log.countUntil(axis.timeAt(share * axis.length)));
  };
  const step = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -100, PageDown: 100 }[event.key];
    if (event.key === "Home") run.pin(0);
    else if (event.key === "End") goLive(run);
    else if (by !== undefined) run.player.stepEvent(by);
    else return;
    event.preventDefault();
  };
  return (
    <div
      ref={element}
      class="track"
      role="slider"
      tabIndex={0}
      aria-label="Moment of the run"
      aria-valuemin={0}
      aria-valuemax={run.length.value}
      aria-valuenow={moment.count}
      aria-valuetext={`${sinceStart(run.time, run.log.startedAt)}, event ${moment.count} of ${run.length.value}`}
      onKeyDown={step}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        pin(event.clientX);
      }}
      onPointerMove={(event) => {
        if (event.currentTarget.hasPointerCapture(event.pointerId)) pin(event.clientX);
      }}
    >
      <canvas ref={canvas} aria-hidden="true" />
      {axis.gaps.map((gap) => (
        <span
          key={gap.from}
          class="track-gap"
          style={{ left: `${((gap.place + gap.width / 2) / axis.length) * 100}%` }}
        />
      ))}
      <RunMarks run={run} axis={axis} view={wholeRun} width={size.width} />
      <span class="track-future" style={{ left: `${shown * 100}%` }} />
      <span class="track-head" style={{ left: `${shown * 100}%` }} />
    </div>
  );
}

/** Number of open spans of each kind in each bar. */
function densityOf(run: RunSession, bars: number): Map<SpanKind, Float32Array> {
  const axis = run.axis.peek();
  const end = run.present.peek();
  const density = new Map(stacked.map((kind) => [kind, new Float32Array(bars + 1)]));
  // Adds 1 at the first bar and subtracts 1 after the last, so that the running sum is the count at each bar.
  for (const span of run.timeline.all()) {
    const changes = density.get(span.kind);
    if (!changes) continue;
    const from = Math.min(bars - 1, Math.floor((axis.positionOf(span.start) / axis.length) * bars));
    const to = Math.min(bars - 1, Math.floor((axis.positionOf(Math.min(span.end, end)) / axis.length) * bars));
    changes[from] = (changes[from] ?? 0) + 1;
    changes[to + 1] = (changes[to + 1] ?? 0) - 1;
  }
  for (const changes of density.values()) {
    for (let bar = 1; bar <= bars; bar += 1) changes[bar] = (changes[bar] ?? 0) + (changes[bar - 1] ?? 0);
  }
  return density;
}

/** The bars with failures. */
function failuresOf(run: RunSession, bars: number): Set<number> {
  const axis = run.axis.peek();
  const failures = new Set<number>();
  for (const { isFailed, end } of run.timeline.all()) {
    if (isFailed) failures.add(Math.min(bars - 1, Math.floor((axis.positionOf(end) / axis.length) * bars)));
  }
  return failures;
}

function draw(
  canvas: HTMLCanvasElement,
  { width, height }: { readonly width: number; readonly height: number },
  { density, failures }: { readonly density: Map<SpanKind, Float32Array>; readonly failures: ReadonlySet<number> },
): void {
  const context = cleared(canvas, width, height);
  if (!context) return;
  const bars = Math.max(1, Math.floor(width / BAR_WIDTH));
  let most = 1;
  for (let bar = 0; bar < bars; bar += 1) {
    let sum = 0;
    for (const values of density.values()) sum += values[bar] ?? 0;
    most = Math.max(most, sum);
  }
  const scale = (height - 6) / most;
  const step = width / bars;
  const heights = new Float32Array(bars);
  for (const kind of stacked) {
    context.fillStyle = colour(`span-${kind}`);
    const values = density.get(kind);
    for (let bar = 0; bar < bars; bar += 1) {
      const tall = (values?.[bar] ?? 0) * scale;
      if (tall <= 0) continue;
      const below = heights[bar] ?? 0;
      context.fillRect(bar * step, height - below - tall, step - 0.75, tall);
      heights[bar] = below + tall;
    }
  }
  context.fillStyle = colour("bad");
  for (const bar of failures) context.fillRect(bar * step, 0, Math.max(2, step - 0.75), 4);
}
