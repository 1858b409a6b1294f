import { plural } from "./format.ts";
import { client } from "./page-state.ts";
import { RequestCard } from "./request-card.tsx";
import type { RunSession } from "./run-session.ts";

const MOST_SHOWN = 100;

/** Everything in this run that somebody has to decide, and what was decided. */
export function RequestsView({ run }: { readonly run: RunSession }) {
  const all = run.requests.value;
  const open = all.filter(({ status }) => status === "open").toSorted((one, other) => one.openedAt - other.openedAt);
  const over = all.filter(({ status }) => status !== "open").toSorted((one, other) => other.openedAt - one.openedAt);
  if (all.length === 0) {
    return (
      <p class="empty">
        Nothing waits for a decision. Calls that need approval, questions and missing credentials show up here.
      </p>
    );
  }
  return (
    <div class="requests" tabIndex={0} role="region" aria-label="Requests">
      {!run.isLive.value && open.length > 0 && <p class="note">You look at the past; what is open here is open now.</p>}
      {open.length > 0 && client.value?.act && (
        <p class="quiet">Nothing happens at the first press: each decision is confirmed, and no key alone approves.</p>
      )}
      {open.slice(0, MOST_SHOWN).map((request) => (
        <RequestCard key={request.requestId} run={run} request={request} />
      ))}
      {over.length > 0 && <h2>{plural(over.length, "request")} decided or closed</h2>}
      {over.slice(0, MOST_SHOWN).map((request) => (
        <RequestCard key={request.requestId} run={run} request={request} />
      ))}
    </div>
  );
}
