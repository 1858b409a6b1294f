import { useAsked } from "./asked.ts";
import { AgentActs } from "./agent-acts.tsx";
import { useEffect, useState } from "preact/hooks";
import { type AgentMoment, isBusy } from "../run-model/agent-moment.ts";
import { compact, dollars, milliseconds, plural, shortId } from "./format.ts";
import { Icon, PhaseIcon, phaseWords } from "./icons.tsx";
import { LimitBar, limitTitle } from "./limit-bar.tsx";
import { copyText, selectAgent, selectedAgent } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { doing, limitsOf } from "./tree-view.tsx";
import { oneLine, plainText } from "./untrusted.tsx";

/** The selected agent at the moment: who it is, what it does, what it has used. */
export function AgentHead({ run }: { readonly run: RunSession }) {
  const agent = run.log.agents[selectedAgent.value];
  if (!agent) return null;
  const now = run.moment.value;
  const moment = now.agents[agent.index];
  const parent = run.log.agents[agent.parent];
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
          <span class="quiet">
            below{" "}
            <button type="button" class="link" onClick={() => selectAgent(parent.agentId)}>
              {oneLine(parent.name, 40)}
            </button>
          </span>
        )}
      </div>
      {moment ? (
        <>
          <p class="agent-doing">{wordsFor(moment)}</p>
          <ul class="agent-figures figures">
            <li>
              turn <b>{moment.turn}</b>, step <b>{moment.step}</b>
            </li>
            <li>
              <b>{compact(moment.inputTokens)}</b> in, <b>{compact(moment.outputTokens)}</b> out
            </li>
            <li>
              <b>{dollars(moment.costMicros)}</b>
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
            {shown.map((use) => (
              <li key={use.limit} class="agent-limit">
                <LimitBar use={use} isWide />
                {limitTitle(use)}
              </li>
            ))}
          </ul>
        </>
      ) : (
        <p class="agent-doing quiet">Not there yet at this moment.</p>
      )}
    </header>
  );
}

/** What the state alone does not say. */
function wordsFor(moment: AgentMoment): string {
  const { phase, message, turn, step } = moment;
  if (message !== null) return plainText(message);
  if (phase === "done") return `turn ${turn} completed after ${plural(step, "step")}`;
  if (phase === "thinking") return moment.model === null ? "begins its turn" : `waits for ${oneLine(moment.model, 60)}`;
  return doing(moment);
}

const OWNERS_EVERY_MS = 5_000;

/** The process that runs the agent. */
function Owner({ run, agentId }: { readonly run: RunSession; readonly agentId: string }) {
  const [tick, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick((count) => count + 1), OWNERS_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const { answer } = useAsked(() => run.client.owners(run.runId), { subject: run, on: [tick, agentId] });
  const owner = answer?.find((one) => one.agentId === agentId);
  if (!owner) return null;
  return (
    <li title={`${plainText(owner.processId)}, epoch ${owner.epoch}`}>
      run by process <b>{owner.pid}</b>
    </li>
  );
}
