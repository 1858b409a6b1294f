import { type AgentOrder, agentOrders } from "../run-model/agent-order.ts";
import { isBusy } from "../run-model/agent-moment.ts";
import { type AgentState, agentStates, isInState } from "../run-model/tree-rows.ts";
import { grouped, plural } from "./format.ts";
import { noteSoon, route } from "./page-state.ts";
import { Icon, phaseWords } from "./parts.tsx";
import type { RunSession } from "./run-session.ts";
import { chooseAgents, fittingAgents, isNarrowed, isSelectedHidden, showAllAgents } from "./shown-agents.ts";

const orderWords: Readonly<Record<AgentOrder, string>> = {
  start: "by start",
  tokens: "by tokens",
  cost: "by cost",
  duration: "by duration",
  limit: "by fullest limit",
};

/**
 * The filter and order of the agents in all views. Its height does not depend on its text, and one key moves from the
 * filter to the rows.
 */
export function TreeHead({ run }: { readonly run: RunSession }) {
  const { filter, state, order, isCritical } = route.value;
  return (
    <header class="tree-head">
      <TreeCount run={run} />
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
    </header>
  );
}

/** The current states of agents, with their numbers. */
function StateOptions({ run, chosen }: { readonly run: RunSession; readonly chosen: AgentState | null }) {
  const there = run.moment.value.agents.filter((agent) => agent !== undefined);
  return (
    <>
      {agentStates.map((one) => {
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

/** If a view does not show all agents: how many it shows, and a button to show all. */
export function HiddenAgents({ run }: { readonly run: RunSession }) {
  const fitting = fittingAgents.value;
  if (fitting === null) return null;
  return (
    <span class="hidden-agents quiet figures">
      {grouped(fitting.size)} of {plural(run.log.agents.length, "agent")}{" "}
      <button type="button" class="link" onClick={showAllAgents}>
        Show all
      </button>
    </span>
  );
}
