import { useEffect, useRef, useState } from "preact/hooks";
import type { AgentMoment } from "../run-model/agent-moment.ts";
import { wordsOf } from "./feed-client.ts";
import { shortId } from "./format.ts";
import { client, say } from "./page-state.ts";
import { oneLine } from "./untrusted.tsx";

interface ActsProps {
  readonly agentId: string;
  readonly name: string;
  /** The agent as it is now, whatever moment is shown. */
  readonly now: AgentMoment | undefined;
}

/** Pause, resume and abort of the selected agent. */
export function AgentActs({ agentId, name, now }: ActsProps) {
  const act = client.value?.act;
  const [isAsking, setAsking] = useState(false);
  if (!act || !now || now.phase === "shutdown") return null;
  return (
    <span class="acts">
      {now.phase === "paused" ? (
        <button type="button" onClick={() => void attempt("Resumed", () => act.resume(agentId))}>
          Resume
        </button>
      ) : (
        <button
          type="button"
          title="What is in flight ends; nothing new begins, here and below"
          onClick={() => void attempt("Pausing", () => act.pause(agentId))}
        >
          Pause
        </button>
      )}
      {now.turnId !== null && (
        <button type="button" class="danger" onClick={() => setAsking(true)}>
          Abort …
        </button>
      )}
      {isAsking && (
        <AbortDialog
          name={`${oneLine(name, 40)} ${shortId(agentId)}`}
          onEnd={(reason) => {
            setAsking(false);
            if (reason !== null) void attempt("Aborted", () => act.abort(agentId, reason === "" ? {} : { reason }));
          }}
        />
      )}
    </span>
  );
}

/** Says how it went. */
async function attempt(done: string, call: () => Promise<void>): Promise<void> {
  try {
    await call();
    say(done);
  } catch (error) {
    say(wordsOf(error));
  }
}

interface DialogProps {
  readonly name: string;
  /** Null: it was called off. */
  readonly onEnd: (reason: string | null) => void;
}

function AbortDialog({ name, onEnd }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-label="Abort" onClose={() => onEnd(null)}>
      <h2>Abort the turn of {name}?</h2>
      <p class="quiet">All work below it is aborted too. What has been spent stays spent.</p>
      <label class="field">
        <span>Reason (shown in the journal)</span>
        <input value={reason} onInput={({ currentTarget }) => setReason(currentTarget.value)} />
      </label>
      <p class="choices">
        <button type="button" onClick={() => onEnd(null)}>
          Keep it running
        </button>
        <button type="button" class="danger" onClick={() => onEnd(reason)}>
          Abort the turn
        </button>
      </p>
    </dialog>
  );
}
