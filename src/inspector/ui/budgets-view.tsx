import { signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { AccountAt } from "../run-model/account-at.ts";
import type { CurvePoint } from "../run-model/account-curve.ts";
import { limitUses } from "../run-model/limit-use.ts";
import type { RunMoment } from "../run-model/run-moments.ts";
import type { StoredAccounts } from "../feed/wire.ts";
import { useSize } from "./canvas.ts";
import {
  amountText,
  compact,
  costOf,
  costText,
  dollars,
  grouped,
  limitWord,
  plural,
  shortId,
  sinceStart,
} from "./format.ts";
import { LimitBar } from "./parts.tsx";
import { selectAgent, selectedAgent } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { isNarrowed, shownOrder } from "./shown-agents.ts";
import { HiddenAgents } from "./tree-head.tsx";
import { oneLine, plainText } from "./untrusted.tsx";
import { VirtualList } from "./virtual-list.tsx";

const ROW_HEIGHT = 32;
/** Below an account with more than this, only those that hold or have used something are shown, the fullest first. */
const MOST_CHILDREN = 50;

/** Id of the account whose curve is shown; null: that of the selected agent. */
const chosen = signal<string | null>(null);

interface AccountRow {
  readonly account: AccountAt;
  readonly level: number;
  /** How many of its siblings are left out behind it. */
  readonly left: number;
}

/** Who holds the money: the tree of accounts at the moment, and the curve of one. */
export function BudgetsView({ run }: { readonly run: RunSession }) {
  const moment = run.moment.value;
  const stored = useStoredAccounts(run);
  const rows = accountRows(accountsInOrder(run, moment.accounts.accounts));
  const agent = run.log.agents[selectedAgent.value];
  const turnAccount = moment.agents[selectedAgent.value]?.accountId;
  const [account] = [chosen.value, `agent:${agent?.agentId}`, turnAccount].flatMap((id) =>
    id == null ? [] : (moment.accounts.account(id) ?? []),
  );
  if (rows.length === 0) {
    return (
      <p class="empty">
        {isNarrowed.value ? <HiddenAgents run={run} /> : "No account has been opened at this moment."}
      </p>
    );
  }
  return (
    <div class="budgets">
      <div class="budget-list">
        <div class="grid-head budget-row" aria-hidden="true">
          <span>account</span>
          <span>tightest limit</span>
          <span class="number">tokens</span>
          <span class="number">reserved</span>
          <span class="number">cost</span>
          <span class="number">tree steps</span>
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
            return <AccountLine key={slot} run={run} row={row} isChosen={row.account.id === account?.id} />;
          }}
        />
      </div>
      {account && <AccountDetail run={run} account={account} stored={stored} />}
    </div>
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

/** Those of the agents that are shown, in their order. */
function accountsInOrder({ log }: RunSession, accounts: readonly AccountAt[]): readonly AccountAt[] {
  const places = new Map(shownOrder.value.map((agent, place) => [log.agents[agent]?.agentId ?? "", place]));
  const placeOf = ({ agentId }: AccountAt): number => places.get(agentId) ?? -1;
  return accounts.filter(({ agentId }) => places.has(agentId)).toSorted((one, other) => placeOf(one) - placeOf(other));
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

/** What an account pays for. */
function scopeOf({ id, turnId }: AccountAt): string {
  const number = id.slice(id.lastIndexOf("#") + 1);
  if (id.startsWith("background:")) return `background of turn ${number}`;
  return turnId === null ? "whole life" : `turn ${number}`;
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

interface DetailProps {
  readonly run: RunSession;
  readonly account: AccountAt;
  readonly stored: StoredAccounts | undefined;
}

function AccountDetail({ run, account, stored }: DetailProps) {
  const moment = run.moment.value;
  const agent = run.log.agents[run.log.indexOfAgent(account.agentId)];
  const uses = limitUses(account, run.time);
  const inFlight = moment.accounts.inFlight.filter(({ accountId }) => isUnder(moment, accountId, account.id));
  const waiting = moment.accounts.waiting.filter(({ accountId }) => accountId === account.id);
  const refusals = moment.accounts.refusals.filter(({ accountId }) => accountId === account.id);
  return (
    <aside class="detail" aria-label="Account" tabIndex={0}>
      <header class="detail-head">
        <h2>
          {oneLine(agent?.name ?? "", 40)} <code class="id">{shortId(agent?.agentId ?? "")}</code>{" "}
          <span class="quiet">{scopeOf(account)}</span>
        </h2>
      </header>
      <code class="id long" title={plainText(account.id)}>
        {plainText(account.id)}
      </code>
      {uses.length === 0 ? (
        <p class="quiet">It has no limits of its own; the accounts above it bound it.</p>
      ) : (
        <ul class="limit-list">
          {uses.map((use) => (
            <li key={use.limit}>
              <span>{limitWord(use.limit)}</span>
              <LimitBar use={use} isWide />
              <span class="figures">
                {amountText(use.limit, use.used)} <span class="quiet">of {amountText(use.limit, use.max)}</span>
              </span>
            </li>
          ))}
        </ul>
      )}
      <Curve run={run} account={account} />
      <dl class="facts">
        <dt>in flight</dt>
        <dd>{plural(inFlight.length, "reservation")}</dd>
        <dt>refused</dt>
        <dd>{plural(refusals.length, "intent")}</dd>
        <dt>unconfirmed</dt>
        <dd class="figures">{compact(account.unconfirmed.tokens)} tokens</dd>
      </dl>
      <Agreement run={run} account={account} stored={stored} />
      {waiting.length > 0 && (
        <ul class="note">
          {waiting.map(({ seq, agentId, limit, used, max }) => (
            <li key={`${agentId} ${seq}`}>
              <button type="button" class="link" onClick={() => selectAgent(agentId)}>
                {shortId(agentId)}
              </button>{" "}
              waits for {limitWord(limit ?? "")}: {amountText(limit ?? "", used ?? 0)} of{" "}
              {amountText(limit ?? "", max ?? 0)} used
            </li>
          ))}
        </ul>
      )}
    </aside>
  );
}

/** Where the fold and the stored account disagree, the page says so. */
function Agreement({ run, account, stored }: DetailProps) {
  const found = stored?.accounts.find(({ id }) => id === account.id);
  if (!stored || !found || stored.cursor !== run.log.head) return null;
  if (run.moment.value.count !== run.log.length) return null;
  const { used, reserved } = account;
  const isEqual =
    used.tokens === found.used.tokens &&
    used.costMicros === found.used.costMicros &&
    reserved.tokens === found.reserved.tokens;
  return isEqual ? (
    <p class="note good">The journal adds up to what is stored.</p>
  ) : (
    <p class="note bad">
      The journal adds up to {compact(used.tokens)} tokens, {dollars(used.costMicros)}; stored are{" "}
      {compact(found.used.tokens)} tokens, {dollars(found.used.costMicros)}.
    </p>
  );
}

/** Whether the account is the other one or lies below it. */
function isUnder({ accounts }: RunMoment, id: string, above: string): boolean {
  let account = accounts.account(id);
  while (account && account.id !== above)
    account = account.parentId === null ? undefined : accounts.account(account.parentId);
  return account !== undefined;
}

const CURVE_HEIGHT = 120;

function Curve({ run, account }: { readonly run: RunSession; readonly account: AccountAt }) {
  const { element, size } = useSize();
  const axis = run.axis.value;
  const points = useMemo(() => {
    const moment = run.moment.peek();
    return run.spending.curve((id) => isUnder(moment, id, account.id));
  }, [run, account.id, axis]);
  const max = account.limits.maxTokens;
  const highest = points.reduce((most, { used, reserved }) => Math.max(most, used + reserved), 0);
  // A limit far above the curve would press it flat.
  const showsLimit = max !== undefined && max <= highest * 4;
  const top = Math.max(1, showsLimit ? max : 0, highest) * 1.06;
  const width = Math.max(1, size.width);
  const x = (time: number): number => (axis.placeOf(time) / axis.length) * width;
  const y = (amount: number): number => CURVE_HEIGHT - (amount / top) * CURVE_HEIGHT;
  const moment = run.moment.value;
  return (
    <figure class="curve">
      <figcaption>
        <span>Tokens over time</span>
        <span class="quiet figures">
          up to {compact(highest)}
          {max !== undefined && !showsLimit && `, limit ${compact(max)}`}
        </span>
      </figcaption>
      <div ref={element} class="curve-box">
        <svg width={width} height={CURVE_HEIGHT} role="img" aria-label="Tokens used and reserved over time">
          <path class="curve-reserved" d={area(points, ({ used, reserved }) => used + reserved, { x, y, width })} />
          <path class="curve-used" d={area(points, ({ used }) => used, { x, y, width })} />
          {showsLimit && <line class="curve-limit" x1={0} x2={width} y1={y(max)} y2={y(max)} />}
          {!run.isLive.value && (
            <line class="curve-now" x1={x(moment.time)} x2={x(moment.time)} y1={0} y2={CURVE_HEIGHT} />
          )}
        </svg>
      </div>
      <ul class="legend">
        <li>
          <span class="swatch used" /> used
        </li>
        <li>
          <span class="swatch reserved" /> reserved
        </li>
        <li class="quiet figures">at {sinceStart(run.time, run.log.startedAt)}</li>
      </ul>
    </figure>
  );
}

interface Scales {
  readonly x: (time: number) => number;
  readonly y: (amount: number) => number;
  readonly width: number;
}

/** A step curve with the area below it; at most two points a pixel. */
function area(points: readonly CurvePoint[], amount: (point: CurvePoint) => number, { x, y, width }: Scales): string {
  if (points.length === 0) return "";
  let path = `M${x(points[0]?.time ?? 0).toFixed(1)},${y(0)}`;
  let lastX = -1;
  let highest = 0;
  for (const [index, point] of points.entries()) {
    const at = x(point.time);
    highest = Math.max(highest, amount(point));
    if (at - lastX < 0.5 && index < points.length - 1) continue;
    path += `H${at.toFixed(1)}V${y(index === points.length - 1 ? amount(point) : highest).toFixed(1)}`;
    lastX = at;
    highest = 0;
  }
  return `${path}H${width}V${y(0)}Z`;
}
