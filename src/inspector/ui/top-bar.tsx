import { isBusy } from "../run-model/agent-moment.ts";
import { compact, costText, costTitle, grouped, milliseconds, plural, shortId } from "./format.ts";
import { Icon, PhaseIcon, phaseWords } from "./parts.tsx";
import { addressOf, copyWatchLink, info, isHelpOpen, route, session } from "./page-state.ts";
import { showNextRequest } from "./requests-view.tsx";
import type { RunSession } from "./run-session.ts";
import { chooseAgents } from "./shown-agents.ts";
import { spentUntil } from "./spent.ts";
import { theme, themes } from "./settings.ts";
import { oneLine, plainText } from "./untrusted.tsx";

const themeIcons = { system: "system", light: "sun", dark: "moon" } as const;

export function TopBar() {
  const run = session.value;
  const watchToken = info.value?.watchToken;
  const next = themes[(themes.indexOf(theme.value) + 1) % themes.length] ?? "system";
  return (
    <header class="top">
      <a class="brand" href="#/runs" title="All runs">
        troupe
      </a>
      {info.value && info.value.source !== "file" && (
        <a
          class="top-link to-workers"
          href="#/queues"
          aria-current={route.value.page === "queues" ? "page" : undefined}
        >
          Workers
        </a>
      )}
      {info.value && info.value.source !== "file" && (
        <a
          class="top-link"
          href={addressOf({ page: "compare", otherId: "" })}
          aria-current={route.value.page === "compare" ? "page" : undefined}
        >
          Compare
        </a>
      )}
      {info.value?.hasEvals && (
        <a class="top-link" href="#/evals" aria-current={route.value.page === "evals" ? "page" : undefined}>
          Evals
        </a>
      )}
      {info.value?.apiDocs !== undefined && (
        <a class="top-link" href={info.value.apiDocs}>
          API
        </a>
      )}
      {run && route.value.page === "run" && run.length.value > 0 && run.gone.value === null && <RunFigures run={run} />}
      {run && route.value.page === "run" && <LinkMark run={run} />}
      <span class="top-buttons">
        {watchToken !== undefined && (
          <button
            type="button"
            class="plain"
            title="Copy a view-only link to this place"
            aria-label="Copy a view-only link to this place"
            onClick={() => void copyWatchLink(watchToken)}
          >
            <Icon name="link" />
          </button>
        )}
        <button
          type="button"
          class="plain"
          title={`Theme: ${theme.value}`}
          aria-label={`Theme: ${theme.value}. Change to ${next}`}
          onClick={() => {
            theme.value = next;
          }}
        >
          <Icon name={themeIcons[theme.value]} />
        </button>
        <button
          type="button"
          class="plain help-button"
          title="Keys (?)"
          aria-label="Keys"
          onClick={() => {
            isHelpOpen.value = true;
          }}
        >
          ?
        </button>
      </span>
    </header>
  );
}

function RunFigures({ run }: { readonly run: RunSession }) {
  const moment = run.moment.value;
  const root = moment.agents[0];
  const agent = run.log.agents[0];
  const { tokens, cost } = spentUntil(moment);
  let count = 0;
  let busy = 0;
  let open = 0;
  const ended = { failed: 0, stopped: 0 };
  for (const one of moment.agents) {
    if (!one) continue;
    count += 1;
    if (isBusy(one)) busy += 1;
    open += one.requests.length;
    if (one.phase === "failed" || one.phase === "stopped") ended[one.phase] += 1;
  }
  return (
    <>
      <span class="run-name">
        <b>{oneLine(agent?.name ?? "", 40)}</b>
        <code class="id" title={plainText(run.runId)}>
          {oneLine(shortId(run.runId), 24)}
        </code>
      </span>
      {root && (
        <span class="run-state">
          <span class={`pill ${root.phase}`}>
            <PhaseIcon phase={root.phase} />
            {phaseWords[root.phase]}
          </span>
        </span>
      )}
      <dl class="run-figures">
        <div>
          <dt>agents</dt>
          <dd>
            {count.toLocaleString("en")}
            {busy > 0 && <span class="quiet"> · {busy.toLocaleString("en")} busy</span>}
            {run.lost.value.size > 0 && <span class="lost-count"> · {grouped(run.lost.value.size)} interrupted</span>}
          </dd>
        </div>
        <div>
          <dt>tokens</dt>
          <dd>{compact(tokens)}</dd>
        </div>
        <div>
          <dt>cost</dt>
          <dd title={costTitle(cost)}>{costText(cost)}</dd>
        </div>
        <div>
          <dt>elapsed</dt>
          <dd>{milliseconds(run.time - run.log.startedAt)}</dd>
        </div>
      </dl>
      {(["failed", "stopped"] as const).map(
        (phase) =>
          ended[phase] > 0 && (
            <button
              key={phase}
              type="button"
              class={`pill ${phase}`}
              title={`Show the agents that have ${phase} (E goes to the next failure)`}
              onClick={() => chooseAgents({ state: route.peek().state === phase ? null : phase })}
            >
              <PhaseIcon phase={phase} />
              {ended[phase].toLocaleString("en")} {phase}
            </button>
          ),
      )}
      {open > 0 && (
        <button
          type="button"
          class="pill asking"
          title="Go to the next request (A)"
          onClick={() => showNextRequest(run)}
        >
          <PhaseIcon phase="asking" />
          {plural(open, "open request")}
        </button>
      )}
    </>
  );
}

/** Whether the page is still updated: the state of the connection and of the stores. */
function LinkMark({ run }: { readonly run: RunSession }) {
  const { kind } = run.link.value;
  const source = info.value?.source;
  if (source === "file") return <span class="link-mark still">exported file</span>;
  if (run.gone.value !== null) return <span class="link-mark still">ended</span>;
  if (kind === "cut" || kind === "refused") return <span class="link-mark cut">not connected</span>;
  if (run.source.value?.isReachable === false) return <span class="link-mark cut">store does not answer</span>;
  if (kind === "connecting") return <span class="link-mark">connecting</span>;
  return <span class="link-mark open">{run.isCaughtUp.value ? "connected" : "reading"}</span>;
}
