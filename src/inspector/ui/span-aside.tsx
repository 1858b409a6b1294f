import type { Prompt } from "../feed/wire.ts";
import type { RunEntryOf } from "../run-model/run-log.ts";
import type { Span } from "../run-model/timeline.ts";
import { useAsked } from "./asked.ts";
import { ForkHere } from "./fork-point.tsx";
import {
  amountText,
  type Cost,
  compact,
  costOfCall,
  costText,
  limitWord,
  milliseconds,
  plural,
  shortId,
  sinceStart,
} from "./format.ts";
import { CallDetailView, callNameOf, callNamesIn, MessageCard } from "./message-card.tsx";
import { Answer, Tools } from "./messages-view.tsx";
import { go, info, selectAgent } from "./page-state.ts";
import { Icon } from "./parts.tsx";
import type { RunSession } from "./run-session.ts";
import { spanWords } from "./span-table.tsx";
import { oneLine, plainText } from "./untrusted.tsx";

export interface OpenSpan {
  /** The entry's index in the log. */
  readonly agent: number;
  readonly span: Span;
}

/** Entries of the bar's call. */
export function costOfSpan({ costMicros, isUnpriced }: Span): Cost {
  return costOfCall(isUnpriced ? null : costMicros);
}

interface AsideProps extends OpenSpan {
  readonly run: RunSession;
  readonly onClose: () => void;
}

/** All details of one bar of the timeline: its request, outcome, cost, and why it took so long. */
export function SpanAside({ run, agent: index, span, onClose }: AsideProps) {
  const agent = run.log.agents[index];
  if (!agent) return null;
  const start = run.log.startedAt;
  const isOpen = span.last < 0;
  return (
    <aside class="detail span-detail" aria-label="Selected bar">
      <header class="detail-head">
        <h2>
          {spanWords[span.kind]} <span class="quiet">{oneLine(span.label, 60)}</span>
        </h2>
        <button type="button" class="plain" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <dl class="facts">
        <dt>agent</dt>
        <dd>
          <button type="button" class="link" onClick={() => selectAgent(agent.agentId)}>
            {oneLine(agent.name, 40)} {shortId(agent.agentId)}
          </button>
        </dd>
        <dt>began</dt>
        <dd class="figures">{sinceStart(span.start, start)}</dd>
        <dt>took</dt>
        <dd class="figures">
          {milliseconds(Math.max(0, Math.min(span.end, run.present.value, run.endOf(index)) - span.start))}
          {isOpen ? " so far" : span.isFailed ? ", failed" : ""}
        </dd>
        {span.tokens > 0 && (
          <>
            <dt>tokens</dt>
            <dd class="figures">{compact(span.tokens)}</dd>
            <dt>cost</dt>
            <dd class="figures">{costText(costOfSpan(span))}</dd>
          </>
        )}
      </dl>
      <p class="detail-actions">
        <button type="button" onClick={() => run.pin(span.first + 1)}>
          Go to its beginning
        </button>
        {!isOpen && (
          <button type="button" onClick={() => run.pin(span.last + 1)}>
            Go to its end
          </button>
        )}
      </p>
      <Contents run={run} agent={index} span={span} />
    </aside>
  );
}

type ContentsProps = Omit<AsideProps, "onClose">;

function Contents(props: ContentsProps) {
  const { run, span } = props;
  switch (span.kind) {
    case "model":
      return <ModelCall {...props} seq={run.log.entry(span.first)?.seq} />;
    case "retry":
      return <Retry {...props} />;
    case "tool":
    case "queue":
      return span.callId === null ? null : <CallDetailView run={run} callId={span.callId} />;
    case "child":
      return <Children {...props} />;
    case "person":
      return <Requests {...props} />;
    case "budget":
      return <Refusal {...props} />;
    case "pause":
      return <p class="quiet">Nothing begins during a pause.</p>;
    default:
      return span.kind satisfies never;
  }
}

/** One attempt of a model call: its prompt, its answer and the other attempts of its step. */
function ModelCall({ run, agent: index, span, seq }: ContentsProps & { readonly seq: number | undefined }) {
  const agentId = run.log.agents[index]?.agentId ?? "";
  const { answer: prompt, failure } = useAsked(() => run.client.prompt(run.runId, agentId, seq ?? 0), {
    subject: `${agentId} ${seq}`,
    on: [span.last],
  });
  if (seq === undefined) return <p class="note">The page does not hold the beginning of this call any more.</p>;
  if (info.value?.namesOnly === true) return <p class="note">Contents are not shown here.</p>;
  if (failure !== null) return <p class="note">{failure}</p>;
  if (!prompt) return <p class="quiet loading">Building the prompt again …</p>;
  return (
    <>
      <dl class="facts">
        <dt>model</dt>
        <dd>
          <code>{oneLine(prompt.model, 60)}</code>
        </dd>
        <dt>step</dt>
        <dd class="figures">
          {prompt.step}, attempt {prompt.attempt}
        </dd>
        <dt>prompt</dt>
        <dd>{prompt.isExact ? "exact, checked by its hash" : plainText(prompt.why ?? "not exact")}</dd>
      </dl>
      <Attempts run={run} agent={index} prompt={prompt} />
      <Answer prompt={prompt} onCall={() => go({ agent: agentId, view: "messages" })} />
      <Input prompt={prompt} />
      <Tools prompt={prompt} />
      <p class="detail-actions">
        <button type="button" onClick={() => go({ agent: agentId, view: "messages" })}>
          All messages of the agent
        </button>
        <ForkHere run={run} agentId={agentId} call={prompt} />
      </p>
    </>
  );
}

/** All attempts of the step, if there were several. */
function Attempts({ run, agent, prompt: { turnId, step } }: Omit<ContentsProps, "span"> & { readonly prompt: Prompt }) {
  const attempts = run.timeline.spansOf(agent).flatMap((span) => {
    const entry = span.kind === "model" ? run.log.entry(span.first) : undefined;
    const isOfStep = entry?.type === "model.requested" && entry.turnId === turnId && entry.step === step;
    return isOfStep ? [{ attempt: entry.attempt, span }] : [];
  });
  if (attempts.length < 2) return null;
  return (
    <ol class="plain-list figures" aria-label="Attempts">
      {attempts.map(({ attempt, span }) => (
        <li key={attempt}>
          attempt {attempt}: {span.last < 0 ? "in flight" : span.isFailed ? oneLine(span.label, 60) : "answered"}{" "}
          <span class="quiet">
            after {milliseconds(Math.max(0, Math.min(span.end, run.present.value) - span.start))}
          </span>
        </li>
      ))}
    </ol>
  );
}

/** The messages of a prompt. The newest, which the call answers, is open. */
function Input({ prompt: { messages } }: { readonly prompt: Prompt }) {
  const names = callNamesIn(messages);
  const lastAnswer = messages.findLastIndex(({ role }) => role === "assistant");
  const card = (message: Prompt["messages"][number]) => (
    <MessageCard key={message.id} message={message} callName={callNameOf(message, names)} />
  );
  const known = messages.slice(0, lastAnswer + 1);
  return (
    <section>
      <h3>
        Input <span class="quiet">{plural(messages.length, "message")}</span>
      </h3>
      {known.length > 0 && (
        <details>
          <summary>{plural(known.length, "message")} before</summary>
          {known.map(card)}
        </details>
      )}
      {messages.slice(lastAnswer + 1).map(card)}
    </section>
  );
}

/** Why an attempt failed, and when the next one begins. */
function Retry({ run, agent, span }: ContentsProps) {
  const entry = run.log.entry(span.first);
  if (entry?.type !== "model.failed") return null;
  const { error, retryAt, attempt } = entry;
  const requested = requestOf(run, agent, span.first);
  return (
    <>
      <p class="note bad">
        <code>{error.code}</code> {plainText(error.message)}
      </p>
      {retryAt !== null && (
        <p>
          Attempt {attempt} failed; the next one begins {milliseconds(Math.max(0, retryAt - entry.at))} later.
        </p>
      )}
      {requested && <ModelCall run={run} agent={agent} span={span} seq={requested.seq} />}
    </>
  );
}

/** The request that ended at an index of the log. */
function requestOf(run: RunSession, agent: number, place: number): RunEntryOf<"model.requested"> | undefined {
  for (let at = place - 1; at >= run.log.first; at -= 1) {
    const entry = run.log.entry(at);
    if (run.log.agentOf(at) === agent && entry?.type === "model.requested") return entry;
  }
  return undefined;
}

/** The subagents that worked during the wait. */
function Children({ run, agent, span }: ContentsProps) {
  const children = (run.log.agents[agent]?.children ?? []).flatMap((index) => run.log.agents[index] ?? []);
  const meanwhile = children.filter(({ index }) =>
    run.timeline.spansOf(index).some(({ start, end }) => start <= span.end && end >= span.start),
  );
  return (
    <ul class="plain-list">
      {meanwhile.map(({ agentId, name }) => (
        <li key={agentId}>
          <button type="button" class="link" onClick={() => selectAgent(agentId)}>
            {oneLine(name, 40)} {shortId(agentId)}
          </button>
        </li>
      ))}
    </ul>
  );
}

/** The request to a person, and its outcome. */
function Requests({ run, span }: ContentsProps) {
  const opened = run.log.entry(span.first);
  if (opened?.type !== "request.opened") return null;
  const request = run.requests.value.find(({ requestId }) => requestId === opened.requestId);
  const { decision } = request ?? {};
  return (
    <>
      <p>{plainText(opened.prompt)}</p>
      {decision && (
        <p>
          <b>{decision.verdict}</b>
          {decision.by !== null && ` by ${oneLine(decision.by, 60)}`}
          {decision.reason !== null && `: ${plainText(decision.reason)}`}
        </p>
      )}
      <p class="detail-actions">
        <button type="button" onClick={() => go({ view: "requests" })}>
          All requests
        </button>
      </p>
      {opened.callId !== undefined && <CallDetailView run={run} callId={opened.callId} />}
    </>
  );
}

/** The account whose limit made the agent wait. */
function Refusal({ run, span }: ContentsProps) {
  const entry = run.log.entry(span.first);
  if (entry?.type !== "intent.refused") return null;
  const { limit = "", used, max } = entry;
  return (
    <>
      <p>
        No room for {limitWord(limit)}
        {used !== undefined && max !== undefined && `: ${amountText(limit, used)} of ${amountText(limit, max)} used`}.
      </p>
      {entry.accountId !== undefined && <code class="id long">{plainText(entry.accountId)}</code>}
      <p class="detail-actions">
        <button type="button" onClick={() => go({ view: "budgets" })}>
          Budgets
        </button>
      </p>
    </>
  );
}
