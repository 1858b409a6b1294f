import type { RunForks, RunRow } from "../feed/wire.ts";
import { usePolled } from "./asked.ts";
import { ForkForm } from "./fork-form.tsx";
import { addressOfPoint, Origin, pointWords } from "./fork-point.tsx";
import { compact, costText, shortId } from "./format.ts";
import { acts, addressOf, go, info, route } from "./page-state.ts";
import { PhaseIcon, phaseWords } from "./parts.tsx";
import { Replay } from "./replay-part.tsx";
import type { RunSession } from "./run-session.ts";
import { phaseOf } from "./store-pages.tsx";
import { oneLine, plainText } from "./untrusted.tsx";

const REFRESH_MS = 3_000;

/** The forks of the run and its origins, a form for another fork, and the replay. */
export function ForksView({ run }: { readonly run: RunSession }) {
  const { answer, failure } = usePolled(() => run.client.forks(run.runId), run.runId, REFRESH_MS);
  if (failure !== null && !answer) return <p class="empty">{plainText(failure)}</p>;
  if (!answer) return <p class="empty loading">Reading the forks …</p>;
  const why = whyNot(answer);
  return (
    <div class="forks" tabIndex={0} role="region" aria-label="Forks and replay">
      <section aria-labelledby="fork-from">
        <h2 id="fork-from">Fork this run</h2>
        {why === null ? (
          <NewFork run={run} forks={answer} />
        ) : (
          <p class="note">
            {why} {command("fork", run.runId, " --at TURN:STEP")}
          </p>
        )}
      </section>
      <section aria-labelledby="replay">
        <h2 id="replay">Replay</h2>
        {why === null ? (
          <Replay run={run} />
        ) : (
          <p class="note">
            {why} {command("replay", run.runId, " --agents FILE")}
          </p>
        )}
      </section>
      <section aria-labelledby="family">
        <h2 id="family">Origin and forks</h2>
        <Family rows={answer.family} runId={run.runId} />
        {!answer.isWhole && <p class="quiet">There may be more: only the newest runs of the store were searched.</p>}
      </section>
    </div>
  );
}

function command(name: string, runId: string, rest: string) {
  return (
    <code>
      npx troupe {name} {plainText(runId)}
      {rest}
    </code>
  );
}

/** Why the page can neither fork nor replay the run; `null` if it can. */
function whyNot({ models }: RunForks): string | null {
  if (info.value?.source === "file") return "This page shows a file. A command forks and replays the run in its store:";
  if (models === null) {
    return "Only the process that runs agents has their definitions, and it does not serve this page. Use a command:";
  }
  if (acts.value) return null;
  return "This link may only watch. Open the address for acting, or use a command:";
}

function NewFork({ run, forks: { points, models } }: { readonly run: RunSession; readonly forks: RunForks }) {
  const wanted = route.value.fork;
  const point = wanted === null ? points.at(-1) : points.find((one) => addressOfPoint(one) === wanted);
  if (points.length === 0) return <p class="quiet">No step has begun yet.</p>;
  return (
    <>
      <label class="fork-point">
        Begin{" "}
        <select
          aria-label="Point of the fork"
          value={point ? addressOfPoint(point) : ""}
          onChange={({ currentTarget }) => go({ fork: currentTarget.value })}
        >
          {!point && <option value="">no such point: {oneLine(wanted ?? "", 20)}</option>}
          {points.map((one) => (
            <option key={addressOfPoint(one)} value={addressOfPoint(one)}>
              {pointWords(one)}
            </option>
          ))}
        </select>
      </label>
      {point && <ForkForm key={addressOfPoint(point)} run={run} point={point} models={models ?? []} />}
    </>
  );
}

/** The runs of a family, each above its forks. */
function Family({ rows, runId }: { readonly rows: readonly RunRow[]; readonly runId: string }) {
  const ids = new Set(rows.map((row) => row.runId));
  const below = Map.groupBy(rows, ({ origin }) => (origin && ids.has(origin.runId) ? origin.runId : ""));
  return <Branch rows={below.get("") ?? []} below={below} runId={runId} />;
}

interface BranchProps {
  readonly rows: readonly RunRow[];
  readonly below: ReadonlyMap<string, readonly RunRow[]>;
  readonly runId: string;
}

function Branch({ rows, below, runId }: BranchProps) {
  return (
    <ul class="plain-list family">
      {rows.map((row) => {
        const forks = below.get(row.runId) ?? [];
        return (
          <li key={row.runId}>
            <FamilyRow row={row} isThis={row.runId === runId} />
            {forks.length > 0 && <Branch rows={forks} below={below} runId={runId} />}
          </li>
        );
      })}
    </ul>
  );
}

function FamilyRow({ row, isThis }: { readonly row: RunRow; readonly isThis: boolean }) {
  const phase = phaseOf(row);
  return (
    <p class="family-row">
      <a
        href={addressOf({ page: "run", runId: row.runId, at: null, agent: null, fork: null })}
        aria-current={isThis ? "page" : undefined}
      >
        <b>{oneLine(row.name, 60)}</b> <code title={plainText(row.runId)}>{oneLine(shortId(row.runId), 40)}</code>
      </a>
      {isThis && <span class="tag">this run</span>}
      <span class={`pill ${phase}`}>
        <PhaseIcon phase={phase} />
        {phaseWords[phase]}
      </span>
      <span class="figures quiet">
        {compact(row.tokens)} tokens · {costText(row)}
      </span>
      <Origin runId={row.runId} origin={row.origin} />
    </p>
  );
}
