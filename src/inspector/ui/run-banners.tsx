import { milliseconds, plural, shortTime, sinceStart } from "./format.ts";
import { lostWords } from "../run-model/lost-agents.ts";
import { goLive, selectAgent } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";

/** Banners that explain why the page does not show the current state of the run. */
export function RunBanners({ run }: { readonly run: RunSession }) {
  return (
    <>
      <Connection run={run} />
      <Interrupted run={run} />
      <Past run={run} />
    </>
  );
}

function Connection({ run }: { readonly run: RunSession }) {
  const link = run.link.value;
  const source = run.source.value;
  if (link.kind === "cut" || link.kind === "refused") {
    return (
      <p class="banner bad" role="alert">
        {link.why}{" "}
        {link.kind === "cut" ? "Trying again; the page keeps what it shows." : "The page is no longer updated."}
      </p>
    );
  }
  if (source?.isReachable !== false) return null;
  return (
    <p class="banner bad" role="alert">
      The store has not answered since {shortTime(source.reachedAt)}. The page shows the run at that time and continues
      when the store answers again.
    </p>
  );
}

/** Lost agents, with the process that ran them. */
function Interrupted({ run }: { readonly run: RunSession }) {
  const lost = run.lost.value;
  const [[index, first] = [-1, undefined]] = lost;
  if (first === undefined) return null;
  const words = new Set([...lost.values()].map(lostWords));
  return (
    <p class="banner bad" role="alert">
      <button type="button" class="link" onClick={() => selectAgent(run.log.agents[index]?.agentId ?? run.runId)}>
        {plural(lost.size, "agent")}
      </button>{" "}
      interrupted: {[...words].join(", ")}. Last sign of life at {shortTime(first.seenAt)}. A process with the same
      definitions continues their work.
    </p>
  );
}

function Past({ run }: { readonly run: RunSession }) {
  if (run.isLive.value) return null;
  const start = run.log.startedAt;
  return (
    <p class="banner past" role="status">
      You look at {sinceStart(run.time, start)} of {milliseconds(run.present.value - start)}.{" "}
      <button type="button" onClick={() => goLive(run)}>
        To the newest (L)
      </button>
    </p>
  );
}
