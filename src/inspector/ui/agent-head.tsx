import { useEffect, useRef, useState } from "preact/hooks";
import { type AgentMoment, isBusy } from "../run-model/agent-moment.ts";
import { errorText } from "./feed-client.ts";
import { Origin, Stubbed } from "./fork-point.tsx";
import { compact, costText, costTitle, milliseconds, plural, shortId, shortTime } from "./format.ts";
import { type LostAgent, lostWords } from "../run-model/lost-agents.ts";
import { acts, addressOf, copyText, say, selectAgent, selectedAgent } from "./page-state.ts";
import { Icon, LimitBar, limitTitle, PhaseIcon, phaseWords } from "./parts.tsx";
import type { RunSession } from "./run-session.ts";
import { doing, limitsOf } from "./tree-view.tsx";
import { oneLine, plainText } from "./untrusted.tsx";

/** The selected agent at the moment: its name, its activity and its use. */
export function AgentHead({ run }: { readonly run: RunSession }) {
  const agent = run.log.agents[selectedAgent.value];
  if (!agent) return null;
  const now = run.moment.value;
  const moment = now.agents[agent.index];
  const parent = run.log.agents[agent.parent];
  const lost = run.lost.value.get(agent.index);
  const uses = limitsOf(run, agent.agentId, moment?.accountId ?? null);
  const shown = uses.filter(({ limit }, index) => uses.findIndex((one) => one.limit === limit) === index).slice(0, 2);
  return (
    <header class="agent-head">
      <div class="agent-title">
        <h1>{oneLine(agent.name, 60)}</h1>
        <button
          type="button"
          class="id copyable"
          title={`${plainText(agent.agentId)} (copies)`}
          onClick={() => void copyText(agent.agentId, "Id")}
        >
          <code>{oneLine(shortId(agent.agentId), 28)}</code>
          <Icon name="copy" />
        </button>
        {moment && (
          <span class={`pill ${moment.phase}`}>
            <PhaseIcon phase={moment.phase} />
            {phaseWords[moment.phase]}
            {isBusy(moment) && <span class="figures quiet">{milliseconds(Math.max(0, run.time - moment.since))}</span>}
          </span>
        )}
        <AgentActs agentId={agent.agentId} name={agent.name} now={run.isLive.value ? moment : undefined} />
        {parent && (
          <span class="quiet below">
            below{" "}
            <button type="button" class="link" onClick={() => selectAgent(parent.agentId)}>
              {oneLine(parent.name, 40)}
            </button>
          </span>
        )}
        <Stubbed agent={agent} />
        {!parent && <Origin runId={run.runId} origin={agent.origin} />}
      </div>
      {moment ? (
        <>
          <div class="agent-line">
            <p class="agent-doing">{wordsFor(moment, lost)}</p>
            <ul class="agent-limits figures">
              {shown.map((use, index) => (
                <li key={index} class="agent-limit" title={limitTitle(use)}>
                  <LimitBar use={use} isWide />
                  <span>{limitTitle(use)}</span>
                </li>
              ))}
            </ul>
          </div>
          <ul class="agent-figures figures">
            <li>
              turn <b>{moment.turn}</b>, step <b>{moment.step}</b>
            </li>
            <li>
              {agent.children.length > 0 && "own calls: "}
              <b>{compact(moment.inputTokens)}</b> in, <b>{compact(moment.outputTokens)}</b> out
            </li>
            <li title={costTitle(moment)}>
              <b>{costText(moment)}</b>
            </li>
            <li>{plural(moment.toolCalls, "tool call")}</li>
            {moment.model !== null && (
              <li>
                <code>{oneLine(moment.model, 40)}</code>
              </li>
            )}
            {moment.stopReason !== null && (
              <li>
                stop reason <code>{moment.stopReason}</code>
              </li>
            )}
            {run.isLive.value && isBusy(moment) && <Owner run={run} agentId={agent.agentId} />}
          </ul>
        </>
      ) : (
        <p class="agent-doing quiet">Not created yet at this moment.</p>
      )}
    </header>
  );
}

/** Details beyond the state. */
function wordsFor(moment: AgentMoment, lost: LostAgent | undefined): string {
  const { phase, message, turn, step } = moment;
  if (lost) return `${lostWords(lost)}; last sign of life at ${shortTime(lost.seenAt)}`;
  if (message !== null) return plainText(message);
  if (phase === "done") return `turn ${turn} completed after ${plural(step, "step")}`;
  if (phase === "thinking") return moment.model === null ? "begins its turn" : `waits for ${oneLine(moment.model, 60)}`;
  return doing(moment);
}

/** The living process that runs the agent. */
function Owner({ run, agentId }: { readonly run: RunSession; readonly agentId: string }) {
  const { processes, ofAgents } = run.owners.value;
  const owner = processes.get(ofAgents.get(agentId) ?? "");
  if (owner?.state !== "alive") return null;
  return (
    <li title={plainText(owner.processId)}>
      run by <a href={addressOf({ page: "queues" })}>process {owner.pid}</a>
    </li>
  );
}

interface ActsProps {
  readonly agentId: string;
  readonly name: string;
  /** The current state of the agent, even while the page shows an earlier moment. */
  readonly now: AgentMoment | undefined;
}

/** Pause, resume and abort of the selected agent; a root agent can be deleted with its run. */
export function AgentActs({ agentId, name, now }: ActsProps) {
  const act = acts.value;
  const [isAsking, setAsking] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  if (!act || !now) return null;
  const isRoot = !agentId.includes("~");
  const shownName = `${oneLine(name, 40)} ${shortId(agentId)}`;
  const deletion = isRoot && (
    <>
      <button type="button" class="danger" onClick={() => setDeleting(true)}>
        Delete …
      </button>
      {isDeleting && (
        <DeleteDialog
          name={shownName}
          onEnd={(isSure) => {
            setDeleting(false);
            if (isSure) void attempt("Deleted", () => act.delete(agentId));
          }}
        />
      )}
    </>
  );
  if (now.phase === "shutdown") return isRoot ? <span class="acts">{deletion}</span> : null;
  return (
    <span class="acts">
      {now.phase === "paused" ? (
        <button type="button" onClick={() => void attempt("Resumed", () => act.resume(agentId))}>
          Resume
        </button>
      ) : (
        <button
          type="button"
          title="Calls in flight finish; this agent and those below it begin nothing new"
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
          name={shownName}
          onEnd={(reason) => {
            setAsking(false);
            if (reason !== null) void attempt("Aborted", () => act.abort(agentId, reason === "" ? {} : { reason }));
          }}
        />
      )}
      {deletion}
    </span>
  );
}

/** Shows the outcome in a notice. */
async function attempt(done: string, call: () => Promise<void>): Promise<void> {
  try {
    await call();
    say(done);
  } catch (error) {
    say(errorText(error));
  }
}

interface DeleteDialogProps {
  readonly name: string;
  readonly onEnd: (isSure: boolean) => void;
}

function DeleteDialog({ name, onEnd }: DeleteDialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-label="Delete" onClose={() => onEnd(false)}>
      <h2>Delete {name} for good?</h2>
      <p class="quiet">
        The whole run is deleted, with all subagents, messages and artifacts. An open turn is aborted. This cannot be
        undone.
      </p>
      <p class="choices">
        <button type="button" onClick={() => onEnd(false)}>
          Keep it
        </button>
        <button type="button" class="danger" onClick={() => onEnd(true)}>
          Delete the run
        </button>
      </p>
    </dialog>
  );
}

interface DialogProps {
  readonly name: string;
  /** Called with the typed reason, or with `null` if the dialog was cancelled. */
  readonly onEnd: (reason: string | null) => void;
}

function AbortDialog({ name, onEnd }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-label="Abort" onClose={() => onEnd(null)}>
      <h2>Abort the turn of {name}?</h2>
      <p class="quiet">All work below it is aborted too. Tokens and cost that were spent are not given back.</p>
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
