import type { ComponentChildren } from "preact";
import { computed, signal } from "@preact/signals";
import { limitUses, type LimitUse, shareOf } from "../run-model/limit-use.ts";
import { type AgentMoment, isBusy } from "../run-model/agent-moment.ts";
import { type TreeRow, treeRows } from "../run-model/tree-rows.ts";
import { plural, shortId } from "./format.ts";
import { Icon, LimitBar, PhaseIcon, phaseWords } from "./parts.tsx";
import { lostWords } from "../run-model/lost-agents.ts";
import { route, selectAgent, selectedAgent, session } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { oneLine, plainText } from "./untrusted.tsx";
import { VirtualList } from "./virtual-list.tsx";

const ROW_HEIGHT = 40;

const filter = signal("");
/** Shows the agents in a phase, as if its name had been typed. */
export function filterTree(text: string): void {
  filter.value = text;
}

const closed = signal<ReadonlySet<string>>(new Set());
const openGroups = signal<ReadonlySet<string>>(new Set());
/** The row that the arrow keys are on, by its key. */
const focused = signal<string | null>(null);

const rows = computed((): TreeRow[] => {
  const run = session.value;
  if (!run) return [];
  const options = { closed: closed.value, open: openGroups.value, filter: filter.value.trim().toLowerCase() };
  return treeRows(run.log, run.moment.value, options);
});

/** The agents of the run at the moment, as a tree. */
export function TreeView({ run, children }: { readonly run: RunSession; readonly children: ComponentChildren }) {
  const shown = rows.value;
  const { agents } = run.moment.value;
  let there = 0;
  let busy = 0;
  for (const agent of agents) {
    if (!agent) continue;
    there += 1;
    if (isBusy(agent)) busy += 1;
  }
  const current = focused.value ?? run.log.agents[selectedAgent.value]?.agentId ?? "";
  return (
    <section class="tree" aria-label="Agents">
      <header class="pane-head">
        <label class="search-field">
          <Icon name="search" />
          <input
            id="tree-filter"
            type="search"
            placeholder="Filter agents"
            aria-label="Filter agents by name, id or state"
            value={filter.value}
            onInput={({ currentTarget }) => {
              filter.value = currentTarget.value;
            }}
          />
          <kbd>/</kbd>
        </label>
        <p class="quiet figures tree-count">
          {plural(there, "agent")}
          {busy > 0 && ` · ${busy.toLocaleString("en")} busy`}
        </p>
      </header>
      {shown.length === 0 ? (
        <p class="empty">{filter.value === "" ? "No agent has begun at this moment." : "No agent fits the filter."}</p>
      ) : (
        <VirtualList
          role="treegrid"
          label="Agents"
          class="tree-rows"
          count={shown.length}
          rowHeight={ROW_HEIGHT}
          columns={1}
          shown={focused.value === null ? -1 : shown.findIndex(({ key }) => key === current)}
          onKeyDown={(event) => moveFocus(event, shown, current)}
          render={(index, slot) => <Row key={slot} row={shown[index] as TreeRow} run={run} current={current} />}
        />
      )}
      {children}
    </section>
  );
}

interface RowProps {
  readonly row: TreeRow;
  readonly run: RunSession;
  readonly current: string;
}

function Row({ row, run, current }: RowProps) {
  const isSelected = row.kind === "agent" && row.agent.index === selectedAgent.value;
  const select = (): void => {
    focused.value = row.key;
    if (row.kind === "agent") selectAgent(row.agent.agentId);
    else toggle(row);
  };
  return (
    <div
      role="row"
      class={`tree-row${isSelected ? " selected" : ""}${row.key === current ? " current" : ""}`}
      style={{ paddingLeft: `${8 + (row.level - 1) * 16}px` }}
      aria-level={row.level}
      aria-setsize={row.setSize}
      aria-posinset={row.place}
      aria-expanded={row.isOpen}
      aria-selected={isSelected}
      onClick={select}
    >
      <div role="gridcell" class="tree-cell">
        {row.isOpen === undefined ? (
          <span class="chevron none" />
        ) : (
          <button
            type="button"
            class={row.isOpen ? "chevron open" : "chevron"}
            tabIndex={-1}
            aria-label={row.isOpen ? "Close" : "Open"}
            onClick={(event) => {
              event.stopPropagation();
              toggle(row);
            }}
          >
            <Icon name="chevron" />
          </button>
        )}
        {row.kind === "agent" ? <AgentCell row={row} run={run} /> : <GroupCell row={row} />}
      </div>
    </div>
  );
}

function AgentCell({ row, run }: { readonly row: Extract<TreeRow, { kind: "agent" }>; readonly run: RunSession }) {
  const { agent, moment } = row;
  const [use] = limitsOf(run, agent.agentId, moment.accountId);
  return (
    <>
      <PhaseIcon phase={moment.phase} />
      <span class="tree-text">
        <span class="tree-name">
          <b>{oneLine(agent.name, 60)}</b>
          <code class="id" title={plainText(agent.agentId)}>
            {oneLine(shortId(agent.agentId), 24)}
          </code>
          {agent.isBackground && <span class="tag">background</span>}
        </span>
        <span class="tree-doing">
          <Doing run={run} agentId={agent.agentId} moment={moment} />
        </span>
      </span>
      <span class="tree-figures">
        <span class="figures quiet">{moment.step > 0 ? `step ${moment.step}` : ""}</span>
        {use ? <LimitBar use={use} /> : <span class="limit-bar none" />}
      </span>
    </>
  );
}

function GroupCell({ row }: { readonly row: Extract<TreeRow, { kind: "group" }> }) {
  return (
    <>
      <PhaseIcon phase={row.phase} />
      <span class="tree-text">
        <span class="tree-name">
          <b>{oneLine(row.name, 60)}</b>
          <span class="quiet">× {row.count.toLocaleString("en")}</span>
        </span>
        <span class="tree-doing">{phaseWords[row.phase]}</span>
      </span>
    </>
  );
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
  const { accounts } = run.moment.value;
  const { time } = run;
  const own = [turnAccount, `agent:${agentId}`].flatMap((id) => (id === null ? [] : (accounts.account(id) ?? [])));
  return own.flatMap((account) => limitUses(account, time)).toSorted((one, other) => shareOf(other) - shareOf(one));
}

function toggle(row: TreeRow): void {
  if (row.isOpen === undefined) return;
  const set = row.kind === "agent" ? closed : openGroups;
  const next = new Set(set.value);
  if (!next.delete(row.key)) next.add(row.key);
  set.value = next;
}

function moveFocus(event: KeyboardEvent, shown: readonly TreeRow[], current: string): void {
  const index = shown.findIndex(({ key }) => key === current);
  const row = shown[index];
  const to = (place: number): void => {
    event.preventDefault();
    const next = shown[Math.max(0, Math.min(shown.length - 1, place))];
    if (next) focused.value = next.key;
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
      if (row?.isOpen === false) toggle(row);
      else to(index + 1);
      event.preventDefault();
      return;
    case "ArrowLeft":
      if (row?.isOpen === true) toggle(row);
      else to(shown.findLastIndex((one, place) => place < index && one.level < (row?.level ?? 1)));
      event.preventDefault();
      return;
    case "Enter":
    case " ":
      event.preventDefault();
      event.stopPropagation();
      if (row?.kind === "agent") selectAgent(row.agent.agentId);
      else if (row) toggle(row);
      return;
    default:
  }
}

export function focusTreeFilter(): void {
  if (route.peek().page !== "run") return;
  document.getElementById("tree-filter")?.focus();
}
