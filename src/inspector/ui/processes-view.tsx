import type { ProcessRow } from "../feed/wire.ts";
import { usePolled } from "./asked.ts";
import type { FeedClient } from "./feed-client.ts";
import { dateTime, milliseconds, plural, shortId } from "./format.ts";
import { addressOf } from "./page-state.ts";
import { AskedTable } from "./tables.tsx";
import { oneLine, plainText } from "./untrusted.tsx";

const REFRESH_MS = 2_000;
/** Most agents of a process that are linked. */
const MOST_LINKS = 8;

/** The processes that use the stores: host, start time, state and agents. */
export function Processes({ feed }: { readonly feed: FeedClient }) {
  const asked = usePolled(() => feed.processes(), feed, REFRESH_MS);
  return (
    <section aria-labelledby="processes">
      <div class="view-bar">
        <h1 id="processes">Processes</h1>
      </div>
      <AskedTable
        asked={asked}
        rows={asked.answer}
        what="the processes"
        empty={<p class="empty">No process works in these stores.</p>}
        class="process-table"
        columns={[["Process"], ["State"], ["Machine"], ["Started"], ["Last sign of life"], ["Runs"]]}
        line={(row) => <ProcessLine key={row.processId} row={row} />}
      />
    </section>
  );
}

function ProcessLine({ row }: { readonly row: ProcessRow }) {
  const { processId, pid, host, isHere, startedAt, seenAt, agents } = row;
  const [words, tone] = stateOf(row);
  const shown = agents.slice(0, MOST_LINKS);
  return (
    <tr>
      <td>
        <b class="figures">{pid}</b>{" "}
        <code class="id" title={plainText(processId)}>
          {oneLine(shortId(processId), 20)}
        </code>
      </td>
      <td>
        <span class={`pill ${tone}`}>{words}</span>
      </td>
      <td>
        {host === null ? <span class="quiet">not known</span> : oneLine(host, 40)}
        {isHere && <span class="quiet"> (this one)</span>}
      </td>
      <td class="figures">{startedAt === null ? <span class="quiet">not known</span> : dateTime(startedAt)}</td>
      <td class="figures">{milliseconds(Math.max(0, Date.now() - seenAt))} ago</td>
      <td>
        {agents.length === 0 && <span class="quiet">nothing</span>}
        {shown.map(({ runId, agentId, name }) => (
          <a key={agentId} class="held-agent" href={addressOf({ page: "run", runId, at: null, agent: agentId })}>
            {oneLine(name, 40)} <code>{shortId(agentId)}</code>
          </a>
        ))}
        {agents.length > shown.length && (
          <span class="quiet">and {plural(agents.length - shown.length, "other agent", "other agents")}</span>
        )}
      </td>
    </tr>
  );
}

/** An idle process writes one heartbeat an hour. */
function stateOf({ state, isHere, agents }: ProcessRow): readonly [string, string] {
  if (state === "alive") return ["alive", "done"];
  if (state === "dead") return ["dead", "lost"];
  if (agents.length > 0) return ["no heartbeat", "lost"];
  return [isHere ? "at rest" : "at rest or gone", "ready"];
}
