import { useEffect, useState } from "preact/hooks";
import type { QueueRow } from "../feed/wire.ts";
import { type FeedClient, wordsOf } from "./feed-client.ts";
import { dateTime, plural } from "./format.ts";
import { LongText, oneLine, plainText } from "./untrusted.tsx";

const REFRESH_MS = 2_000;

/** The queues of a Redis: what waits, who works, what was given up. */
export function QueuesView({ feed }: { readonly feed: FeedClient }) {
  const [rows, setRows] = useState<readonly QueueRow[] | null | undefined>(undefined);
  const [failure, setFailure] = useState<string | null>(null);
  useEffect(() => {
    let isGone = false;
    const read = async (): Promise<void> => {
      try {
        const answer = await feed.queues();
        if (isGone) return;
        setRows(answer);
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
  }, [feed]);
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
