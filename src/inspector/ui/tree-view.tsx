import type { ComponentChildren } from "preact";
import { signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { durationOf, ownLimitUses, spentBelow } from "../run-model/agent-order.ts";
import type { AgentMoment } from "../run-model/agent-moment.ts";
import { type LimitUse, shareOf } from "../run-model/limit-use.ts";
import type { RunAgent } from "../run-model/run-log.ts";
import type { TreeRow } from "../run-model/tree-rows.ts";
import { compact, costSum, costText, limitWord, milliseconds, plural, shortId } from "./format.ts";
import { useSize } from "./canvas.ts";
import { Icon, LimitBar, PhaseIcon, phaseWords } from "./parts.tsx";
import { lostWords } from "../run-model/lost-agents.ts";
import { route, selectAgent, selectedAgent } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { showAllAgents, shownRows, toggleBelow } from "./shown-agents.ts";
import { TimelineBars } from "./timeline-bars.tsx";
import { rowAt } from "./timeline-canvas.ts";
import { hasBars, isLow, rowScroll, rowTops, scrollRowsTo, setScroller } from "./timeline-state.ts";
import { TreeHead } from "./tree-head.tsx";
import { oneLine, plainText } from "./untrusted.tsx";

/** Id of the agent whose row has the keyboard focus; `null` for the selected agent. */
const focused = signal<string | null>(null);

/** The agents of the run as a tree. All views show the same rows in the same order. */
export function TreeView({ run, children }: { readonly run: RunSession; readonly children: ComponentChildren }) {
  return (
    <section class="tree" aria-label="Agents">
      <TreeHead run={run} />
      {shownRows.value.length === 0 ? (
        <p class="empty">
          No agent fits.{" "}
          <button type="button" onClick={showAllAgents}>
            Show all agents
          </button>
        </p>
      ) : (
        <TreeRows run={run} />
      )}
      {children}
    </section>
  );
}

/**
 * The rows and, in the timeline, their bars. A script scrolls both, so that they move together: native scrolling would be
 * one frame ahead of the drawn bars.
 */
function TreeRows({ run }: { readonly run: RunSession }) {
  const { element, size } = useSize();
  const [rows, tops, { top }] = [shownRows.value, rowTops.value, rowScroll.value];
  const selected = run.log.agents[selectedAgent.value]?.agentId ?? "";
  const current = focused.value ?? selected;
  const [first, last] = [rowAt(tops, top), rowAt(tops, top + size.height) + 1];
  const look = (): void => {
    if (element.current) rowScroll.value = { top: element.current.scrollTop, height: size.height };
  };
  useLayoutEffect(() => {
    setScroller(element.current);
    return () => setScroller(null);
  }, []);
  useLayoutEffect(look, [size.height, tops.at(-1)]);
  useLayoutEffect(() => {
    focused.value = null;
  }, [selected]);
  useLayoutEffect(() => {
    const index = rows.findIndex(({ agent }) => agent.agentId === current);
    const [from, to] = [tops[index] ?? 0, tops[index + 1] ?? 0];
    if (index < 0 || size.height === 0) return;
    if (from < top) scrollRowsTo(from);
    else if (to > top + size.height) scrollRowsTo(to - size.height);
  }, [current, size.height > 0, hasBars.value]);
  return (
    <div ref={element} class={isLow.value ? "tree-scroll low" : "tree-scroll"} onScroll={look}>
      <div class="tree-space" style={{ height: `${tops.at(-1) ?? 0}px` }}>
        <div class="tree-pane" style={{ height: `${size.height}px` }}>
          <div
            class="tree-rows"
            role="treegrid"
            aria-label="Agents"
            aria-rowcount={rows.length}
            aria-colcount={1}
            tabIndex={0}
            onKeyDown={(event) => moveFocus(event, rows, current)}
          >
            <div role="presentation" style={{ transform: `translateY(${(tops[first] ?? 0) - top}px)` }}>
              {rows.slice(first, last).map((row, slot) => (
                <Row
                  key={slot}
                  row={row}
                  run={run}
                  index={first + slot}
                  height={(tops[first + slot + 1] ?? 0) - (tops[first + slot] ?? 0)}
                  isCurrent={row.agent.agentId === current}
                />
              ))}
            </div>
          </div>
          {hasBars.value && <TimelineBars run={run} />}
        </div>
      </div>
    </div>
  );
}

interface RowProps {
  readonly run: RunSession;
  readonly row: TreeRow;
  readonly index: number;
  readonly height: number;
  readonly isCurrent: boolean;
}

function Row({ row, run, index, height, isCurrent }: RowProps) {
  const { agent, isOpen, level, setSize, place, isMatch } = row;
  const isSelected = agent.index === selectedAgent.value;
  const marks = [isSelected && "selected", isCurrent && "current", !isMatch && "above"];
  return (
    <div
      role="row"
      class={["tree-row", ...marks.filter(Boolean)].join(" ")}
      style={{ height: `${height}px`, "--level": level - 1 }}
      aria-rowindex={index + 1}
      aria-level={level}
      aria-setsize={setSize}
      aria-posinset={place}
      aria-expanded={isOpen}
      aria-selected={isSelected}
      onClick={() => {
        focused.value = agent.agentId;
        selectAgent(agent.agentId);
      }}
    >
      <div role="gridcell" class="tree-cell">
        {isOpen === undefined ? (
          <span class="chevron none" />
        ) : (
          <button
            type="button"
            class={isOpen ? "chevron open" : "chevron"}
            tabIndex={-1}
            aria-label={isOpen ? "Close" : "Open"}
            onClick={(event) => {
              event.stopPropagation();
              toggleBelow(row);
            }}
          >
            <Icon name="chevron" />
          </button>
        )}
        <AgentCell row={row} run={run} />
      </div>
    </div>
  );
}

function AgentCell({ row: { agent, moment }, run }: { readonly row: TreeRow; readonly run: RunSession }) {
  const uses = moment && limitsOf(run, agent.agentId, moment.accountId);
  return (
    <>
      <PhaseIcon phase={moment?.phase ?? "created"} />
      <span class="tree-text">
        <span class="tree-name">
          <b>{oneLine(agent.name, 60)}</b>
          <code class="id" title={plainText(agent.agentId)}>
            {oneLine(shortId(agent.agentId), 24)}
          </code>
          {agent.isBackground && <span class="tag">background</span>}
        </span>
        <span class="tree-doing">
          {moment ? <Doing run={run} agentId={agent.agentId} moment={moment} /> : "not there yet"}
        </span>
      </span>
      <span class="tree-figures">
        <span class="figures quiet">{moment && figureOf(run, agent, moment, uses?.[0])}</span>
        {uses?.[0] ? <LimitBar use={uses[0]} /> : <span class="limit-bar none" />}
      </span>
    </>
  );
}

/** The figure by which the rows are sorted. */
function figureOf(run: RunSession, agent: RunAgent, moment: AgentMoment, use: LimitUse | undefined): string {
  const { order } = route.value;
  const now = run.moment.value;
  switch (order) {
    case "tokens":
      return compact(spentBelow(run.log, now, agent).tokens);
    case "cost":
      return costText(costSum(spentBelow(run.log, now, agent).costs));
    case "duration":
      return milliseconds(durationOf(agent, moment, run.timeFor(agent.index)));
    case "limit":
      return use ? `${Math.round(shareOf(use) * 100)} % ${limitWord(use.limit)}` : "";
    case "start":
      return moment.step > 0 ? `step ${moment.step}` : "";
    default:
      return order satisfies never;
  }
}

/** The agent's activity in a few words: the text it writes, its tools, what it waits for, or why it stopped. */
function Doing({ run, agentId, moment }: { run: RunSession; agentId: string; moment: AgentMoment }) {
  const text = run.written.value >= 0 ? run.textOf(agentId) : "";
  const lost = run.lost.value.get(run.log.indexOfAgent(agentId));
  if (lost) return <>{lostWords(lost)}</>;
  const call = run.written.value >= 0 ? run.callsOf(agentId).at(-1) : undefined;
  if (call) return <span class="writing">{oneLine(`${call.name} ${call.text.slice(-120)}`, 120)}</span>;
  if (text !== "") return <span class="writing">{oneLine(text.slice(-120), 120)}</span>;
  return <>{doing(moment)}</>;
}

export function doing({ phase, running, awaits, requests, stopReason, message }: AgentMoment): string {
  if (phase === "tools" && running.length > 0) return namesWithCounts(running.map(({ name }) => name));
  if (phase === "waiting") return `waits for ${plural(awaits, "subagent")}`;
  if (phase === "asking") return `${requests[0]?.kind ?? "request"}: ${oneLine(requests[0]?.name ?? "", 60)}`;
  if (phase === "failed" || phase === "stopped") return oneLine(message ?? stopReason ?? phaseWords[phase]);
  return phaseWords[phase];
}

function namesWithCounts(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => `${oneLine(name, 40)}${count > 1 ? ` × ${count}` : ""}`).join(", ");
}

/** The limits of the agent's turn account and lifetime account, the fullest first. */
export function limitsOf(run: RunSession, agentId: string, turnAccount: string | null): LimitUse[] {
  return ownLimitUses(run.moment.value, agentId, turnAccount, run.time);
}

function moveFocus(event: KeyboardEvent, shown: readonly TreeRow[], current: string): void {
  const index = shown.findIndex(({ agent }) => agent.agentId === current);
  const row = shown[index];
  const to = (place: number): void => {
    event.preventDefault();
    const next = shown[Math.max(0, Math.min(shown.length - 1, place))];
    if (next) focused.value = next.agent.agentId;
  };
  switch (event.key) {
    case "ArrowDown":
      return to(index + 1);
    case "ArrowUp":
      return to(index - 1);
    case "Home":
      return to(0);
    case "End":
      return to(shown.length - 1);
    case "ArrowRight":
      if (row?.isOpen === false) toggleBelow(row);
      else to(index + 1);
      event.preventDefault();
      return;
    case "ArrowLeft":
      if (row?.isOpen === true) toggleBelow(row);
      else to(shown.findLastIndex((one, place) => place < index && one.level < (row?.level ?? 1)));
      event.preventDefault();
      return;
    case "Enter":
    case " ":
      event.preventDefault();
      event.stopPropagation();
      if (row) selectAgent(row.agent.agentId);
      return;
    default:
  }
}

export function focusTreeFilter(): void {
  if (route.peek().page !== "run") return;
  document.getElementById("tree-filter")?.focus();
}
