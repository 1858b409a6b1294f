import { signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { type AccountMoment, changeOf, limitUses, type RunAccount, shareOf } from "../run-model/account-moment.ts";
import type { StoredAccounts } from "../feed/wire.ts";
import { useSize } from "./canvas.ts";
import { amountText, compact, dollars, grouped, limitWord, plural, shortId, sinceStart } from "./format.ts";
import { LimitBar } from "./limit-bar.tsx";
import { selectAgent, selectedAgent } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { oneLine, plainText } from "./untrusted.tsx";
import { VirtualList } from "./virtual-list.tsx";

const ROW_HEIGHT = 32;
/** Below an account with more than this, only those that hold or have used something are shown, the fullest first. */
const MOST_CHILDREN = 50;

/** Id of the account whose curve is shown; null: that of the selected agent. */
const chosen = signal<string | null>(null);

interface AccountRow {
  readonly account: RunAccount;
  readonly moment: AccountMoment | undefined;
  readonly level: number;
  /** How many of its siblings are left out behind it. */
  readonly left: number;
}

/** Who holds the money: the tree of accounts at the moment, and the curve of one. */
export function BudgetsView({ run }: { readonly run: RunSession }) {
  const moment = run.moment.value;
  const stored = useStoredAccounts(run);
  const { all } = run.moments.accounts;
  const rows = useMemo(() => accountRows(all, moment.accounts), [moment]);
  const ofAgent = all.find(({ agent, turn }) => agent === selectedAgent.value && turn === 0);
  const ofTurn = all.findLast(({ agent }) => agent === selectedAgent.value);
  const account = all[run.moments.accounts.indexOf(chosen.value ?? "")] ?? ofAgent ?? ofTurn;
  if (rows.length === 0) return <p class="empty">No account has been opened at this moment.</p>;
  return (
    <div class="budgets">
      <div class="budget-list">
        <div class="grid-head budget-row" aria-hidden="true">
          <span>account</span>
          <span>tightest limit</span>
          <span class="number">tokens</span>
          <span class="number">reserved</span>
          <span class="number">cost</span>
          <span class="number">steps</span>
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
            return row ? (
              <AccountLine key={slot} run={run} row={row} isChosen={row.account === account} total={rows.length} />
            ) : null;
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
            for (const { id, limits } of answer.accounts) run.moments.accounts.setLimits(id, limits);
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

function accountRows(all: readonly RunAccount[], moments: readonly (AccountMoment | undefined)[]): AccountRow[] {
  const rows: AccountRow[] = [];
  const weight = ({ index }: RunAccount): number =>
    (moments[index]?.reservedTokens ?? 0) * 1e9 + (moments[index]?.used.tokens ?? 0);
  const add = (members: readonly number[], level: number): void => {
    const there = members.flatMap((index) => {
      const account = all[index];
      return account && moments[index] ? [account] : [];
    });
    const isLarge = there.length > MOST_CHILDREN;
    const shown = isLarge ? there.toSorted((one, other) => weight(other) - weight(one)).slice(0, MOST_CHILDREN) : there;
    for (const [place, account] of shown.entries()) {
      const left = isLarge && place === shown.length - 1 ? there.length - shown.length : 0;
      rows.push({ account, moment: moments[account.index], level, left });
      add(account.children, level + 1);
    }
  };
  add(
    all.filter(({ parent }) => parent < 0).map(({ index }) => index),
    1,
  );
  return rows;
}

interface LineProps {
  readonly run: RunSession;
  readonly row: AccountRow;
  readonly isChosen: boolean;
  readonly total: number;
}

function AccountLine({ run, row, isChosen }: LineProps) {
  const { account, moment, level, left } = row;
  const agent = run.log.agents[account.agent];
  const [use] = limitUses(account, moment);
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
        <span class="quiet">{account.turn === 0 ? "whole life" : `turn ${account.turn}`}</span>
        {left > 0 && <span class="tag">and {left.toLocaleString("en")} smaller ones</span>}
      </span>
      <span role="gridcell" class="account-limit">
        {use ? (
          <>
            <LimitBar use={use} isWide />
            <span class="figures quiet">{Math.round(shareOf(use) * 100)} %</span>
            <span class="quiet">{limitWord(use.limit)}</span>
          </>
        ) : (
          <span class="quiet">no limit of its own</span>
        )}
      </span>
      <span role="gridcell" class="number figures">
        {compact(moment?.used.tokens ?? 0)}
      </span>
      <span role="gridcell" class="number figures">
        {moment && moment.reservedTokens > 0 ? compact(moment.reservedTokens) : <span class="quiet">–</span>}
      </span>
      <span role="gridcell" class="number figures">
        {dollars(moment?.used.costMicros ?? 0)}
      </span>
      <span role="gridcell" class="number figures">
        {grouped(moment?.used.treeSteps ?? 0)}
      </span>
    </div>
  );
}

interface DetailProps {
  readonly run: RunSession;
  readonly account: RunAccount;
  readonly stored: StoredAccounts | undefined;
}

function AccountDetail({ run, account, stored }: DetailProps) {
  const moment = run.moment.value;
  const now = moment.accounts[account.index];
  const agent = run.log.agents[account.agent];
  const uses = limitUses(account, now);
  return (
    <aside class="detail" aria-label="Account">
      <header class="detail-head">
        <h3>
          {oneLine(agent?.name ?? "", 40)} <code class="id">{shortId(agent?.agentId ?? "")}</code>{" "}
          <span class="quiet">{account.turn === 0 ? "whole life" : `turn ${account.turn}`}</span>
        </h3>
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
        <dd>{plural(now?.inFlight ?? 0, "reservation")}</dd>
        <dt>refused</dt>
        <dd>{plural(now?.refusals ?? 0, "intent")}</dd>
        <dt>unconfirmed</dt>
        <dd class="figures">{compact(now?.unconfirmedTokens ?? 0)} tokens</dd>
      </dl>
      <Agreement run={run} account={account} stored={stored} />
      <Waiters stored={stored} />
    </aside>
  );
}

/** Where the fold and the stored account disagree, the page says so. */
function Agreement({ run, account, stored }: DetailProps) {
  const found = stored?.accounts.find(({ id }) => id === account.id);
  if (!stored || !found || stored.cursor !== run.log.head) return null;
  const { accounts } = run.moment.value;
  if (run.moment.value.count !== run.log.length) return null;
  const folded = accounts[account.index];
  const isEqual =
    folded?.used.tokens === found.used.tokens &&
    folded.used.costMicros === found.used.costMicros &&
    folded.reservedTokens === found.reserved.tokens;
  return isEqual ? (
    <p class="note good">The journal adds up to what is stored.</p>
  ) : (
    <p class="note bad">
      The journal adds up to {compact(folded?.used.tokens ?? 0)} tokens, {dollars(folded?.used.costMicros ?? 0)}; stored
      are {compact(found.used.tokens)} tokens, {dollars(found.used.costMicros)}.
    </p>
  );
}

function Waiters({ stored }: { readonly stored: StoredAccounts | undefined }) {
  if (!stored || stored.waiters.length === 0) return null;
  return <p class="note">{plural(stored.waiters.length, "call")} waits for room.</p>;
}

interface CurvePoint {
  readonly time: number;
  readonly used: number;
  readonly reserved: number;
}

/** Tokens of the account over the whole run: used, and on top reserved. */
function curveOf(run: RunSession, account: RunAccount): CurvePoint[] {
  const { log, moments } = run;
  const points: CurvePoint[] = [];
  const below = new Map<string, boolean>();
  const isBelow = (id: string): boolean => {
    const known = below.get(id);
    if (known !== undefined) return known;
    let index = moments.accounts.indexOf(id);
    while (index >= 0 && index !== account.index) index = moments.accounts.all[index]?.parent ?? -1;
    below.set(id, index >= 0);
    return index >= 0;
  };
  let now: AccountMoment | undefined;
  for (let place = 0; place < log.length; place += 1) {
    const entry = log.entries[place];
    const change = entry && changeOf(entry);
    if (!change || !isBelow(change.accountId)) continue;
    now = change.next(now ?? nothing, true);
    points.push({ time: log.timeOf(place), used: now.used.tokens, reserved: now.reservedTokens });
  }
  return points;
}

const nothing: AccountMoment = {
  used: { steps: 0, treeSteps: 0, toolCalls: 0, treeToolCalls: 0, tokens: 0, costMicros: 0 },
  reservedTokens: 0,
  reservedMicros: 0,
  unconfirmedTokens: 0,
  unconfirmedMicros: 0,
  inFlight: 0,
  refusals: 0,
  waiting: 0,
};

const CURVE_HEIGHT = 120;

function Curve({ run, account }: { readonly run: RunSession; readonly account: RunAccount }) {
  const { element, size } = useSize();
  const length = run.length.value;
  const axis = run.axis.value;
  const points = useMemo(() => curveOf(run, account), [run, account, length]);
  const max = account.limits?.maxTokens;
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
        <li class="quiet figures">at {sinceStart(moment.time, run.log.startedAt)}</li>
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
