// The pages of a whole source: its runs, and its processes with their queues.
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
import { addressOf, copyText, info } from "./page-state.ts";
import { Processes } from "./processes-view.tsx";
import { NewTalk } from "./talk-view.tsx";
import { LongText, oneLine, plainText } from "./untrusted.tsx";

const REFRESH_MS = 2_000;
const PAGE = 50;
/** All runs of the source, the newest first. */
export function RunsView({ feed }: { readonly feed: FeedClient }) {
  const [text, setText] = useState("");
  const [status, setStatus] = useState("");
  const filter = { ...(text === "" ? {} : { text }), ...(status === "" ? {} : { status }) };
  const question = `${status} ${text}`;
  const { answer, failure } = usePolled(() => feed.runs({ limit: PAGE, ...filter }), question, REFRESH_MS);
  /** What "More runs" has brought, with the page before it: newer runs push others off that page. */
  const [older, setOlder] = useState<RunPage & { readonly question: string }>();
  const kept = older?.question === question ? older : undefined;
  const newest = answer?.items ?? [];
  const shown = new Set(newest.map(({ runId }) => runId));
  const rows = [...newest, ...(kept?.items ?? []).filter(({ runId }) => !shown.has(runId))];
  const next = (kept ?? answer)?.next ?? null;
  const more = async (): Promise<void> => {
    if (next === null) return;
    const page = await feed.runs({ after: next, limit: PAGE, ...filter });
    setOlder({ question, items: [...rows, ...page.items], next: page.next });
  };
  return (
    <main id="main" class="runs" tabIndex={-1}>
      <div class="view-bar">
        <h1>Runs</h1>
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
        <span class="spacer" />
        {rows.length > 0 && <Sums rows={rows} isAll={next === null} />}
      </div>
      <NewTalk />
      {failure !== null && (
        <p class="banner" role="alert">
          {failure}
        </p>
      )}
      {answer === undefined ? (
        <p class="empty loading">Reading the store …</p>
      ) : rows.length === 0 ? (
        question === " " ? (
          <FirstSteps />
        ) : (
          <p class="empty">No run fits the filter.</p>
        )
      ) : (
        <table class="run-table">
          <thead>
            <tr>
              <th scope="col">Run</th>
              <th scope="col">State</th>
              <th scope="col" class="number">
                Agents
              </th>
              <th scope="col">Began</th>
              <th scope="col" class="number">
                Took
              </th>
              <th scope="col" class="number">
                Tokens
              </th>
              <th scope="col" class="number">
                Cost
              </th>
              <th scope="col">Budget</th>
              <th scope="col">
                <span class="visually-hidden">Compare</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <RunLine key={row.runId} row={row} />
            ))}
          </tbody>
        </table>
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

/** What `status` of the feed's list takes, and how it is called here. */
const statusFilters = [
  ["", "All states"],
  ["open", "Running"],
  ["asking", "Waiting for a person"],
  ["completed", "Completed"],
  ["failed", "Failed"],
  ["stopped", "Stopped"],
] as const;

/** Of all runs that are listed. */
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

/** The list before the first run. */
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

function RunLine({ row }: { readonly row: RunRow }) {
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

/** Time goes on only where a process does. */
function isOpen({ status, owner, openRequests }: RunRow): boolean {
  if (owner === "dead" || owner === "silent") return false;
  return status === "busy" || openRequests > 0;
}

function phaseOf({ status, owner, turn, stopReason, openRequests, turns }: RunRow): Phase {
  if (owner === "dead" || owner === "silent") return "lost";
  if (openRequests > 0) return "asking";
  if (status === "busy") return "thinking";
  if (turn === "failed") return "failed";
  if (status === "ready" && turns > 0) return stopReason === "completed" || stopReason === null ? "done" : "stopped";
  return status;
}

/** The processes that work in the stores, and their queues. */
export function WorkersView({ feed }: { readonly feed: FeedClient }) {
  return (
    <main id="main" class="runs" tabIndex={-1}>
      <Processes feed={feed} />
      {info.value?.hasQueues === true && <Queues feed={feed} />}
    </main>
  );
}

/** The queues of a Redis: what waits, who works, what was given up. */
function Queues({ feed }: { readonly feed: FeedClient }) {
  const { answer: rows, failure } = usePolled(() => feed.queues(), feed, REFRESH_MS);
  return (
    <section aria-labelledby="queues">
      <div class="view-bar">
        <h2 id="queues">Queues</h2>
      </div>
      {failure !== null && (
        <p class="banner" role="alert">
          {failure}
        </p>
      )}
      {rows === undefined ? (
        <p class="empty loading">Reading the queues …</p>
      ) : rows === null || rows.length === 0 ? (
        <p class="empty">There is no queue here. Workers over Redis have them: see docs/distribution.md.</p>
      ) : (
        <table class="run-table">
          <thead>
            <tr>
              {["Queue", "Workers", "Waiting", "Longest wait", "Active", "Longest run", "Delayed", "Dead"].map(
                (name, index) => (
                  <th key={name} scope="col" class={index === 0 ? "" : "number"}>
                    {name}
                  </th>
                ),
              )}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <QueueLine key={row.queue} row={row} />
            ))}
          </tbody>
        </table>
      )}
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
          <b>{oneLine(queue, 80)}</b> {isStuck && <span class="tag bad">nobody works on it</span>}
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
