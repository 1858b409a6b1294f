// The pages of a source: its runs, and its processes with their queues.
import { useState } from "preact/hooks";
import type { QueueRow, RunPage, RunRow } from "../feed/wire.ts";
import { type LimitUse, limitUses, shareOf } from "../run-model/limit-use.ts";
import type { Phase } from "../run-model/agent-moment.ts";
import { type FeedClient } from "./feed-client.ts";
import { usePolled } from "./asked.ts";
import {
  amountText,
  compact,
  costSum,
  costText,
  costTitle,
  dateTime,
  limitWord,
  milliseconds,
  plural,
  shortId,
} from "./format.ts";
import { Icon, LimitBar, PhaseIcon, phaseWords } from "./parts.tsx";
import { Costs, filterOf, wordsOfSpent } from "./costs-view.tsx";
import { addressOf, copyText, info, route } from "./page-state.ts";
import { Processes } from "./processes-view.tsx";
import { Origin, Stubbed } from "./fork-point.tsx";
import { Schedules } from "./schedules-view.tsx";
import { AskedTable, type Column } from "./tables.tsx";
import { NewTalk } from "./talk-view.tsx";
import { LongText, oneLine, plainText } from "./untrusted.tsx";

const REFRESH_MS = 2_000;
const PAGE = 50;
/** The costs page reads more runs at once, so it polls less often. */
const COSTS_REFRESH_MS = 10_000;
const COSTS_PAGE = 200;

const runColumns: readonly Column[] = [
  ["Run"],
  ["State"],
  ["Agents", true],
  ["Began"],
  ["Took", true],
  ["Tokens", true],
  ["Cost", true],
  ["Budget"],
  [<span class="visually-hidden">Compare</span>],
];

/** All runs of the source, the newest first, or their total costs. */
export function RunsView({ feed }: { readonly feed: FeedClient }) {
  const [text, setText] = useState("");
  const [status, setStatus] = useState("");
  const { page, spent } = route.value;
  const isCosts = page === "costs";
  const limit = isCosts ? COSTS_PAGE : PAGE;
  const filter = { text, status, ...(spent === null ? {} : filterOf(spent)) };
  const question = JSON.stringify([isCosts, filter]);
  const everyMs = isCosts ? COSTS_REFRESH_MS : REFRESH_MS;
  const asked = usePolled(() => feed.runs({ limit, ...filter }), question, everyMs);
  const { answer } = asked;
  /** Pages loaded with "More runs", with the page before them, because newer runs push runs off that page. */
  const [older, setOlder] = useState<RunPage & { readonly question: string }>();
  const kept = older?.question === question ? older : undefined;
  const newest = answer?.items ?? [];
  const shown = new Set(newest.map(({ runId }) => runId));
  const rows = [...newest, ...(kept?.items ?? []).filter(({ runId }) => !shown.has(runId))];
  // A fork is younger than its origin, so that the list has it first.
  const forks = Map.groupBy(rows, ({ origin }) => origin?.runId);
  const next = (kept ?? answer)?.next ?? null;
  const more = async (): Promise<void> => {
    if (next === null) return;
    const further = await feed.runs({ after: next, limit, ...filter });
    setOlder({ question, items: [...rows, ...further.items], next: further.next });
  };
  return (
    <main id="main" class="runs" tabIndex={-1}>
      <div class="view-bar">
        <h1>{isCosts ? "Costs" : "Runs"}</h1>
        <nav class="segments" aria-label="Runs or costs">
          {(["runs", "costs"] as const).map((one) => (
            <a key={one} href={addressOf({ page: one })} aria-current={one === page ? "page" : undefined}>
              {one}
            </a>
          ))}
        </nav>
        <label class="search-field">
          <Icon name="search" />
          <input
            type="search"
            placeholder="Filter runs"
            aria-label="Filter runs by id or name"
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </label>
        <label class="status-filter">
          <span class="visually-hidden">State</span>
          <select aria-label="State" value={status} onChange={({ currentTarget }) => setStatus(currentTarget.value)}>
            {statusFilters.map(([value, words]) => (
              <option key={value} value={value}>
                {words}
              </option>
            ))}
          </select>
        </label>
        {spent !== null && (
          <a class="tag" href={addressOf({ spent: null })}>
            {oneLine(wordsOfSpent(spent), 60)} ✕<span class="visually-hidden"> Show all again</span>
          </a>
        )}
        <span class="spacer" />
        {rows.length > 0 && <Sums rows={rows} isAll={next === null} />}
      </div>
      {!isCosts && <NewTalk />}
      {isCosts && rows.length > 0 ? (
        <Costs rows={rows} isAll={next === null} />
      ) : (
        <AskedTable
          asked={asked}
          rows={asked.answer && rows}
          what="the store"
          empty={text + status === "" && spent === null ? <FirstSteps /> : <p class="empty">No run fits the filter.</p>}
          columns={runColumns}
          line={(row) => <RunLine key={row.runId} row={row} forks={forks.get(row.runId)?.length ?? 0} />}
        />
      )}
      {next !== null && (
        <p>
          <button type="button" onClick={() => void more()}>
            More runs
          </button>
        </p>
      )}
    </main>
  );
}

/** Values for `status` of the feed's list, with their labels. */
const statusFilters = [
  ["", "All states"],
  ["open", "Running"],
  ["asking", "Waiting for a person"],
  ["completed", "Completed"],
  ["failed", "Failed"],
  ["stopped", "Stopped"],
] as const;

/** Totals of all listed runs. */
function Sums({ rows, isAll }: { readonly rows: readonly RunRow[]; readonly isAll: boolean }) {
  const sum = (of: (row: RunRow) => number): number => rows.reduce((total, row) => total + of(row), 0);
  const failed = rows.filter(({ turn }) => turn === "failed").length;
  const cost = costSum(rows);
  return (
    <p class="quiet figures run-sums" role="status" aria-label="Sums">
      {isAll ? "" : "newest "}
      {plural(rows.length, "run")}
      {failed > 0 && <span class="bad"> · {failed.toLocaleString("en")} failed</span>} ·{" "}
      {plural(
        sum((row) => row.agents),
        "agent",
      )}{" "}
      · {compact(sum(({ tokens }) => tokens))} tokens · <span title={costTitle(cost)}>{costText(cost)}</span>
    </p>
  );
}

const firstCommands = [
  ['npx troupe ask --question "How do budgets work?"', "a team answers from documents, with or without a key"],
  ['npx troupe run ./my-agent.ts "Go."', "one turn of an agent of your own"],
  ["npx troupe chat ./my-agent.ts", "a conversation with it"],
] as const;

/** Shown instead of the list before the first run. */
function FirstSteps() {
  return (
    <section class="empty first-steps" aria-label="First steps">
      <p>
        There is no run yet. The first turn of an agent shows up here. Commands to try, in the folder of this store:
      </p>
      <ul>
        {firstCommands.map(([command, what]) => (
          <li key={command}>
            <code>{command}</code>
            <button
              type="button"
              class="plain"
              aria-label={`Copy ${command}`}
              onClick={() => void copyText(command, "Command")}
            >
              <Icon name="copy" />
            </button>
            <span class="quiet">{what}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function RunLine({ row, forks }: { readonly row: RunRow; readonly forks: number }) {
  const phase = phaseOf(row);
  const [use] = row.accounts.flatMap((account) => limitUses(account, Date.now())).toSorted(byShare);
  return (
    <tr>
      <td>
        <a href={addressOf({ page: "run", runId: row.runId, at: null, agent: null })}>
          <b>{oneLine(row.name, 60)}</b> <code title={plainText(row.runId)}>{oneLine(shortId(row.runId), 40)}</code>
          {row.task !== "" && (
            <span class="run-task" title={plainText(row.task)}>
              {oneLine(row.task)}
            </span>
          )}
        </a>
        <Stubbed agent={row} />
        <Origin runId={row.runId} origin={row.origin} />
        {forks > 0 && (
          <a class="quiet" href={addressOf({ page: "run", runId: row.runId, at: null, agent: null, view: "forks" })}>
            {plural(forks, "fork")}
          </a>
        )}
      </td>
      <td>
        <span class={`pill ${phase}`}>
          <PhaseIcon phase={phase} />
          {phase === "asking" ? `${row.openRequests} open` : phaseWords[phase]}
        </span>{" "}
        {row.stopReason !== null && row.stopReason !== "completed" && <code class="quiet">{row.stopReason}</code>}
      </td>
      <td class="number figures">
        {row.agents.toLocaleString("en")}
        {row.failedAgents > 0 && <span class="bad"> · {row.failedAgents.toLocaleString("en")} failed</span>}
      </td>
      <td class="figures">{dateTime(row.createdAt)}</td>
      <td class="number figures">
        {isOpen(row) ? (
          <>
            {milliseconds(Date.now() - row.createdAt)} <span class="quiet">so far</span>
          </>
        ) : (
          milliseconds(row.lastActivity - row.createdAt)
        )}
      </td>
      <td class="number figures">{compact(row.tokens)}</td>
      <td class="number figures" title={costTitle(row)}>
        {costText(row)}
      </td>
      <td class="run-budget">
        {use ? (
          <>
            <LimitBar use={use} />
            <span class="quiet figures">
              {amountText(use.limit, use.used)} of {amountText(use.limit, use.max)} {limitWord(use.limit)}
            </span>
          </>
        ) : (
          <span class="quiet">no limit</span>
        )}
      </td>
      <td>
        <a class="quiet" href={addressOf({ page: "compare", runId: row.runId, otherId: "" })}>
          Compare<span class="visually-hidden"> {oneLine(row.runId, 60)} with another run</span>
        </a>
      </td>
    </tr>
  );
}

function byShare(one: LimitUse, other: LimitUse): number {
  return shareOf(other) - shareOf(one);
}

/** Time advances only while a process runs the agents. */
function isOpen({ status, owner, openRequests }: RunRow): boolean {
  if (owner === "dead" || owner === "silent") return false;
  return status === "busy" || openRequests > 0;
}

export function phaseOf({ status, owner, turn, stopReason, openRequests, turns }: RunRow): Phase {
  if (owner === "dead" || owner === "silent") return "lost";
  if (openRequests > 0) return "asking";
  if (status === "busy") return "thinking";
  if (turn === "failed") return "failed";
  if (status === "ready" && turns > 0) return stopReason === "completed" || stopReason === null ? "done" : "stopped";
  return status;
}

/** The processes that use the stores, their queues and the schedules. */
export function WorkersView({ feed }: { readonly feed: FeedClient }) {
  return (
    <main id="main" class="runs" tabIndex={-1}>
      <Processes feed={feed} />
      {info.value?.hasQueues === true && <Queues feed={feed} />}
      <Schedules feed={feed} />
    </main>
  );
}

const queueColumns: readonly Column[] = [
  ["Queue"],
  ["Workers", true],
  ["Waiting", true],
  ["Longest wait", true],
  ["Active", true],
  ["Longest run", true],
  ["Delayed", true],
  ["Dead", true],
];

/** The queues of a Redis: waiting jobs, workers and dead letters. */
function Queues({ feed }: { readonly feed: FeedClient }) {
  const asked = usePolled(() => feed.queues(), feed, REFRESH_MS);
  return (
    <section aria-labelledby="queues">
      <div class="view-bar">
        <h2 id="queues">Queues</h2>
      </div>
      <AskedTable
        asked={asked}
        rows={asked.answer === null ? [] : asked.answer}
        what="the queues"
        empty={<p class="empty">There is no queue here. Workers over Redis have them: see docs/distribution.md.</p>}
        columns={queueColumns}
        line={(row) => <QueueLine key={row.queue} row={row} />}
      />
    </section>
  );
}

function age(since: number | null): string {
  return since === null ? "–" : milliseconds(Math.max(0, Date.now() - since));
}

function QueueLine({ row }: { readonly row: QueueRow }) {
  const { queue, workers, waiting, waitingSince, active, activeSince, delayed, dead, deadLetters } = row;
  const isStuck = workers === 0 && waiting > 0;
  return (
    <>
      <tr>
        <td>
          <b>{oneLine(queue, 80)}</b> {isStuck && <span class="tag bad">no process works on it</span>}
        </td>
        {[workers, waiting, age(waitingSince), active, age(activeSince), delayed, dead].map((figure, index) => (
          <td key={index} class={figure === 0 || figure === "–" ? "number figures quiet" : "number figures"}>
            {figure.toLocaleString("en")}
          </td>
        ))}
      </tr>
      {deadLetters.length > 0 && (
        <tr>
          <td colSpan={8} class="dead-letters">
            <details>
              <summary>{plural(deadLetters.length, "dead letter")}, the newest first</summary>
              <ul>
                {deadLetters.map(({ jobId, of, at, code, message, deaths }) => (
                  <li key={jobId}>
                    <code>{plainText(of ?? jobId)}</code> <span class="quiet figures">{dateTime(at)}</span>{" "}
                    <code class="tag bad">{plainText(code)}</code> <span class="quiet">{plural(deaths, "death")}</span>
                    <LongText text={message} />
                  </li>
                ))}
              </ul>
            </details>
          </td>
        </tr>
      )}
    </>
  );
}
