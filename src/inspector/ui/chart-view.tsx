import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Transition, TransitionPage } from "../feed/wire.ts";
import { useSize } from "./canvas.ts";
import { fitted, LEAST_WHOLE_SCALE, type Size, wholeLayout } from "./chart-camera.ts";
import { ChartDrawing } from "./chart-drawing.tsx";
import type { Chart, Charts } from "./chart.ts";
import chartsJson from "./charts.json";
import { errorText } from "./feed-client.ts";
import { milliseconds, plural, sinceStart } from "./format.ts";
import { type MachineMoment, type MachineName, machinesAt, pathOfValue } from "./machine-history.ts";
import { selectedAgent } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { oneLine, plainText } from "./untrusted.tsx";

const charts = chartsJson as unknown as Charts;
const names = ["agent", "turn", "toolCall"] as const;
/** The machine whose chart is shown; `null` for all three if they fit, else the turn. */
const shownMachine = signal<MachineName | null>(null);
const shownCall = signal<string | null>(null);
/** Most transitions of one agent that a page keeps, the newest. */
const MOST_TRANSITIONS = 20_000;
const REFRESH_MS = 500;

const machineNames: Readonly<Record<MachineName, string>> = { agent: "Agent", turn: "Turn", toolCall: "Tool call" };

const HEAD_HEIGHT = 56;
const [LEAST_SIDE_HEIGHT, MOST_SIDE_HEIGHT] = [96, 160];
const WANTED_CHART_HEIGHT = 400;
/** Charts stay side by side as long as they do not become smaller. */
const KEPT_SCALE = 0.9 * LEAST_WHOLE_SCALE;

/** The drawing takes precedence over the content below it. */
function sideHeight(height: number): number {
  return Math.max(LEAST_SIDE_HEIGHT, Math.min(MOST_SIDE_HEIGHT, height - HEAD_HEIGHT - WANTED_CHART_HEIGHT));
}

/** The statecharts of the selected agent, its turn and one of its calls, at the moment. */
export function ChartView({ run }: { readonly run: RunSession }) {
  const index = selectedAgent.value;
  const agent = run.log.agents[index];
  const { transitions, missing, failure, isReading } = useTransitions(run, agent?.agentId ?? "", index);
  const { element, size } = useSize();
  const moment = run.moment.value;
  const until = useMemo(() => lastSeq(run, index, moment.count), [run, index, moment.count]);
  const time = run.timeFor(index);
  const machines = useMemo(() => machinesAt(transitions, until, time), [transitions, until, time]);
  const call = machines.calls.find(({ id }) => id === shownCall.value) ?? machines.calls.at(-1);
  const wasRoomy = useRef(false);
  // A banner above the view, such as the one for earlier moments, must not switch from three charts to one.
  const isRoomy = size.width > 0 && haveRoom(size, wasRoomy.current ? KEPT_SCALE : LEAST_WHOLE_SCALE);
  wasRoomy.current = isRoomy;
  const chosen = shownMachine.value ?? (isRoomy ? null : "turn");
  if (failure !== null) return <p class="empty">{failure}</p>;
  const noWords = isReading ? "Reading its transitions …" : missing > 0 ? notHeld(missing) : undefined;
  return (
    <div class="chart-view">
      <div class="view-bar">
        <span class="segments" role="group" aria-label="Machine">
          {[...(isRoomy ? [null] : []), ...names].map((one) => (
            <button
              key={one}
              type="button"
              aria-pressed={one === chosen}
              onClick={() => {
                shownMachine.value = one;
              }}
            >
              {one === null ? "Side by side" : machineNames[one]}
            </button>
          ))}
        </span>
        {(chosen ?? "toolCall") === "toolCall" && machines.calls.length > 1 && (
          <CallChoice run={run} calls={machines.calls} call={call} />
        )}
      </div>
      <div
        ref={element}
        class="chart-body"
        style={{ "--head-height": `${HEAD_HEIGHT}px`, "--side-height": `${sideHeight(size.height)}px` }}
      >
        {names.map((name) =>
          chosen !== null && chosen !== name ? null : (
            <MachineTile
              key={name}
              run={run}
              name={name}
              machine={name === "toolCall" ? call : machines[name]}
              time={time}
              missing={missing}
              noWords={noWords ?? noMachine(name)}
            />
          ),
        )}
      </div>
    </div>
  );
}

/** Whether the charts of all machines are readable side by side. */
function haveRoom({ width, height }: Size, leastScale: number): boolean {
  const all = names.reduce((sum, name) => sum + shareOf(charts[name]), 0);
  return names.every((name) => {
    const chart = charts[name];
    const size = {
      width: Math.floor((width * shareOf(chart)) / all) - 1,
      height: height - HEAD_HEIGHT - sideHeight(height),
    };
    return fitted(wholeLayout(chart, size), size).scale >= leastScale;
  });
}

/** Each chart gets a share of the width in proportion to its minimum width. */
function shareOf({ layouts }: Chart): number {
  return Math.min(...layouts.map(({ width }) => width));
}

interface TileProps {
  readonly run: RunSession;
  readonly name: MachineName;
  readonly machine: MachineMoment | undefined;
  readonly time: number;
  readonly missing: number;
  /** Shown if the machine does not exist at the moment. */
  readonly noWords: string;
}

/** One machine: its state in words, its chart and its transitions. */
function MachineTile({ run, name, machine, time, missing, noWords }: TileProps) {
  const chart = charts[name];
  const state = chart.states.find(({ path }) => path === machine?.path);
  return (
    <section class="chart-tile" aria-label={machineNames[name]} style={{ flexGrow: shareOf(chart) }}>
      <header class="chart-head">
        <p class="chart-now">
          <span class="quiet">{machineNames[name]}</span>{" "}
          {name === "toolCall" && machine && <b>{oneLine(callName(run, machine.id), 24)}</b>}{" "}
          {machine?.last && (
            <>
              <code class="to">{machine.path}</code>{" "}
              {state?.isLast !== true && (
                <span class="quiet figures">{milliseconds(Math.max(0, time - machine.last.at))}</span>
              )}
            </>
          )}
        </p>
        <p class="last-transition">
          {machine?.last ? <LastTransition run={run} last={machine.last} /> : <span class="quiet">{noWords}</span>}
        </p>
      </header>
      <ChartDrawing chart={chart} machine={machine} name={name} what={machineNames[name].toLowerCase()} />
      <ChartSide run={run} machine={machine} missing={missing} name={name} />
    </section>
  );
}

interface CallChoiceProps {
  readonly run: RunSession;
  readonly calls: readonly MachineMoment[];
  readonly call: MachineMoment | undefined;
}

function CallChoice({ run, calls, call }: CallChoiceProps) {
  return (
    <select
      aria-label="Call"
      value={call?.id ?? ""}
      onChange={({ currentTarget }) => {
        shownCall.value = currentTarget.value;
      }}
    >
      {calls.map(({ id, path }) => (
        <option key={id} value={id}>
          {oneLine(callName(run, id), 40)} {id.slice(id.indexOf("#"))} – {path}
        </option>
      ))}
    </select>
  );
}

function notHeld(missing: number): string {
  return `The page holds the newest ${figure(MOST_TRANSITIONS)} transitions of this agent; this moment is before them, among ${figure(missing)} others.`;
}

function figure(count: number): string {
  return count.toLocaleString("en");
}

function noMachine(name: MachineName): string {
  if (name === "turn") return "No turn has begun at this moment.";
  if (name === "toolCall") return "No tool call of this turn at this moment.";
  return "The agent has not begun at this moment.";
}

function LastTransition({ run, last }: { readonly run: RunSession; readonly last: Transition }) {
  return (
    <>
      <span class="quiet">from</span> <code>{pathOfValue(last.from)}</code>{" "}
      <span class="quiet">
        on <code>{last.entry}</code>
        {last.guard !== null && (
          <>
            {" "}
            because <code>{last.guard}</code>
          </>
        )}{" "}
        at {sinceStart(last.at, run.log.startedAt)}
      </span>
    </>
  );
}

interface Transitions {
  readonly agentId: string;
  readonly transitions: readonly Transition[];
  /** Number of earlier transitions. */
  readonly missing: number;
  readonly failure: string | null;
}
const nothing: Transitions = { agentId: "", transitions: [], missing: 0, failure: null };

/** The transitions of one agent. Reads on when the agent has new entries. */
function useTransitions(run: RunSession, agentId: string, index: number) {
  const [state, setState] = useState(nothing);
  const count = useMemo(() => lastSeq(run, index, run.log.length), [run, index, run.length.value]);
  const newest = useRef(count);
  newest.current = count;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isGone = false;
    let all: readonly Transition[] = [];
    let missing = 0;
    let known = -1;
    const read = async (): Promise<void> => {
      const items = [...all];
      let first = missing;
      for (let after: string | null = String(first + items.length); after !== null && !isGone; ) {
        const page: TransitionPage = await run.client.transitions(run.runId, agentId, { after });
        const begin = Math.max(0, page.total - MOST_TRANSITIONS);
        if (begin > Number(after) + page.items.length) {
          items.length = 0;
          first = begin;
          after = String(begin);
          continue;
        }
        items.push(...page.items.map((one) => withEnd(run, index, one)));
        after = page.next;
      }
      const tooMany = Math.max(0, items.length - MOST_TRANSITIONS);
      all = items.slice(tooMany);
      missing = first + tooMany;
      if (!isGone) setState({ agentId, transitions: all, missing, failure: null });
    };
    // Entries may be added while reading; those are read next.
    const follow = async (): Promise<void> => {
      const wanted = newest.current;
      if (wanted !== known) {
        try {
          await read();
        } catch (error) {
          if (!isGone) setState({ agentId, transitions: [], missing: 0, failure: errorText(error) });
        }
        known = wanted;
      }
      if (!isGone) timer = setTimeout(() => void follow(), REFRESH_MS);
    };
    void follow();
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [run, agentId, index]);
  const isReading = state.agentId !== agentId;
  return { ...(isReading ? nothing : state), isReading };
}

/** An ended turn has no state; the chart shows its last state. */
function withEnd(run: RunSession, agent: number, transition: Transition): Transition {
  if (transition.entry !== "turn.ended" || transition.machine !== "turn" || transition.to !== null) return transition;
  for (let place = run.log.countUpTo(transition.cursor) - 1; place >= 0; place -= 1) {
    const entry = run.log.entry(place);
    if (entry?.type !== "turn.ended" || run.log.agentOf(place) !== agent || entry.seq !== transition.seq) continue;
    return { ...transition, to: entry.outcome === "completed" ? "done" : entry.outcome };
  }
  return transition;
}

/** Number of the agent's last entry among the first `count` entries of the log. */
function lastSeq(run: RunSession, agent: number, count: number): number {
  for (let place = count - 1; place >= 0; place -= 1) {
    if (run.log.agentOf(place) === agent) return run.log.entry(place)?.seq ?? 0;
  }
  return 0;
}

function callName(run: RunSession, callId: string): string {
  const isIt = (call: { readonly callId: string }): boolean => call.callId === callId;
  const answer = run.log.entries.findLast((one) => one.type === "model.responded" && one.calls.some(isIt));
  return (answer?.type === "model.responded" && answer.calls.find(isIt)?.name) || "call";
}

interface SideProps {
  readonly run: RunSession;
  readonly machine: MachineMoment | undefined;
  /** Number of the agent's transitions that the page does not have. */
  readonly missing: number;
  readonly name: MachineName;
}

function ChartSide({ run, machine, missing, name }: SideProps) {
  if (!machine) return <div class="chart-side" />;
  const state = charts[name].states.find(({ path }) => path === machine.path);
  const visit = machine.visits.get(machine.path);
  const shown = machine.past.slice(-100).toReversed();
  return (
    <div class="chart-side">
      <div class="chart-state">
        {state && <p>{state.about}</p>}
        <p class="quiet figures">
          {visit && `${plural(visit.count, "visit")}, ${milliseconds(visit.ms)} in all`}
          {state?.effect !== undefined && (
            <>
              {" · runs "}
              <code>{state.effect}</code>
            </>
          )}
        </p>
      </div>
      <div
        class="chart-past"
        tabIndex={0}
        role="region"
        aria-label={`Transitions of the ${machineNames[name].toLowerCase()}`}
      >
        <table class="transitions">
          <caption>
            {plural(machine.past.length, "transition")}
            {machine.past.length > shown.length && `, the last ${shown.length}`}
            {missing > 0 && ` of those among the agent's newest ${figure(MOST_TRANSITIONS)}`}
          </caption>
          <tbody>
            {shown.map((one) => (
              <tr key={`${one.seq} ${pathOfValue(one.to)}`}>
                <td class="figures">
                  <button
                    type="button"
                    class="link"
                    title="Go to this moment"
                    onClick={() => {
                      run.player.pause();
                      run.pin(run.log.countUpTo(one.cursor));
                    }}
                  >
                    {sinceStart(one.at, run.log.startedAt)}
                  </button>
                </td>
                <td>
                  <code class="quiet">{pathOfValue(one.from)}</code>
                </td>
                <td>
                  <code>{pathOfValue(one.to)}</code>
                </td>
                <td class="quiet">
                  on <code>{one.entry}</code> {one.guard !== null && <code>[{plainText(one.guard)}]</code>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}
