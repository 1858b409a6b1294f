import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { FeedFailure, type RequestRow, errorText } from "./feed-client.ts";
import { plural, shortId } from "./format.ts";
import { acts, say } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { oneLine, plainText } from "./untrusted.tsx";
import { verdictWord } from "./verdicts.ts";

/** A decision on several requests at once, from the first press until the reader dismisses its outcome. */
interface Bulk {
  readonly tool: string;
  /** The requests that were open at the first press. Later requests are not added. */
  readonly requestIds: ReadonlySet<string>;
  readonly step: "confirm" | "sending" | "done";
  readonly approved: number;
  readonly missed: readonly { readonly request: RequestRow; readonly why: string }[];
}

const bulk = signal<Bulk | null>(null);

/** Longer arguments are cut in the list; the request's card shows them in full. */
const LONGEST_ARGUMENTS = 1_000;

/**
 * Approves several calls of the same tool together. Each decision is sent separately, with the hash of the shown arguments.
 */
export function AlikeRequests({ run }: { readonly run: RunSession }) {
  const open = run.requests.value.filter(({ status, kind }) => status === "open" && kind === "approval");
  const groups = [...Map.groupBy(open, ({ name }) => name)].filter(([, { length }]) => length > 1);
  const chosen = bulk.value;
  const isOfRun = chosen !== null && run.requests.value.some(({ requestId }) => chosen.requestIds.has(requestId));
  if (isOfRun) return <BulkView run={run} chosen={chosen} />;
  if (groups.length === 0 || !acts.value) return null;
  return (
    <p class="choices alike">
      {groups.map(([tool, { length }]) => (
        <button key={tool} type="button" onClick={() => begin(tool, open)}>
          Approve all {length} of {oneLine(tool, 40)} …
        </button>
      ))}
    </p>
  );
}

function begin(tool: string, open: readonly RequestRow[]): void {
  const requestIds = new Set(open.filter(({ name }) => name === tool).map(({ requestId }) => requestId));
  bulk.value = { tool, requestIds, step: "confirm", approved: 0, missed: [] };
}

function cancel(): void {
  bulk.value = null;
}

interface BulkProps {
  readonly run: RunSession;
  readonly chosen: Bulk;
}

function BulkView({ run, chosen }: BulkProps) {
  const { tool, requestIds, step, approved, missed } = chosen;
  const requests = run.requests.value.filter(({ requestId }) => requestIds.has(requestId));
  const open = requests.filter(({ status }) => status === "open");
  const box = useRef<HTMLElement>(null);
  useLayoutEffect(() => box.current?.querySelector<HTMLElement>("button")?.focus(), [step === "done"]);
  const name = oneLine(tool, 40);
  return (
    <section
      ref={box}
      class="request bulk"
      aria-label={`Approve all of ${name}`}
      onKeyDown={(event) => {
        if (event.key === "Escape" && step === "confirm") cancel();
        else if (!(event.key === "Enter" && event.repeat)) return;
        event.preventDefault();
      }}
    >
      {step === "done" ? (
        <div class="note bad" role="alert">
          <p>
            {approved} of {plural(requestIds.size, "request")} approved. Your decision was not taken on:
          </p>
          <ul>
            {missed.map(({ request, why }) => (
              <li key={request.requestId}>
                {nameOf(request)}: {why}
              </li>
            ))}
          </ul>
          <button type="button" onClick={cancel}>
            OK
          </button>
        </div>
      ) : (
        <>
          <ol class="bulk-list">
            {requests.map((request) => (
              <li key={request.requestId} class={request.status === "open" ? "" : "quiet"}>
                {nameOf(request)} <code>{argumentsOf(request)}</code>
                {request.status !== "open" && <b> {whatBecame(request)}</b>}
              </li>
            ))}
          </ol>
          <p class="choices">
            <button
              type="button"
              class="primary"
              aria-disabled={step === "sending"}
              onClick={() => {
                if (bulk.peek()?.step === "confirm") void approveAll(run, chosen, requests);
              }}
            >
              {open.length === 0 ? "None is open any more" : `Run ${name} ${times(open.length)} with these arguments`}
            </button>
            <button type="button" onClick={cancel}>
              Cancel
            </button>
          </p>
        </>
      )}
    </section>
  );
}

/** Each by its own request: another person may decide some of them at the same time. */
async function approveAll(run: RunSession, chosen: Bulk, requests: readonly RequestRow[]): Promise<void> {
  const act = acts.peek();
  bulk.value = { ...chosen, step: "sending" };
  const outcomes = await Promise.all(
    requests.map(async (request) => {
      const { requestId, argumentsHash, status } = request;
      if (status !== "open") return { request, why: whatBecame(request) };
      try {
        await act?.decide(requestId, { verdict: "approved", argumentsHash });
        return null;
      } catch (error) {
        const now = error instanceof FeedFailure ? error.request : undefined;
        return { request, why: now ? whatBecame(now) : plainText(errorText(error)) };
      }
    }),
  );
  await run.readRequests().catch(() => undefined);
  const missed = outcomes.filter((one) => one !== null);
  const approved = outcomes.length - missed.length;
  say(`${oneLine(chosen.tool, 40)}: ${approved} approved`);
  bulk.value = missed.length === 0 ? null : { ...chosen, step: "done", approved, missed };
}

function nameOf({ agentName, agentId }: RequestRow): string {
  return `${oneLine(agentName, 40)} ${shortId(agentId)}`;
}

function argumentsOf({ arguments: given }: RequestRow): string {
  const text = plainText(JSON.stringify(given));
  return text.length > LONGEST_ARGUMENTS ? `${text.slice(0, LONGEST_ARGUMENTS)}…` : text;
}

function whatBecame({ decision }: RequestRow): string {
  if (!decision) return "its turn went on without a decision";
  const by = decision.by === null ? "" : ` by ${oneLine(decision.by, 60)}`;
  return `${verdictWord("approval", decision.verdict)}${by}`;
}

function times(count: number): string {
  return count === 1 ? "once" : `${count} times`;
}
