import { signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Transition, TransitionPage } from "../feed/wire.ts";
import { ChartDrawing } from "./chart-drawing.tsx";
import type { Charts } from "./chart.ts";
import chartsJson from "./charts.json";
import { wordsOf } from "./feed-client.ts";
import { milliseconds, plural, sinceStart } from "./format.ts";
import { type MachineMoment, type MachineName, machinesAt, pathOfValue } from "./machine-history.ts";
import { selectedAgent } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { oneLine, plainText } from "./untrusted.tsx";

const charts = chartsJson as unknown as Charts;
const shownMachine = signal<MachineName>("turn");
const shownCall = signal<string | null>(null);
/** A page holds at most so many of one agent, the newest. */
const MOST_TRANSITIONS = 20_000;
const REFRESH_MS = 500;

const machineNames: Readonly<Record<MachineName, string>> = { agent: "Agent", turn: "Turn", toolCall: "Tool call" };

/** The statechart of the selected agent, its turn or one of its calls, at the moment. */
export function ChartView({ run }: { readonly run: RunSession }) {
  const index = selectedAgent.value;
  const agent = run.log.agents[index];
  const { transitions, missing, failure, isReading } = useTransitions(run, agent?.agentId ?? "", index);
  const moment = run.moment.value;
  const until = useMemo(() => lastSeq(run, index, moment.count), [run, index, moment.count]);
  const time = run.timeFor(index);
  const machines = useMemo(() => machinesAt(transitions, until, time), [transitions, until, time]);
  const name = shownMachine.value;
  const call = machines.calls.find(({ id }) => id === shownCall.value) ?? machines.calls.at(-1);
  const shown: MachineMoment | undefined = name === "agent" ? machines.agent : name === "turn" ? machines.turn : call;
  if (failure !== null) return <p class="empty">{failure}</p>;
  return (
    <div class="chart-view">
      <div class="view-bar">
        <span class="segments" role="group" aria-label="Machine">
          {(["agent", "turn", "toolCall"] as const).map((one) => (
            <button
              key={one}
              type="button"
              aria-pressed={one === name}
              onClick={() => {
                shownMachine.value = one;
              }}
            >
              {machineNames[one]}
            </button>
          ))}
        </span>
        {name === "toolCall" && machines.calls.length > 0 && (
          <select
            aria-label="Call"
            value={call?.id ?? ""}
            onChange={({ currentTarget }) => {
              shownCall.value = currentTarget.value;
            }}
          >
            {machines.calls.map(({ id, path }) => (
              <option key={id} value={id}>
                {oneLine(callName(run, id), 40)} {id.slice(id.indexOf("#"))} – {path}
              </option>
            ))}
          </select>
        )}
        <span class="last-transition">
          {shown?.last ? (
            <LastTransition run={run} last={shown.last} />
          ) : (
            <span class="quiet">
              {isReading ? "Reading its transitions …" : missing > 0 ? notHeld(missing) : noMachine(name)}
            </span>
          )}
        </span>
      </div>
      <div class="chart-body">
        <ChartDrawing key={name} chart={charts[name]} machine={shown} />
        {shown && <ChartSide run={run} machine={shown} missing={missing} chart={charts[name]} />}
      </div>
    </div>
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
      <code>{pathOfValue(last.from)}</code> <span class="quiet">to</span> <code class="to">{pathOfValue(last.to)}</code>{" "}
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
  /** How many there are before them. */
  readonly missing: number;
  readonly failure: string | null;
}
const nothing: Transitions = { agentId: "", transitions: [], missing: 0, failure: null };

/** The changes of state of one agent; read on when it has got entries. */
function useTransitions(run: RunSession, agentId: string, index: number) {
  const [state, setState] = useState(nothing);
  const count = useMemo(() => lastSeq(run, index, run.log.length), [run, index, run.length.value]);
  useEffect(() => {
    let isGone = false;
    const read = async (): Promise<void> => {
      const known = state.agentId === agentId ? state : undefined;
      const all = known ? [...known.transitions] : [];
      let missing = known?.missing ?? 0;
      for (let after: string | null = String(missing + all.length); after !== null && !isGone; ) {
        const page: TransitionPage = await run.client.transitions(run.runId, agentId, { after });
        const first = Math.max(0, page.total - MOST_TRANSITIONS);
        if (first > Number(after) + page.items.length) {
          all.length = 0;
          missing = first;
          after = String(first);
          continue;
        }
        all.push(...page.items.map((one) => withEnd(run, index, one)));
        after = page.next;
      }
      const tooMany = Math.max(0, all.length - MOST_TRANSITIONS);
      const transitions = all.slice(tooMany);
      if (!isGone) setState({ agentId, transitions, missing: missing + tooMany, failure: null });
    };
    const timer = setTimeout(
      () => {
        read().catch((error: unknown) => {
          if (!isGone) setState({ agentId, transitions: [], missing: 0, failure: wordsOf(error) });
        });
      },
      state.agentId === agentId ? REFRESH_MS : 0,
    );
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [run, agentId, count]);
  const isReading = state.agentId !== agentId;
  return { ...(isReading ? nothing : state), isReading };
}

/** A turn that has ended has no state any more; the chart shows how it ended. */
function withEnd(run: RunSession, agent: number, transition: Transition): Transition {
  if (transition.entry !== "turn.ended" || transition.machine !== "turn" || transition.to !== null) return transition;
  for (let place = run.log.countUpTo(transition.cursor) - 1; place >= 0; place -= 1) {
    const entry = run.log.entry(place);
    if (entry?.type !== "turn.ended" || run.log.agentOf(place) !== agent || entry.seq !== transition.seq) continue;
    return { ...transition, to: entry.outcome === "completed" ? "done" : entry.outcome };
  }
  return transition;
}

/** Number of the agent's last entry among the first `count` of the log. */
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
  readonly machine: MachineMoment;
  /** Transitions of the agent that the page does not hold. */
  readonly missing: number;
  readonly chart: Charts[MachineName];
}

function ChartSide({ run, machine, missing, chart }: SideProps) {
  const state = chart.states.find(({ path }) => path === machine.path);
  const visit = machine.visits.get(machine.path);
  const shown = machine.past.slice(-100).toReversed();
  return (
    <aside class="chart-side" aria-label="State">
      <div class="chart-state">
        <h2>
          <code>{machine.path}</code>
        </h2>
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
      <div class="chart-past" tabIndex={0} role="region" aria-label="Transitions">
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
    </aside>
  );
}
