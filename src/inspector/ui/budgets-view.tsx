import { signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { StoredAccounts } from "../feed/wire.ts";
import { aboveName, type AccountAt, scopeOf } from "../run-model/account-at.ts";
import { metAt, payingAccounts, usesOf } from "../run-model/agent-budget.ts";
import { limitUses } from "../run-model/limit-use.ts";
import { AccountDetail } from "./account-detail.tsx";
import { AgentBudgets } from "./agent-budgets.tsx";
import { amountText, compact, costOf, costText, dateTime, grouped, limitWord, shortId } from "./format.ts";
import { Icon, LimitBar } from "./parts.tsx";
import { selectAgent, selectedAgent } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { fittingAgents, shownOrder } from "./shown-agents.ts";
import { HiddenAgents } from "./tree-head.tsx";
import { oneLine } from "./untrusted.tsx";
import { VirtualList } from "./virtual-list.tsx";

const ROW_HEIGHT = 32;
/** If an account has more children than this, only those with use or reservations are shown, the fullest first. */
const MOST_CHILDREN = 50;

/** Id of the account in the detail pane, if it pays for the selected agent; `null` for the default account. */
const chosen = signal<string | null>(null);

interface AccountRow {
  readonly account: AccountAt;
  readonly level: number;
  /** Number of siblings that are left out after this row. */
  readonly left: number;
}

/** Whether the list of all accounts below the agents is open. */
const showsAll = signal(false);

/** How near the agents are to their limits at the moment, and the selected agent's account. */
export function BudgetsView({ run }: { readonly run: RunSession }) {
  const moment = run.moment.value;
  const stored = useStoredAccounts(run);
  const agent = run.log.agents[selectedAgent.value];
  const chain = agent ? payingAccounts(moment, agent) : [];
  const picked = chosen.value === null ? undefined : moment.accounts.account(chosen.value);
  // Accounts of earlier turns no longer pay.
  const isEarlier = picked && picked.agentId === agent?.agentId && !chain.includes(picked);
  const choices = isEarlier ? [picked, ...chain] : chain;
  const account = choices.find(({ id }) => id === chosen.value) ?? foremost(chain);
  if (moment.accounts.accounts.length === 0) return <p class="empty">No account has been opened at this moment.</p>;
  const fitting = fittingAgents.value;
  const shown = shownOrder.value.filter((one) => moment.agents[one] && (fitting?.has(one) ?? true));
  return (
    <div class="budgets">
      <div class="budget-list">
        {fitting && (
          <div class="view-bar">
            <span class="spacer" />
            <HiddenAgents run={run} />
          </div>
        )}
        <AgentBudgets
          run={run}
          agents={shown}
          onSelect={(agentId) => {
            chosen.value = null;
            selectAgent(agentId);
          }}
        />
        <AccountsAbove run={run} accounts={stored?.above ?? []} />
        <AllAccounts run={run} shown={account?.id} />
      </div>
      {account && (
        <AccountDetail
          run={run}
          account={account}
          stored={stored}
          choices={choices}
          onChoose={(id) => {
            chosen.value = id;
          }}
        />
      )}
    </div>
  );
}

/** The default account: the first with a limit, from the agent upward; the lifetime account precedes the turn's. */
function foremost(chain: readonly AccountAt[]): AccountAt | undefined {
  const [first] = chain;
  const own = chain.filter(({ agentId }) => agentId === first?.agentId);
  const above = chain.slice(own.length);
  return [...own.toReversed(), ...above].find((account) => usesOf(account, 0).length > 0) ?? first;
}

/** The accounts of the owner and of the tenant, on which other runs spend too. */
function AccountsAbove({
  run,
  accounts,
}: {
  readonly run: RunSession;
  readonly accounts: NonNullable<StoredAccounts["above"]>;
}) {
  if (accounts.length === 0) return null;
  return (
    <section class="accounts-above" aria-label="Accounts above the run">
      <h2>Above the run</h2>
      {accounts.map((account) => {
        const [use] = limitUses(account, run.time);
        const renewsAt = account.outer?.endsAt ?? null;
        const at = use ? metAt(account, use.limit, run.time) : null;
        return (
          <p key={account.id}>
            <b>{oneLine(aboveName(account.id), 80)}</b>{" "}
            {use && (
              <>
                <LimitBar use={use} isWide />{" "}
                <span class="figures quiet">
                  {amountText(use.limit, use.used)} of {amountText(use.limit, use.max)} {limitWord(use.limit)}
                </span>
              </>
            )}{" "}
            <span class="figures quiet">
              {account.reserved.tokens > 0 && `${compact(account.reserved.tokens)} tokens reserved, `}
              {renewsAt === null ? "never renews" : `renews ${dateTime(renewsAt)}`}
              {at !== null && `, est. met ${dateTime(at)}`}
            </span>
          </p>
        );
      })}
    </section>
  );
}

/** The tree of all accounts. */
function AllAccounts({ run, shown }: { readonly run: RunSession; readonly shown: string | undefined }) {
  const { accounts } = run.moment.value.accounts;
  const shownAccounts = useMemo(() => accountsInOrder(run, accounts), [run.moment.value, shownOrder.value]);
  const rows = useMemo(() => (showsAll.value ? accountRows(shownAccounts) : []), [shownAccounts, showsAll.value]);
  const count = shownAccounts.length;
  return (
    <section class={showsAll.value ? "all-accounts open" : "all-accounts"} aria-label="All accounts">
      <button
        type="button"
        class="plain"
        aria-expanded={showsAll.value}
        onClick={() => {
          showsAll.value = !showsAll.value;
        }}
      >
        <span class={showsAll.value ? "chevron open" : "chevron"}>
          <Icon name="chevron" />
        </span>
        All accounts{" "}
        <span class="quiet figures">
          {count === accounts.length ? grouped(count) : `${grouped(count)} of ${grouped(accounts.length)}`}
        </span>
      </button>
      {showsAll.value && (
        <>
          <div class="grid-head budget-row" aria-hidden="true">
            <span>Account</span>
            <span>Fullest limit</span>
            <span class="number">Tokens</span>
            <span class="number">Reserved</span>
            <span class="number">Cost</span>
            <span class="number">Tree steps</span>
          </div>
          <VirtualList
            role="treegrid"
            label="Accounts"
            class="grid-rows"
            count={rows.length}
            rowHeight={ROW_HEIGHT}
            columns={6}
            render={(index, slot) => {
              const row = rows[index];
              if (!row) return null;
              return <AccountLine key={slot} run={run} row={row} isChosen={row.account.id === shown} />;
            }}
          />
        </>
      )}
    </section>
  );
}

function useStoredAccounts(run: RunSession): StoredAccounts | undefined {
  const [stored, setStored] = useState<StoredAccounts | undefined>();
  const length = run.length.value;
  const isCaughtUp = run.isCaughtUp.value;
  useEffect(() => {
    if (!isCaughtUp) return undefined;
    let isGone = false;
    const timer = setTimeout(
      () => {
        run.client.storedAccounts(run.runId).then(
          (answer) => {
            if (isGone) return;
            if (answer.cursor <= run.log.head) run.learn(answer.accounts);
            setStored(answer);
          },
          () => undefined,
        );
      },
      stored === undefined ? 0 : 1_000,
    );
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [run, length, isCaughtUp]);
  return stored;
}

/** The accounts of the shown agents, in the agents' order. */
function accountsInOrder({ log }: RunSession, accounts: readonly AccountAt[]): readonly AccountAt[] {
  const rows = new Map(shownOrder.value.map((agent, row) => [log.agents[agent]?.agentId ?? "", row]));
  const rowOf = ({ agentId }: AccountAt): number => rows.get(agentId) ?? -1;
  return accounts.filter(({ agentId }) => rows.has(agentId)).toSorted((one, other) => rowOf(one) - rowOf(other));
}

function accountRows(accounts: readonly AccountAt[]): AccountRow[] {
  const below = new Map<string | null, AccountAt[]>();
  const ids = new Set(accounts.map(({ id }) => id));
  for (const account of accounts) {
    const above = account.parentId !== null && ids.has(account.parentId) ? account.parentId : null;
    const siblings = below.get(above);
    if (siblings) siblings.push(account);
    else below.set(above, [account]);
  }
  const rows: AccountRow[] = [];
  const add = (members: readonly AccountAt[], level: number): void => {
    const isLarge = members.length > MOST_CHILDREN;
    const shown = isLarge
      ? members.toSorted((one, other) => weightOf(other) - weightOf(one)).slice(0, MOST_CHILDREN)
      : members;
    for (const [place, account] of shown.entries()) {
      const left = isLarge && place === shown.length - 1 ? members.length - shown.length : 0;
      rows.push({ account, level, left });
      add(below.get(account.id) ?? [], level + 1);
    }
  };
  add(below.get(null) ?? [], 1);
  return rows;
}

function weightOf({ reserved, used }: AccountAt): number {
  return reserved.tokens * 1e9 + used.tokens;
}

interface LineProps {
  readonly run: RunSession;
  readonly row: AccountRow;
  readonly isChosen: boolean;
}

function AccountLine({ run, row, isChosen }: LineProps) {
  const { account, level, left } = row;
  const agent = run.log.agents[run.log.indexOfAgent(account.agentId)];
  const [use] = limitUses(account, run.time);
  return (
    <div
      role="row"
      class={`grid-row budget-row${isChosen ? " selected" : ""}`}
      aria-level={level}
      aria-selected={isChosen}
      onClick={() => {
        chosen.value = account.id;
        if (agent) selectAgent(agent.agentId);
      }}
    >
      <span role="gridcell" class="account-name" style={{ paddingLeft: `${(level - 1) * 14}px` }}>
        <b>{oneLine(agent?.name ?? "", 40)}</b> <code class="id">{shortId(agent?.agentId ?? "")}</code>{" "}
        <span class="quiet">{scopeOf(account)}</span>
        {left > 0 && <span class="tag">and {left.toLocaleString("en")} smaller ones</span>}
      </span>
      <span role="gridcell" class="account-limit">
        {use ? (
          <>
            <LimitBar use={use} isWide />
            <span class="figures quiet">
              {amountText(use.limit, use.used)} of {amountText(use.limit, use.max)} {limitWord(use.limit)}
            </span>
          </>
        ) : (
          <span class="quiet">no limit of its own</span>
        )}
      </span>
      <span role="gridcell" class="number figures">
        {compact(account.used.tokens)}
      </span>
      <span role="gridcell" class="number figures">
        {account.reserved.tokens > 0 ? compact(account.reserved.tokens) : <span class="quiet">–</span>}
      </span>
      <span role="gridcell" class="number figures">
        {costText(costOf(account))}
      </span>
      <span role="gridcell" class="number figures">
        {grouped(account.used.treeSteps)}
      </span>
    </div>
  );
}
