import { agentBudget, type BindingLimit, forecastOf, payingAccounts } from "../run-model/agent-budget.ts";
import { type AgentMoment, isBusy } from "../run-model/agent-moment.ts";
import type { RefusalAt } from "../run-model/account-fold.ts";
import { shareOf } from "../run-model/limit-use.ts";
import { accountWords, agentWords } from "./account-words.ts";
import { useSize } from "./canvas.ts";
import { amountText, limitWord, milliseconds, shortId, shortTime } from "./format.ts";
import { selectAgent, selectedAgent } from "./page-state.ts";
import { LimitBar, limitTitle, PhaseIcon, phaseWords } from "./parts.tsx";
import type { RunSession } from "./run-session.ts";
import { oneLine, plainText } from "./untrusted.tsx";
import { VirtualList } from "./virtual-list.tsx";

const ROW_HEIGHT = 48;
const NARROW_ROW_HEIGHT = 92;
/** Below this width, the cells of a row are in two lines. */
const NARROW = 540;

interface BudgetsProps {
  readonly run: RunSession;
  /** The agents to show, by index in the log, in row order. */
  readonly agents: readonly number[];
  readonly onSelect: (agentId: string) => void;
}

/** How near each agent is to its limits, one row per agent. */
export function AgentBudgets({ run, agents, onSelect }: BudgetsProps) {
  const { element, size } = useSize();
  const isNarrow = size.width > 0 && size.width < NARROW;
  return (
    <div ref={element} class={isNarrow ? "agent-budgets narrow" : "agent-budgets"}>
      <div class="grid-head agent-budget" aria-hidden="true">
        <span>Agent</span>
        <span>Own accounts, shared ones</span>
        <span>Binding limit</span>
        <span>Refused</span>
      </div>
      <VirtualList
        role="table"
        label="Budgets by agent"
        class="grid-rows"
        count={agents.length}
        rowHeight={isNarrow ? NARROW_ROW_HEIGHT : ROW_HEIGHT}
        columns={4}
        render={(row, slot) => <BudgetRow key={slot} run={run} index={agents[row] ?? -1} onSelect={onSelect} />}
      />
    </div>
  );
}

interface RowProps {
  readonly run: RunSession;
  readonly index: number;
  readonly onSelect: (agentId: string) => void;
}

function BudgetRow({ run, index, onSelect }: RowProps) {
  const agent = run.log.agents[index];
  const moment = run.moment.value.agents[index];
  if (!agent || !moment) return null;
  const time = run.timeFor(index);
  const { own, tree, binding } = agentBudget(payingAccounts(run.moment.value, agent), agent.agentId, time);
  const isSelected = index === selectedAgent.value;
  return (
    <div
      role="row"
      class={isSelected ? "grid-row agent-budget selected" : "grid-row agent-budget"}
      onClick={() => onSelect(agent.agentId)}
    >
      <span role="cell" class="two-lines">
        <button
          type="button"
          class="link"
          aria-pressed={isSelected}
          title={plainText(agent.agentId)}
          onClick={(event) => {
            event.stopPropagation();
            onSelect(agent.agentId);
          }}
        >
          <b>{oneLine(agent.name, 40)}</b> <code class="id">{shortId(agent.agentId)}</code>
        </button>
        <span class="quiet budget-phase">
          <PhaseIcon phase={moment.phase} /> {phaseWords[moment.phase]}
        </span>
      </span>
      <span role="cell" class="two-lines">
        <Bar run={run} use={own} none="no limit of its own" />
        <Bar run={run} use={tree} none="no limit that it shares" />
      </span>
      <span role="cell" class="two-lines">
        {binding ? <Binding run={run} index={index} moment={moment} binding={binding} /> : <span class="quiet">–</span>}
      </span>
      <span role="cell" class="two-lines">
        <Refused run={run} agentId={agent.agentId} />
      </span>
    </div>
  );
}

interface BarProps {
  readonly run: RunSession;
  readonly use: BindingLimit | undefined;
  readonly none: string;
}

function Bar({ run, use, none }: BarProps) {
  if (!use) return <span class="quiet budget-bar">{none}</span>;
  const { limit, used, reserved, max, account } = use;
  return (
    <span class="budget-bar" title={`${accountWords(run, account.id)}: ${limitTitle(use)}`}>
      <LimitBar use={use} isWide />
      <span class="figures quiet">
        {amountText(limit, used)}
        {reserved > 0 && ` + ${amountText(limit, reserved)}`} of {amountText(limit, max)} {limitWord(limit)}
      </span>
    </span>
  );
}

interface BindingProps {
  readonly run: RunSession;
  readonly index: number;
  readonly moment: AgentMoment;
  readonly binding: BindingLimit;
}

function Binding({ run, index, moment, binding }: BindingProps) {
  const { limit, account } = binding;
  const isOwn = account.agentId === run.log.agents[index]?.agentId;
  const share = `${Math.floor(shareOf(binding) * 100)} %`;
  return (
    <>
      <span class={shareOf(binding) >= 1 ? "figures bad" : "figures"} title={accountWords(run, account.id)}>
        <b>{limitWord(limit)}</b> {!isOwn && `of ${agentWords(run, account.agentId)} `}
        {share}
      </span>
      {isBusy(moment) && <ForecastText run={run} index={index} binding={binding} />}
    </>
  );
}

const howEstimated = "An estimate: what is left of the limit at the account's average use since it was opened";
const howKnown = "A limit on time: it is reached then if the work goes on";

function ForecastText({ run, index, binding }: Omit<BindingProps, "moment">) {
  const time = run.timeFor(index);
  const forecast = forecastOf(binding, time);
  if (!forecast) return null;
  const { at, isEstimate } = forecast;
  return (
    <span class="figures quiet forecast" title={isEstimate ? howEstimated : howKnown}>
      {isEstimate && "est. "}
      {shortTime(at)}, in {milliseconds(Math.max(0, at - time))}
    </span>
  );
}

/** The agent's last refusal, or the limit that it waits for. */
function Refused({ run, agentId }: { readonly run: RunSession; readonly agentId: string }) {
  const { accounts } = run.moment.value;
  const waits = accounts.waiting.find((one) => one.agentId === agentId);
  const refusal = waits ?? accounts.refusalOf(agentId);
  if (!refusal) return null;
  const { accountId, limit, at } = refusal;
  return (
    <>
      <button
        type="button"
        class={waits ? "link" : "link bad"}
        title="Goes to the moment"
        onClick={() => {
          run.player.pause();
          run.pin(run.log.countUntil(at));
          selectAgent(agentId);
        }}
      >
        {waits && "waits for "}
        {limitWord(limit ?? "")} of {accountWords(run, accountId ?? "")}
      </button>
      <span class="figures quiet">{waits ? "reserved by others" : tooFew(refusal)}</span>
    </>
  );
}

/** The amount needed, the amount left, and the difference. */
function tooFew({ limit, used, max, needed, reason }: RefusalAt): string {
  if (reason === "unpriced") return "the price is not known";
  if (limit === null || used === null || max === null || limit === "deadlineAt") return "";
  const left = Math.max(0, max - used);
  const wanted = needed === null ? "" : `${amountText(limit, needed)} wanted, `;
  const over = needed === null ? "" : `, ${amountText(limit, needed - left)} over`;
  return `${wanted}${amountText(limit, left)} left${over}`;
}
