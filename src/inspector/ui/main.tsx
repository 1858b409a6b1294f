import { render } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { AgentHead } from "./agent-head.tsx";
import { BudgetsView } from "./budgets-view.tsx";
import { ChartView } from "./chart-view.tsx";
import { CompareView } from "./compare-view.tsx";
import { EvalsView } from "./evals-view.tsx";
import { EventsView } from "./events-view.tsx";
import { feedOfFile, runInPage } from "./feed-of-file.ts";
import { feedOfServer, takeToken } from "./feed-of-server.ts";
import { ForksView } from "./forks-view.tsx";
import { Help, listenToKeys } from "./keys.tsx";
import { MessagesView } from "./messages-view.tsx";
import {
  addressOf,
  client,
  go,
  info,
  notice,
  route,
  selectedAgent,
  session,
  showWindow,
  startFailure,
  startPage,
  startRouting,
  type View,
  views,
} from "./page-state.ts";
import { RequestsView } from "./requests-view.tsx";
import { RunBanners } from "./run-banners.tsx";
import type { RunSession } from "./run-session.ts";
import { Scrubber } from "./scrubber.tsx";
import { startTheme, treeWidth } from "./settings.ts";
import { WorkersView, RunsView } from "./store-pages.tsx";
import "./styles/base.css";
import "./styles/compare.css";
import "./styles/detail.css";
import "./styles/forks.css";
import "./styles/layout.css";
import "./styles/messages.css";
import "./styles/people.css";
import "./styles/tree.css";
import "./styles/views.css";
import { SummaryView } from "./summary-view.tsx";
import { TalkView } from "./talk-view.tsx";
import { hasBars } from "./timeline-state.ts";
import { OpenedSpan, TimelineView } from "./timeline-view.tsx";
import { startTitle } from "./title-badge.ts";
import { TopBar } from "./top-bar.tsx";
import { TreeView } from "./tree-view.tsx";

export function App() {
  useEffect(() => listenToKeys(), []);
  const run = session.value;
  return (
    <div class="app">
      <a class="skip" href="#main" onClick={skipToMain}>
        Skip to the view
      </a>
      <TopBar />
      {startFailure.value !== null ? (
        <Failure text={startFailure.value} />
      ) : !client.value || !info.value ? (
        <p class="empty loading">Connecting …</p>
      ) : route.value.page === "run" && run ? (
        <RunPage key={run.part} run={run} />
      ) : route.value.page === "queues" ? (
        <WorkersView feed={client.value} />
      ) : route.value.page === "evals" ? (
        <EvalsView feed={client.value} />
      ) : route.value.page === "compare" ? (
        <CompareView feed={client.value} />
      ) : (
        <RunsView feed={client.value} />
      )}
      <Help />
      <p class={notice.value === null ? "notice" : "notice shown"} role="status">
        {notice.value}
      </p>
    </div>
  );
}

function skipToMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Failure({ text }: { readonly text: string }) {
  return (
    <main class="empty failure">
      <h2>This page cannot show anything</h2>
      <p>{text}</p>
      <p>
        <button type="button" onClick={() => location.reload()}>
          Try again
        </button>
      </p>
    </main>
  );
}

const viewNames: Readonly<Record<View, string>> = {
  summary: "Summary",
  timeline: "Timeline",
  chart: "Chart",
  messages: "Messages",
  events: "Events",
  budgets: "Budgets",
  requests: "Requests",
  talk: "Talk",
  forks: "Forks",
};

function RunPage({ run }: { readonly run: RunSession }) {
  const { view } = route.value;
  const tabs = useRef<HTMLElement>(null);
  const isBegun = run.length.value > 0;
  useLayoutEffect(() => {
    // On a narrow screen, not all tabs are visible.
    const tab = tabs.current?.querySelector<HTMLElement>("[aria-current]");
    if (tab) tabs.current?.scrollTo({ left: tab.offsetLeft - 24 });
  }, [view, isBegun]);
  // What was deleted is no longer shown.
  if (!isBegun || run.gone.value !== null) return <Beginning run={run} />;
  return (
    <>
      <div class={hasBars.value ? "columns with-bars" : "columns"} style={{ "--tree-width": `${treeWidth.value}px` }}>
        <section class="run-head" aria-label="Selected agent">
          <RunBanners run={run} />
          <CutOff run={run} />
          <AgentHead run={run} />
          <nav ref={tabs} class="tabs" aria-label="Views">
            {views.map((name) => (
              <a
                key={name}
                href={addressOf({ view: name })}
                class="tab"
                aria-current={name === view ? "page" : undefined}
                onClick={(event) => {
                  event.preventDefault();
                  go({ view: name });
                }}
              >
                {viewNames[name]}
                {name === "requests" && <RequestCount run={run} />}
              </a>
            ))}
          </nav>
        </section>
        <TreeView run={run}>
          <Divider />
        </TreeView>
        <main id="main" class="view" tabIndex={-1} aria-label={viewNames[view]}>
          <div class="view-body">
            <Shown view={view} run={run} />
          </div>
        </main>
        {view === "timeline" && <OpenedSpan run={run} />}
      </div>
      <Scrubber run={run} />
    </>
  );
}

function figure(count: number): string {
  return count.toLocaleString("en");
}

/** For a run that does not fit in the page: which events are shown, and buttons for the others. */
function CutOff({ run }: { readonly run: RunSession }) {
  const first = run.first.value;
  const isPast = run.isPast.value;
  if (first === 0 && !isPast) return null;
  const last = run.length.value;
  return (
    <p class="banner cut-off" role="status">
      Events {figure(first + 1)} to {figure(last)} of {isPast ? "at least " : ""}
      {figure(run.seen)} are shown.{" "}
      {first > 0 && (
        <button type="button" onClick={() => showWindow(run, run.placeOfEarlier)}>
          Earlier events
        </button>
      )}{" "}
      {isPast && (
        <>
          <button type="button" onClick={() => showWindow(run, run.placeOfLater)}>
            Later events
          </button>{" "}
          <button type="button" onClick={() => showWindow(run, "newest")}>
            Newest events
          </button>
        </>
      )}
    </p>
  );
}

function RequestCount({ run }: { readonly run: RunSession }) {
  const open = run.requests.value.filter(({ status }) => status === "open").length;
  return open === 0 ? null : <span class="count">{open}</span>;
}

function Shown({ view, run }: { readonly view: View; readonly run: RunSession }) {
  const agent = run.log.agents[selectedAgent.value];
  if (!agent) return <p class="empty">This agent is not part of the run.</p>;
  switch (view) {
    case "summary":
      return <SummaryView run={run} />;
    case "timeline":
      return <TimelineView run={run} />;
    case "events":
      return <EventsView run={run} />;
    case "budgets":
      return <BudgetsView run={run} />;
    case "chart":
      return <ChartView run={run} />;
    case "messages":
      return <MessagesView run={run} />;
    case "requests":
      return <RequestsView run={run} />;
    case "talk":
      return <TalkView run={run} />;
    case "forks":
      return <ForksView run={run} />;
    default:
      return view satisfies never;
  }
}

/** Shown before the first entry, or if the run cannot or can no longer be shown. */
function Beginning({ run }: { readonly run: RunSession }) {
  const link = run.link.value;
  const gone = run.gone.value;
  if (gone !== null || link.kind === "refused") {
    return (
      <main id="main" class="empty failure" tabIndex={-1}>
        <h1>This run cannot be shown</h1>
        <p role="alert">{gone ?? (link.kind === "refused" ? link.why : "")}</p>
        <p>
          <a href="#/runs">All runs</a>
        </p>
      </main>
    );
  }
  const isAnswering = run.source.value?.isReachable !== false;
  const reading = isAnswering ? "Reading the journal …" : "The store does not answer. Trying again …";
  const words = link.kind === "cut" ? `${link.why} Trying again …` : reading;
  return (
    <main class="empty loading" aria-busy="true">
      {run.isCaughtUp.value ? "Nothing has happened in this run yet. It shows up here as soon as it does." : words}
    </main>
  );
}

/** The divider between tree and view. It can be dragged or moved with arrow keys. */
function Divider() {
  return (
    <div
      class="divider"
      role="separator"
      aria-orientation="vertical"
      aria-label="Width of the tree"
      aria-valuemin={240}
      aria-valuemax={640}
      aria-valuenow={Number(treeWidth.value)}
      tabIndex={0}
      onKeyDown={({ key }) => {
        const by = { ArrowLeft: -16, ArrowRight: 16 }[key];
        if (by !== undefined) setTreeWidth(Number(treeWidth.value) + by);
      }}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={(event) => {
        if (event.currentTarget.hasPointerCapture(event.pointerId)) setTreeWidth(event.clientX);
      }}
    />
  );
}

function setTreeWidth(width: number): void {
  treeWidth.value = String(Math.round(Math.max(240, Math.min(640, width))));
}

async function start(): Promise<void> {
  const run = await runInPage();
  if (run) {
    startRouting();
    return startPage(feedOfFile(run));
  }
  const token = takeToken();
  startRouting();
  // The scope is known only after the first response.
  const { scope } = await feedOfServer(token, false).info();
  return startPage(feedOfServer(token, scope === "act"));
}

startTheme();
startTitle();
render(<App />, document.getElementById("app") ?? document.body);
start().catch((error: unknown) => {
  startFailure.value = error instanceof Error ? error.message : String(error);
});
