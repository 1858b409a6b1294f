// The report of `troupe eval`: its cases, what has changed since an earlier report, and the runs of a case.
import { signal } from "@preact/signals";
import type { EvalRun, Evals } from "../feed/wire.ts";
import { useAsked, usePolled } from "./asked.ts";
import type { FeedClient } from "./feed-client.ts";
import { compact, dateTime, dollars, milliseconds, percent, plural } from "./format.ts";
import { addressOf, go, route } from "./page-state.ts";
import { Check } from "./parts.tsx";
import { AskedTable, type Column, Table } from "./tables.tsx";
import { LongText, oneLine, plainText } from "./untrusted.tsx";

/** The report is read again, because evals may be repeated meanwhile. */
const REFRESH_MS = 5_000;

type EvalCase = Evals["cases"][number];
type Changes = NonNullable<EvalCase["changes"]>;

const columns: readonly Column[] = [
  ["Case"],
  ["Passed", true],
  ["Rate (95 %)", true],
  ["Cost", true],
  ["Tokens", true],
  ["Time", true],
];
const isNarrowed = signal(false);

export function EvalsView({ feed }: { readonly feed: FeedClient }) {
  const asked = usePolled(() => feed.evals(), feed, REFRESH_MS);
  const { answer } = asked;
  const shown = answer?.cases.filter((one) => !isNarrowed.value || isNotable(one));
  return (
    <main id="main" class="runs" tabIndex={-1}>
      <div class="view-bar">
        <h1>Evals</h1>
        <Check label="only failed, flaky or changed" of={isNarrowed} />
        <span class="spacer" />
        {answer && <Totals report={answer} />}
      </div>
      {answer?.errors.map((text, index) => (
        <div key={index} class="banner bad" role="alert">
          <b>An error outside of cases</b>
          <LongText text={text} />
        </div>
      ))}
      <AskedTable
        asked={asked}
        rows={answer === null ? [] : shown}
        what="the report"
        empty={
          <p class="empty">{answer ? "No case." : "There is no report of evals here: troupe inspect --evals FILE."}</p>
        }
        class="eval-table"
        label="Cases"
        columns={columns}
        line={(one) => <CaseLine key={one.key} feed={feed} one={one} report={answer} />}
      />
      {answer && <Notes report={answer} />}
    </main>
  );
}

function isNotable({ passed, runs, changes }: EvalCase): boolean {
  return passed < runs || (changes !== null && Object.values(changes).some((change) => change?.isSignificant));
}

function Totals({ report: { all, cases, isGoodEnough, minPass, createdAt } }: { readonly report: Evals }) {
  const flaky = cases.filter(({ isFlaky }) => isFlaky).length;
  return (
    <p class="quiet figures run-sums" role="status" aria-label="Sums">
      <span class={isGoodEnough ? "pill done" : "pill failed"}>
        {percent(all.passRate, 1)} passed{isGoodEnough ? "" : `, ${percent(minPass, 1)} needed`}
      </span>{" "}
      {plural(cases.length, "case")} · {plural(all.runs, "run")}
      {flaky > 0 && ` · ${flaky} flaky`} · {costOf(all.cost === null ? null : all.cost * all.runs)} ·{" "}
      {dateTime(createdAt)}
    </p>
  );
}

interface CaseProps {
  readonly feed: FeedClient;
  readonly one: EvalCase;
  readonly report: Evals | null | undefined;
}

function CaseLine({ feed, one, report }: CaseProps) {
  const { key, file, name, isFlaky, passed, runs, passRate, interval, cost, tokens, durationMs, changes } = one;
  const isOpen = route.value.evalCase === key;
  return (
    <>
      <tr>
        <td>
          <button
            type="button"
            class="link"
            aria-expanded={isOpen}
            title={plainText(key)}
            onClick={() => go({ evalCase: isOpen ? null : key })}
          >
            <b>{oneLine(name)}</b>
          </button>{" "}
          {isFlaky && <span class="tag">flaky</span>}
          {report?.compared?.added.includes(key) && <span class="tag">new</span>}
          <span class="run-task">{oneLine(file)}</span>
        </td>
        <td class={passed < runs ? "number figures bad" : "number figures"}>
          {passed} of {runs}
        </td>
        <td class="number figures">
          {percent(passRate, 1)}{" "}
          <span class="quiet">
            ({percent(interval.low, 1)} to {percent(interval.high, 1)})
          </span>
          <From changes={changes} of="passRate" text={(value) => percent(value, 1)} />
        </td>
        <td class="number figures">
          {costOf(cost)}
          <From changes={changes} of="cost" text={costOf} />
        </td>
        <td class="number figures">
          {tokensOf(tokens)}
          <From changes={changes} of="tokens" text={tokensOf} />
        </td>
        <td class="number figures">
          {milliseconds(durationMs)}
          <From changes={changes} of="durationMs" text={milliseconds} />
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={columns.length}>
            <Runs feed={feed} of={key} reportedAt={report?.createdAt} />
          </td>
        </tr>
      )}
    </>
  );
}

interface FromProps {
  readonly changes: Changes | null;
  readonly of: keyof Changes;
  readonly text: (value: number) => string;
}

/** The figure of the earlier report, marked if the change is significant. */
function From({ changes, of, text }: FromProps) {
  const change = changes?.[of];
  if (!change || text(change.before) === text(change.now)) return null;
  const { before, now, isSignificant } = change;
  const isWorse = of === "passRate" ? now < before : now > before;
  return (
    <span class={isSignificant ? `eval-from ${isWorse ? "bad" : "good"}` : "eval-from quiet"}>
      {isSignificant && <b>changed </b>}from {text(before)}
    </span>
  );
}

function Notes({ report: { compared, all, skipped } }: { readonly report: Evals }) {
  return (
    <section class="eval-notes" aria-label="About the report">
      {compared && (
        <p class="quiet">
          Compared with the report of {dateTime(compared.createdAt)}. <b>changed</b>: p &lt; 0.05, each figure by
          itself.{" "}
          {all.changes && (
            <>
              The cases of both passed {percent(all.changes.passRate.now, 1)}{" "}
              <From changes={all.changes} of="passRate" text={(value) => percent(value, 1)} />
            </>
          )}
        </p>
      )}
      <Names title="Only in the earlier report" keys={compared?.removed ?? []} />
      <Names title="Skipped" keys={skipped} />
    </section>
  );
}

function Names({ title, keys }: { readonly title: string; readonly keys: readonly string[] }) {
  if (keys.length === 0) return null;
  return (
    <details>
      <summary>
        {title}: {plural(keys.length, "case")}
      </summary>
      <ul>
        {keys.map((key) => (
          <li key={key}>{oneLine(key)}</li>
        ))}
      </ul>
    </details>
  );
}

const runColumns: readonly Column[] = [
  ["Run"],
  ["Result"],
  ["Cost", true],
  ["Tokens", true],
  ["Time", true],
  ["Agents"],
];

interface RunsProps {
  readonly feed: FeedClient;
  readonly of: string;
  readonly reportedAt: number | undefined;
}

function Runs({ feed, of: key, reportedAt }: RunsProps) {
  const asked = useAsked(() => feed.evalRuns(key), { on: [reportedAt], subject: key });
  if (!asked.answer)
    return asked.failure === null ? <p class="loading">Reading the runs …</p> : <p class="bad">{asked.failure}</p>;
  return (
    <Table class="eval-runs" label="Runs of the case" columns={runColumns}>
      {asked.answer.map((run) => (
        <RunLine key={run.run} run={run} />
      ))}
    </Table>
  );
}

function RunLine({ run: { run, passed, failure, cost, tokens, durationMs, agents } }: { readonly run: EvalRun }) {
  return (
    <>
      <tr>
        <td class="figures">{run}</td>
        <td>
          <span class={passed ? "pill done" : "pill failed"}>{passed ? "passed" : "failed"}</span>
        </td>
        <td class="number figures">{costOf(cost)}</td>
        <td class="number figures">{tokensOf(tokens)}</td>
        <td class="number figures">{milliseconds(durationMs)}</td>
        <td>
          {agents.map(({ kind, agentId, agentName, isStored }) => (
            <span key={agentId} class="held-agent">
              {isStored ? (
                <a href={addressOf({ page: "run", runId: agentId, at: null, agent: null })}>{oneLine(agentName, 40)}</a>
              ) : (
                oneLine(agentName, 40)
              )}{" "}
              {kind !== "case" && <span class="quiet">{kind} </span>}
              <code class="id">{oneLine(agentId, 40)}</code>
            </span>
          ))}
        </td>
      </tr>
      {failure !== null && failure !== "" && (
        <tr>
          <td colSpan={runColumns.length}>
            <LongText text={failure} isCode />
          </td>
        </tr>
      )}
    </>
  );
}

/** `dollars`: `null` if a price is unknown. */
function costOf(cost: number | null): string {
  return cost === null ? "no price" : dollars(cost * 1_000_000);
}

function tokensOf(tokens: number): string {
  return compact(Math.round(tokens));
}
