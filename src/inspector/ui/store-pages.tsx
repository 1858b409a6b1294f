// The pages of a whole source: its runs, and its queues.
import { useState } from "preact/hooks";
import type { QueueRow, RunPage, RunRow } from "../feed/wire.ts";
import type { Phase } from "../run-model/agent-moment.ts";
import { type FeedClient } from "./feed-client.ts";
import { usePolled } from "./asked.ts";
import { compact, dateTime, dollars, milliseconds, plural, shortId } from "./format.ts";
import { Icon, PhaseIcon, phaseWords } from "./parts.tsx";
import { addressOf } from "./page-state.ts";
import { NewTalk } from "./talk-view.tsx";
import { LongText, oneLine, plainText } from "./untrusted.tsx";

const REFRESH_MS = 2_000;
const PAGE = 50;
/** All runs of the source, the newest first. */
export function RunsView({ feed }: { readonly feed: FeedClient }) {
  const [text, setText] = useState("");
  const filter = text === "" ? {} : { text };
  const { answer, failure } = usePolled(() => feed.runs({ limit: PAGE, ...filter }), text, REFRESH_MS);
  /** What "More runs" has brought, with the page before it: newer runs push others off that page. */
  const [older, setOlder] = useState<RunPage & { readonly text: string }>();
  const kept = older?.text === text ? older : undefined;
  const newest = answer?.items ?? [];
  const shown = new Set(newest.map(({ runId }) => runId));
  const rows = [...newest, ...(kept?.items ?? []).filter(({ runId }) => !shown.has(runId))];
  const next = (kept ?? answer)?.next ?? null;
  const more = async (): Promise<void> => {
    if (next === null) return;
    const page = await feed.runs({ after: next, limit: PAGE, ...filter });
    setOlder({ text, items: [...rows, ...page.items], next: page.next });
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
        <p class="empty">
          {text === "" ? "There is no run yet. The first turn of an agent shows up here." : "No run fits the filter."}
        </p>
      ) : (
        <table class="run-table">
          <thead>
            <tr>
              <th scope="col">Run</th>
              <th scope="col">State</th>
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

function RunLine({ row }: { readonly row: RunRow }) {
  const phase = phaseOf(row);
  return (
    <tr>
      <td>
        <a href={addressOf({ page: "run", runId: row.runId, at: null, agent: null })}>
          <b>{oneLine(row.name, 60)}</b> <code title={plainText(row.runId)}>{oneLine(shortId(row.runId), 40)}</code>
        </a>
      </td>
      <td>
        <span class={`pill ${phase}`}>
          <PhaseIcon phase={phase} />
          {row.openRequests > 0 ? `${row.openRequests} open` : phaseWords[phase]}
        </span>{" "}
        {row.stopReason !== null && row.stopReason !== "completed" && <code class="quiet">{row.stopReason}</code>}
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
      <td class="number figures">{dollars(row.costMicros)}</td>
      <td>
        <a class="quiet" href={addressOf({ page: "compare", runId: row.runId, otherId: "" })}>
          Compare<span class="visually-hidden"> {oneLine(row.runId, 60)} with another run</span>
        </a>
      </td>
    </tr>
  );
}

function isOpen({ status, openRequests }: RunRow): boolean {
  return status === "busy" || openRequests > 0;
}

function phaseOf({ status, stopReason, openRequests, turns }: RunRow): Phase {
  if (openRequests > 0) return "asking";
  if (status === "busy") return "thinking";
  if (status === "ready" && turns > 0) return stopReason === "completed" || stopReason === null ? "done" : "stopped";
  return status;
}

/** The queues of a Redis: what waits, who works, what was given up. */
export function QueuesView({ feed }: { readonly feed: FeedClient }) {
  const { answer: rows, failure } = usePolled(() => feed.queues(), feed, REFRESH_MS);
  return (
    <main id="main" class="runs" tabIndex={-1}>
      <div class="view-bar">
        <h1>Queues</h1>
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
              {["Queue", "Workers", "Waiting", "Active", "Delayed", "Dead"].map((name, index) => (
                <th key={name} scope="col" class={index === 0 ? "" : "number"}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <QueueLine key={row.queue} row={row} />
            ))}
          </tbody>
        </table>
      )}
    </main>
  );
}

function QueueLine({ row }: { readonly row: QueueRow }) {
  const { queue, workers, waiting, active, delayed, dead, deadLetters } = row;
  const isStuck = workers === 0 && waiting > 0;
  return (
    <>
      <tr>
        <td>
          <b>{oneLine(queue, 80)}</b> {isStuck && <span class="tag bad">nobody works on it</span>}
        </td>
        {[workers, waiting, active, delayed, dead].map((count, index) => (
          <td key={index} class={count > 0 ? "number figures" : "number figures quiet"}>
            {count.toLocaleString("en")}
          </td>
        ))}
      </tr>
      {deadLetters.length > 0 && (
        <tr>
          <td colSpan={6} class="dead-letters">
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
