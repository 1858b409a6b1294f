import { useEffect, useState } from "preact/hooks";
import type { RunRow } from "../feed/wire.ts";
import type { Phase } from "../run-model/agent-moment.ts";
import { type FeedClient, wordsOf } from "./feed-client.ts";
import { compact, dateTime, dollars, milliseconds, shortId } from "./format.ts";
import { Icon, PhaseIcon, phaseWords } from "./icons.tsx";
import { NewTalk } from "./new-talk.tsx";
import { addressOf } from "./route.ts";
import { oneLine, plainText } from "./untrusted.tsx";

const REFRESH_MS = 2_000;
const PAGE = 50;
/** The server gives at most these at once. */
const MOST_ROWS = 100;

/** All runs of the source, the newest first. */
export function RunsView({ feed }: { readonly feed: FeedClient }) {
  const [text, setText] = useState("");
  const [rows, setRows] = useState<readonly RunRow[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  useEffect(() => {
    let isGone = false;
    const read = async (): Promise<void> => {
      try {
        const page = await feed.runs({
          limit: Math.min(MOST_ROWS, Math.max(PAGE, rows?.length ?? 0)),
          ...(text === "" ? {} : { text }),
        });
        if (isGone) return;
        setRows(page.items);
        setNext(page.next);
        setFailure(null);
      } catch (error) {
        if (!isGone) setFailure(wordsOf(error));
      }
    };
    void read();
    const timer = setInterval(() => void read(), REFRESH_MS);
    return () => {
      isGone = true;
      clearInterval(timer);
    };
  }, [feed, text]);
  const more = async (): Promise<void> => {
    if (next === null) return;
    const page = await feed.runs({ after: next, limit: PAGE, ...(text === "" ? {} : { text }) });
    setRows([...(rows ?? []), ...page.items]);
    setNext(page.next);
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
      {rows === null ? (
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
      <td class="number figures">{milliseconds(row.lastActivity - row.createdAt)}</td>
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

function phaseOf({ status, stopReason, openRequests, turns }: RunRow): Phase {
  if (openRequests > 0) return "asking";
  if (status === "busy") return "thinking";
  if (status === "ready" && turns > 0) return stopReason === "completed" || stopReason === null ? "done" : "stopped";
  return status;
}
