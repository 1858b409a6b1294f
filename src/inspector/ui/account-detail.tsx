import { useMemo } from "preact/hooks";
import type { StoredAccounts } from "../feed/wire.ts";
import { type AccountAt, scopeOf } from "../run-model/account-at.ts";
import type { CurvePoint } from "../run-model/account-curve.ts";
import { limitUses } from "../run-model/limit-use.ts";
import type { RunMoment } from "../run-model/run-moments.ts";
import { accountWords } from "./account-words.ts";
import { useSize } from "./canvas.ts";
import { amountText, compact, dollars, limitWord, plural, shortId, sinceStart } from "./format.ts";
import { selectAgent } from "./page-state.ts";
import { LimitBar } from "./parts.tsx";
import type { RunSession } from "./run-session.ts";
import { TryLimit } from "./try-limit.tsx";
import { oneLine, plainText } from "./untrusted.tsx";

interface DetailProps {
  readonly run: RunSession;
  readonly account: AccountAt;
  readonly stored: StoredAccounts | undefined;
  /** The accounts to choose from: the selected agent's own account and its ancestors. */
  readonly choices: readonly AccountAt[];
  readonly onChoose: (accountId: string) => void;
}

/** One account at the moment: its limits, its use and reservations over time, and a form to try another limit. */
export function AccountDetail({ run, account, stored, choices, onChoose }: DetailProps) {
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
      {choices.length > 1 && (
        <select
          class="account-choice"
          aria-label="Account"
          value={account.id}
          onChange={({ currentTarget }) => onChoose(currentTarget.value)}
        >
          {choices.map(({ id }) => (
            <option key={id} value={id}>
              {accountWords(run, id)}
            </option>
          ))}
        </select>
      )}
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
      <TryLimit key={account.id} run={run} account={account} />
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

/** Shows whether the account folded from the journal equals the stored account. */
function Agreement({ run, account, stored }: Pick<DetailProps, "run" | "account" | "stored">) {
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

/** Whether the account is the other account or below it. */
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
  // A limit far above the curve would flatten it.
  const showsLimit = max !== undefined && max <= highest * 4;
  const top = Math.max(1, showsLimit ? max : 0, highest) * 1.06;
  const width = Math.max(1, size.width);
  const x = (time: number): number => (axis.positionOf(time) / axis.length) * width;
  const y = (amount: number): number => CURVE_HEIGHT - (amount / top) * CURVE_HEIGHT;
  const moment = run.moment.value;
  const end = run.supposing.outcome.value?.end;
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
          {end && end.accountId === account.id && (
            <line class="curve-limit" x1={x(end.time)} x2={x(end.time)} y1={0} y2={CURVE_HEIGHT} />
          )}
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

/** A step curve with the area below it; at most two points per pixel. */
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
