import type { ComponentChildren } from "preact";
import { signal } from "@preact/signals";
import { agentAccountId } from "../../budget/index.ts";
import { type AgentOrder, agentOrders, durationOf, ownLimitUses, tokensOf } from "../run-model/agent-order.ts";
import { type AgentMoment, isBusy, phases } from "../run-model/agent-moment.ts";
import { type LimitUse, shareOf } from "../run-model/limit-use.ts";
import type { RunAgent } from "../run-model/run-log.ts";
import { type AgentState, isInState, type TreeRow } from "../run-model/tree-rows.ts";
import { compact, costOf, costText, grouped, limitWord, milliseconds, plural, shortId } from "./format.ts";
import { Icon, LimitBar, PhaseIcon, phaseWords } from "./parts.tsx";
import { lostWords } from "./lost-agents.ts";
import { noteSoon, route, selectAgent, selectedAgent } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import {
  chooseAgents,
  fittingAgents,
  isNarrowed,
  isSelectedHidden,
  showAllAgents,
  shownRows,
  toggleBelow,
} from "./shown-agents.ts";
import { oneLine, plainText } from "./untrusted.tsx";
import { VirtualList } from "./virtual-list.tsx";

const ROW_HEIGHT = 40;

/** Id of the agent whose row the arrow keys are on. */
const focused = signal<string | null>(null);

/** The agents of the run, as a tree: its rows, their order and what is left out are the same in all views. */
export function TreeView({ run, children }: { readonly run: RunSession; readonly children: ComponentChildren }) {
  const shown = shownRows.value;
  const current = focused.value ?? run.log.agents[selectedAgent.value]?.agentId ?? "";
  return (
    <section class="tree" aria-label="Agents">
      <TreeHead run={run} />
      {shown.length === 0 ? (
        <p class="empty">
          No agent fits.{" "}
          <button type="button" onClick={showAllAgents}>
            Show all agents
          </button>
        </p>
      ) : (
        <VirtualList
          role="treegrid"
          label="Agents"
          class="tree-rows"
          count={shown.length}
          rowHeight={ROW_HEIGHT}
          columns={1}
          shown={focused.value === null ? -1 : shown.findIndex(({ agent }) => agent.agentId === current)}
          onKeyDown={(event) => moveFocus(event, shown, current)}
          render={(index, slot) => <Row key={slot} row={shown[index] as TreeRow} run={run} current={current} />}
        />
      )}
      {children}
    </section>
  );
}

const orderWords: Readonly<Record<AgentOrder, string>> = {
  start: "by start",
  tokens: "by tokens",
  cost: "by cost",
  duration: "by duration",
  limit: "by fullest limit",
};

/** What is shown of the agents, in all views. It is as high as ever, whatever it says. */
function TreeHead({ run }: { readonly run: RunSession }) {
  const { filter, state, order, isCritical } = route.value;
  return (
    <header class="tree-head">
      <label class="search-field">
        <Icon name="search" />
        <input
          id="tree-filter"
          type="search"
          placeholder="Filter agents"
          aria-label="Filter agents by name, id or state"
          value={filter}
          onInput={({ currentTarget }) => chooseAgents({ filter: currentTarget.value })}
        />
        <kbd>/</kbd>
      </label>
      <div class="tree-choices">
        <select
          aria-label="State of the agents"
          value={state ?? ""}
          onChange={({ currentTarget }) => {
            chooseAgents({ state: currentTarget.value === "" ? null : (currentTarget.value as AgentState) });
          }}
        >
          <option value="">any state</option>
          <StateOptions run={run} chosen={state} />
        </select>
        <select
          aria-label="Order of the agents"
          value={order}
          onChange={({ currentTarget }) => noteSoon({ order: currentTarget.value as AgentOrder })}
        >
          {agentOrders.map((one) => (
            <option key={one} value={one}>
              {orderWords[one]}
            </option>
          ))}
        </select>
        <label class="check" title="Only the agents and bars that decided how long the run took">
          <input
            type="checkbox"
            checked={isCritical}
            onChange={({ currentTarget }) => chooseAgents({ isCritical: currentTarget.checked })}
          />
          critical only
        </label>
      </div>
      <TreeCount run={run} />
    </header>
  );
}

/** The states in which agents are now, with how many. */
function StateOptions({ run, chosen }: { readonly run: RunSession; readonly chosen: AgentState | null }) {
  const there = run.moment.value.agents.filter((agent) => agent !== undefined);
  return (
    <>
      {(["busy", ...phases] as const).map((one) => {
        const count = there.filter((agent) => isInState(agent, one)).length;
        if (count === 0 && one !== chosen && one !== "busy") return null;
        return (
          <option key={one} value={one}>
            {one === "busy" ? "working" : phaseWords[one]} ({grouped(count)})
          </option>
        );
      })}
    </>
  );
}

function TreeCount({ run }: { readonly run: RunSession }) {
  const there = run.moment.value.agents.filter((agent) => agent !== undefined);
  const busy = there.filter(isBusy).length;
  return (
    <p class="quiet figures tree-count">
      {there.length === 0 ? "No agent has begun at this moment." : <HiddenAgents run={run} />}
      {!isNarrowed.value && there.length > 0 && plural(there.length, "agent")}
      {!isNarrowed.value && busy > 0 && ` · ${grouped(busy)} busy`}
      <span role="status">{isSelectedHidden.value && " · the selected one is hidden"}</span>
    </p>
  );
}

/** How many agents a view is about, where it is not about all, and how to see all of them. */
export function HiddenAgents({ run }: { readonly run: RunSession }) {
  const fitting = fittingAgents.value;
  if (fitting === null) return null;
  return (
    <span class="hidden-agents">
      {grouped(fitting.size)} of {plural(run.log.agents.length, "agent")}{" "}
      <button type="button" class="link" onClick={showAllAgents}>
        Show all
      </button>
    </span>
  );
}

interface RowProps {
  readonly run: RunSession;
  readonly row: TreeRow;
  readonly current: string;
}

function Row({ row, run, current }: RowProps) {
  const { agent, isOpen, level, setSize, place, isMatch } = row;
  const isSelected = agent.index === selectedAgent.value;
  const marks = [isSelected && "selected", agent.agentId === current && "current", !isMatch && "above"];
  return (
    <div
      role="row"
      class={["tree-row", ...marks.filter(Boolean)].join(" ")}
      style={{ paddingLeft: `${8 + (level - 1) * 16}px` }}
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

/** The figure by which the rows are ordered. */
function figureOf(run: RunSession, agent: RunAgent, moment: AgentMoment, use: LimitUse | undefined): string {
  const { order } = route.value;
  const now = run.moment.value;
  switch (order) {
    case "tokens":
      return compact(tokensOf(now, agent.agentId, moment));
    case "cost": {
      const account = now.accounts.account(agentAccountId(agent.agentId));
      return costText(account ? costOf(account) : moment);
    }
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

/** What the agent does, in a few words: the text it writes, its tools, whom it waits for, why it stopped. */
function Doing({ run, agentId, moment }: { run: RunSession; agentId: string; moment: AgentMoment }) {
  const text = run.written.value >= 0 ? run.textOf(agentId) : "";
  const lost = run.lost.value.get(run.log.indexOfAgent(agentId));
  if (lost) return <>{lostWords(lost)}</>;
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

/** The limits of the agent's own accounts, of its turn and of its life, the fullest first. */
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
