import { useMemo } from "preact/hooks";
import { runSummary } from "../run-model/run-summary.ts";
import type { SummaryFact } from "../run-model/summary-facts.ts";
import { nothingLost } from "../run-model/lost-agents.ts";
import { useAsked } from "./asked.ts";
import { shortId } from "./format.ts";
import { addressOf, route } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { UseTable } from "./tables.tsx";
import { oneLine, plainText } from "./untrusted.tsx";

/** The summary of the run at the moment: why it stopped, who spent it, what was slow, and the cost by model and agent. */
export function SummaryView({ run }: { readonly run: RunSession }) {
  const moment = run.moment.value;
  const lost = run.isLive.value ? run.lost.value : nothingLost;
  const { answer } = useAsked(() => run.client.runs({ text: run.runId }), { subject: run.runId, on: [] });
  const task = answer?.items.find(({ runId }) => runId === run.runId)?.task ?? "";
  const until = run.time;
  const { answers, sentences, byModel, byAgent } = useMemo(
    () => runSummary({ log: run.log, timeline: run.timeline, moment, until, lost, task }),
    [run, moment, lost, task, Math.floor(until / 1_000)],
  );
  const agents = byAgent.map(({ agentId, name, use }) => {
    const words = `${oneLine(name, 40)} ${shortId(agentId)}`;
    return { key: agentId, name: <a href={addressOf({ agent: agentId, view: "budgets" })}>{words}</a>, use };
  });
  return (
    <div class="summary">
      <div class="answers">
        {answers.map(({ question, facts }, index) => (
          <section key={index} class="answer" aria-label={question}>
            <h2>{question}</h2>
            <ul>
              {facts.map((fact, place) => (
                <li key={place}>
                  <Fact {...fact} />
                </li>
              ))}
            </ul>
          </section>
        ))}
      </div>
      <section aria-label="In short" class="in-short">
        {sentences.map((sentence) => (
          <p key={sentence}>{plainText(sentence)}</p>
        ))}
      </section>
      {byModel.length > 0 && (
        <>
          <UseTable
            label="By model"
            what="Model"
            rows={byModel.map(([model, use]) => ({ key: model, name: <code>{oneLine(model, 60)}</code>, use }))}
          />
          <UseTable label="By agent" what="Agent, its own calls" rows={agents} />
        </>
      )}
    </div>
  );
}

function Fact({ text, place }: SummaryFact) {
  if (place === null) return <>{plainText(text)}</>;
  return <a href={addressOf({ ...place, at: place.at ?? route.value.at })}>{plainText(text)}</a>;
}
