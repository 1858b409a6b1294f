import type { ScheduleRow } from "../feed/wire.ts";
import { usePolled } from "./asked.ts";
import type { FeedClient } from "./feed-client.ts";
import { dateTime } from "./format.ts";
import { addressOf } from "./page-state.ts";
import { AskedTable } from "./tables.tsx";
import { oneLine } from "./untrusted.tsx";

const REFRESH_MS = 5_000;

/** The schedules of the stores, with their next times and last runs. */
export function Schedules({ feed }: { readonly feed: FeedClient }) {
  const asked = usePolled(() => feed.schedules(), feed, REFRESH_MS);
  if (asked.answer?.length === 0) return null;
  return (
    <section aria-labelledby="schedules">
      <div class="view-bar">
        <h2 id="schedules">Schedules</h2>
      </div>
      <AskedTable
        label="Schedules"
        class="process-table"
        asked={asked}
        rows={asked.answer}
        what="the schedules"
        empty={null}
        columns={[["Schedule"], ["Agent"], ["Times"], ["Next"], ["Runs", true], ["Missed", true], ["Last runs"]]}
        line={(row) => <ScheduleLine key={row.key} row={row} />}
      />
    </section>
  );
}

function ScheduleLine({ row }: { readonly row: ScheduleRow }) {
  const { key, name, times, nextAt, isPaused, counts, runs } = row;
  return (
    <tr>
      <td>{oneLine(key, 40)}</td>
      <td>{oneLine(name, 40)}</td>
      <td>{oneLine(times, 60)}</td>
      <td class="figures">{isPaused ? "paused" : nextAt === null ? "ended" : dateTime(nextAt)}</td>
      <td class="figures number">{counts.opened}</td>
      <td class="figures number">{counts.missed + counts.busy + counts.failed}</td>
      <td>
        {runs.map(({ at, outcome, runId }) =>
          runId === null || outcome !== "opened" ? (
            <span key={at} class="held-agent quiet" title={dateTime(at)}>
              {outcome}
            </span>
          ) : (
            <a key={at} class="held-agent" href={addressOf({ page: "run", runId, at: null, agent: null })}>
              {dateTime(at)}
            </a>
          ),
        )}
      </td>
    </tr>
  );
}
