import { computed, signal } from "@preact/signals";
import { useState } from "preact/hooks";
import type { RunReplay } from "../feed/wire.ts";
import { errorText } from "./feed-client.ts";
import { turnNumber } from "./fork-point.tsx";
import { plural } from "./format.ts";
import { acts, go, session } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { oneLine, plainText } from "./untrusted.tsx";

/** The result of the last replay of each run. */
const replays = signal<ReadonlyMap<string, RunReplay>>(new Map());

/** Index of the entry at which the shown run diverges from the definitions; -1 without one in the page. */
export const divergedPlace = computed(() => {
  const run = session.value;
  const divergence = run && replays.value.get(run.runId)?.divergence;
  return divergence ? placeOf(run, divergence) : -1;
});

function placeOf({ log }: RunSession, { agentId, turn, step }: NonNullable<RunReplay["divergence"]>): number {
  const agent = log.indexOfAgent(agentId);
  for (const [index, entry] of log.entries.entries()) {
    const at = log.first + index;
    if (log.agentOf(at) !== agent) continue;
    const isTurn = "turnId" in entry && turnNumber(String(entry.turnId)) === turn;
    if (turn === 0 || (isTurn && (step === 0 || ("step" in entry && entry.step === step)))) return at;
  }
  return -1;
}

/** Compares the run with the definitions of the process. */
export function Replay({ run }: { readonly run: RunSession }) {
  const [error, setError] = useState<string | null>(null);
  const [isRunning, setRunning] = useState(false);
  const result = replays.value.get(run.runId);
  const replay = async (): Promise<void> => {
    const act = acts.peek();
    if (!act || isRunning) return;
    setRunning(true);
    setError(null);
    try {
      replays.value = new Map(replays.peek()).set(run.runId, await act.replay(run.runId));
    } catch (thrown) {
      setError(errorText(thrown));
    }
    setRunning(false);
  };
  return (
    <>
      <p class="quiet">
        Repeats the run with the definitions of this process and the recorded answers, results and decisions. No model
        is called and no tool runs.
      </p>
      <p class="choices">
        <button type="button" disabled={isRunning} onClick={() => void replay()}>
          {isRunning ? "Comparing …" : "Replay"}
        </button>
      </p>
      <div role="status">{result && <Result run={run} result={result} />}</div>
      {error !== null && (
        <p class="note bad" role="alert">
          {plainText(error)}
        </p>
      )}
    </>
  );
}

function Result({ run, result }: { readonly run: RunSession; readonly result: RunReplay }) {
  const { divergence, requests, calls, notCompared, changed } = result;
  const place = divergedPlace.value;
  return (
    <>
      {divergence ? (
        <p class="note bad">
          First divergence: {oneLine(divergence.agentName, 60)}, turn {divergence.turn}, step {divergence.step}:{" "}
          <code>{oneLine(divergence.part, 60)}</code>{" "}
          {place >= 0 && (
            <button
              type="button"
              onClick={() => {
                run.pin(place + 1);
                go({ view: "timeline", agent: divergence.agentId });
              }}
            >
              Show on the timeline
            </button>
          )}
        </p>
      ) : (
        <p class="note good">
          Equal: {plural(requests, "model request")} and {plural(calls, "tool call")} are the same with the definitions
          of this process.
        </p>
      )}
      {divergence && divergence.diff !== "" && <Diff text={divergence.diff} />}
      {divergence && divergence.expected !== "" && (
        <details>
          <summary>Expected and got</summary>
          <h3>Expected, as recorded</h3>
          <pre class="fork-text">{plainText(divergence.expected)}</pre>
          <h3>Got</h3>
          <pre class="fork-text">{plainText(divergence.got)}</pre>
        </details>
      )}
      {changed.length > 0 && (
        <p class="quiet">Changed without an effect on requests: {oneLine(changed.join(", "), 400)}.</p>
      )}
      {Object.keys(notCompared).length > 0 && (
        <p class="quiet">
          Not compared:{" "}
          {oneLine(
            Object.entries(notCompared)
              .map(([what, count]) => `${what} (${count})`)
              .join(", "),
            400,
          )}
          .
        </p>
      )}
    </>
  );
}

/** A unified diff. The signs at the beginnings of its lines have the meaning of the colours. */
function Diff({ text }: { readonly text: string }) {
  return (
    <pre class="fork-text" aria-label="Difference" tabIndex={0}>
      {text.split("\n").map((line, index) => (
        <span key={index} class={line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : ""}>
          {plainText(line)}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}
