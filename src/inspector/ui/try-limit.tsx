import { useRef, useState } from "preact/hooks";
import type { AccountAt } from "../run-model/account-at.ts";
import { usesOf } from "../run-model/agent-budget.ts";
import { type LimitName, limitNames } from "../run-model/limit-use.ts";
import type { SupposedEnd, SupposedRun } from "../run-model/supposed-limit.ts";
import { accountWords, agentWords } from "./account-words.ts";
import { amountText, limitWord, sinceStart } from "./format.ts";
import { selectAgent } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";

interface TryProps {
  readonly run: RunSession;
  readonly account: AccountAt;
}

/** A form to try another limit for the account. Shows where the run would have ended under it. */
export function TryLimit({ run, account }: TryProps) {
  const names = limitNames.filter((name) => account.limits[name] !== undefined);
  const [chosen, choose] = useState<LimitName | null>(null);
  const tried = run.supposing.limit.value;
  const isTried = tried?.accountId === account.id;
  const limit = (isTried ? tried.limit : names.find((name) => name === chosen)) ?? foremostOf(names);
  if (limit === undefined) return null;
  const real = account.limits[limit] ?? 0;
  const max = isTried ? tried.max : real;
  const attempt = (value: number): void => run.supposing.try({ accountId: account.id, limit, max: value });
  return (
    <section class="try-limit" aria-label="Try another limit">
      <h3>Where would it have ended with another limit?</h3>
      <LimitFields
        key={limit}
        run={run}
        account={account}
        {...{ limit, names, real, max, attempt }}
        onChoose={(name) => {
          choose(name);
          run.supposing.try(null);
        }}
      />
      {isTried && <Outcome run={run} limit={limit} max={max} />}
    </section>
  );
}

/** Tokens and cost come first, because people check them first. */
function foremostOf(names: readonly LimitName[]): LimitName | undefined {
  return (["maxTokens", "maxCostMicros"] as const).find((name) => names.includes(name)) ?? names[0];
}

/** Display units of a limit: their factor, and from which value on they are used. */
interface Scale {
  readonly unit: string;
  readonly per: number;
  readonly from: number;
}

function scaleOf(limit: LimitName, { openedAt }: AccountAt): Scale {
  if (limit === "maxCostMicros") return { unit: "dollars", per: 1_000_000, from: 0 };
  if (limit === "maxActiveMs") return { unit: "seconds of work", per: 1_000, from: 0 };
  if (limit === "deadlineAt") return { unit: "seconds from the start", per: 1_000, from: openedAt };
  return { unit: limitWord(limit), per: 1, from: 0 };
}

interface FieldsProps extends TryProps {
  readonly limit: LimitName;
  readonly names: readonly LimitName[];
  readonly real: number;
  readonly max: number;
  readonly attempt: (max: number) => void;
  readonly onChoose: (limit: LimitName) => void;
}

function LimitFields({ run, account, limit, names, real, max, attempt, onChoose }: FieldsProps) {
  const { unit, per, from } = scaleOf(limit, account);
  const isTried = run.supposing.limit.value?.accountId === account.id;
  const slide = useRef<Slide | null>(null);
  /** The text being typed, because the clock of a live run renders the field anew. */
  const [typed, setTyped] = useState<string | null>(null);
  // While a limit is tried, new use does not move the slider.
  if (!isTried || !slide.current) {
    const newest = run.moments.at(run.length.value).accounts.account(account.id) ?? account;
    const use = usesOf(newest, run.present.value).find((one) => one.limit === limit);
    slide.current = slideOf(real - from, use?.used ?? 0);
  }
  const { top, step } = slide.current;
  return (
    <>
      <div class="try-fields">
        {names.length > 1 && (
          <select
            aria-label="Limit"
            value={limit}
            onChange={({ currentTarget }) => {
              const name = names.find((one) => one === currentTarget.value);
              if (name) onChoose(name);
            }}
          >
            {names.map((name) => (
              <option key={name} value={name}>
                {limitWord(name)}
              </option>
            ))}
          </select>
        )}
        <label>
          <input
            type="number"
            class="figures"
            min={0}
            step={step / per}
            value={typed ?? (max - from) / per}
            onInput={({ currentTarget }) => setTyped(currentTarget.value)}
            onChange={({ currentTarget }) => {
              setTyped(null);
              const value = Math.round(Number(currentTarget.value) * per) + from;
              if (currentTarget.value !== "" && Number.isSafeInteger(value) && value >= from) attempt(value);
            }}
          />{" "}
          {unit}
        </label>
      </div>
      <input
        type="range"
        aria-label={`Limit to try, in ${unit}`}
        aria-valuetext={`${(max - from) / per} ${unit}`}
        min={0}
        max={top}
        step={step}
        value={max - from}
        onInput={({ currentTarget }) => attempt(Number(currentTarget.value) + from)}
      />
      <p class="try-real quiet figures">
        really {limitText(limit, real, run)}
        {isTried && (
          <button type="button" class="link" onClick={() => run.supposing.try(null)}>
            Back to it
          </button>
        )}
      </p>
    </>
  );
}

interface Slide {
  readonly top: number;
  readonly step: number;
}

/** A limit far above the use would leave little room on the slider. */
function slideOf(real: number, used: number): Slide {
  const most = used > 0 && real > used * 4 ? used * 2 : Math.max(real, used) * 1.25;
  const fine = Math.max(1, most / 200);
  const power = 10 ** Math.floor(Math.log10(fine));
  const step = ([1, 2, 5, 10].find((one) => one * power >= fine) ?? 10) * power;
  return { top: Math.max(1, Math.ceil(most / step)) * step, step };
}

function limitText(limit: LimitName, max: number, run: RunSession): string {
  if (limit === "deadlineAt") return `a deadline at ${sinceStart(max, run.log.startedAt)}`;
  return `${amountText(limit, max)} ${limit === "maxCostMicros" ? "" : limitWord(limit)}`.trim();
}

interface OutcomeProps {
  readonly run: RunSession;
  readonly limit: LimitName;
  readonly max: number;
}

function Outcome({ run, limit, max }: OutcomeProps) {
  const outcome = run.supposing.outcome.value;
  if (!outcome) return <output class="note">Reading the journal …</output>;
  const { end, turnsOff } = outcome;
  const isAbout = turnsOff !== null && (end === null || turnsOff.count < end.count);
  return (
    <output class={end ? "note bad" : "note good"}>
      <p>
        With {limitText(limit, max, run)} {end ? <End run={run} limit={limit} end={end} /> : fits(outcome, limit)}
      </p>
      {isAbout && (
        <p>
          From {sinceStart(turnsOff.time, run.log.startedAt)} on this is an estimate: {turnWords[turnsOff.why]}
        </p>
      )}
      {end && (
        <button
          type="button"
          onClick={() => {
            run.player.pause();
            run.pin(end.count);
            selectAgent(end.agentId);
          }}
        >
          Go to the moment
        </button>
      )}
    </output>
  );
}

function fits({ most }: SupposedRun, limit: LimitName): string {
  if (limit === "deadlineAt") return "nothing of the run so far would have been cut off.";
  return `all of the run so far would have fitted: at most ${amountText(limit, most)} were used and reserved at once.`;
}

const turnWords: Readonly<Record<NonNullable<SupposedRun["turnsOff"]>["why"], string>> = {
  waits: "there a call would have waited for what others had reserved.",
  shorter: "there an answer was longer than it would have been allowed to be.",
  sooner: "there a call waited that would have had room.",
  longer: "there an answer was allowed less than it would have been.",
};

function End({ run, limit, end }: { readonly run: RunSession; readonly limit: LimitName; readonly end: SupposedEnd }) {
  const { kind, agentId, turnId, step, time, used, max, needed, accountId } = end;
  const turn = turnId === null ? "" : `, turn ${turnId.slice(turnId.lastIndexOf("#") + 1)}`;
  const place = `${turn}${step === null ? "" : `, step ${step}`}`;
  const who = (
    <>
      <b>{agentWords(run, agentId)}</b>
      {place}, at <b class="figures">{sinceStart(time, run.log.startedAt)}</b>
    </>
  );
  const left = Math.max(0, max - used);
  switch (kind) {
    case "refused":
      return (
        <>
          the first call to be refused would have been that of {who}:{" "}
          {needed === null ? "" : `${amountText(limit, needed)} needed, `}
          {amountText(limit, left)} left on {accountWords(run, accountId)}
          {needed !== null && `, ${amountText(limit, needed - left)} too few`}.
        </>
      );
    case "time":
      return <>the work would have been cut off: {who}.</>;
    case "last":
      return <>the last call, asked for a final answer, would have been that of {who}.</>;
    default:
      return (
        <>
          it would have continued after {who}, where the real limit of {limitText(limit, max, run)} ended it. The
          journal does not show how.
        </>
      );
  }
}
