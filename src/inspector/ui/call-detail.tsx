import type { CallDetail } from "../feed/wire.ts";
import { useAsked } from "./asked.ts";
import { milliseconds, shortId, sinceStart } from "./format.ts";
import { Icon } from "./icons.tsx";
import { type JsonValue, JsonView } from "./json-view.tsx";
import { JsonText } from "./message-card.tsx";
import { selectAgent } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { LongText, oneLine, plainText } from "./untrusted.tsx";

const effects = {
  none: "has no effect outside; may be repeated freely",
  keyed: "may be repeated with the same key; the receiver lets it take effect once",
  once: "is never repeated: a call that was interrupted has an unknown outcome",
} as const;

interface CallProps {
  readonly run: RunSession;
  readonly callId: string;
  readonly onClose: () => void;
}

/** One tool call from what the model asked for to its result. */
export function CallAside({ run, callId, onClose }: CallProps) {
  const count = run.length.value;
  const { answer, failure } = useAsked(() => run.client.call(run.runId, callId), {
    subject: callId,
    on: [count],
    delayMs: 400,
  });
  return (
    <aside class="detail" aria-label="Tool call">
      <header class="detail-head">
        <h3>{answer ? <code>{oneLine(answer.name, 60)}</code> : "Tool call"}</h3>
        <button type="button" class="plain" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <code class="id long">{plainText(callId)}</code>
      {failure !== null && <p class="note">{failure}</p>}
      {answer && <Call run={run} call={answer} />}
    </aside>
  );
}

function Call({ run, call }: { readonly run: RunSession; readonly call: CallDetail }) {
  const { gate, attempts, end, effect } = call;
  const start = run.log.startedAt;
  return (
    <>
      <dl class="facts">
        {effect !== null && (
          <>
            <dt>effect</dt>
            <dd>
              <code>{effect}</code> {effects[effect]}
            </dd>
          </>
        )}
        {gate && (
          <>
            <dt>gate</dt>
            <dd>
              {gate.verdict}
              {gate.needsApproval && ", needs approval"} at {sinceStart(gate.at, start)}
              {gate.message !== null && `: ${plainText(gate.message)}`}
            </dd>
          </>
        )}
        {attempts.map(({ attempt, startedAt, idempotencyKey, queue, error }) => (
          <AttemptFacts key={attempt} facts={{ attempt, at: sinceStart(startedAt, start), idempotencyKey, queue }}>
            {error?.message ?? null}
          </AttemptFacts>
        ))}
        {call.worker !== null && (
          <>
            <dt>worker</dt>
            <dd>
              <code>{plainText(call.worker)}</code>
            </dd>
          </>
        )}
        {end && (
          <>
            <dt>outcome</dt>
            <dd>
              <b>{end.outcome}</b> after {milliseconds(end.durationMs)}
              {end.error && `: ${plainText(end.error.message)}`}
            </dd>
          </>
        )}
        {end?.artifactId != null && (
          <>
            <dt>artifact</dt>
            <dd>
              <code>{plainText(end.artifactId)}</code>
            </dd>
          </>
        )}
      </dl>
      {call.childIds.length > 0 && (
        <p class="detail-actions">
          {call.childIds.map((id) => (
            <button key={id} type="button" onClick={() => selectAgent(id)}>
              subagent {shortId(id)}
            </button>
          ))}
        </p>
      )}
      <section>
        <h3>Arguments</h3>
        {gate ? (
          <JsonView value={gate.arguments as JsonValue} />
        ) : (
          call.asked !== null && <JsonText text={call.asked} />
        )}
      </section>
      {end?.message && (
        <section>
          <h3>Result</h3>
          <LongText
            text={typeof end.message.content === "string" ? end.message.content : JSON.stringify(end.message.content)}
          />
        </section>
      )}
    </>
  );
}

interface AttemptProps {
  readonly facts: {
    readonly attempt: number;
    readonly at: string;
    readonly idempotencyKey: string;
    readonly queue: string | null;
  };
  readonly children: string | null;
}

function AttemptFacts({ facts: { attempt, at, idempotencyKey, queue }, children }: AttemptProps) {
  return (
    <>
      <dt>attempt {attempt}</dt>
      <dd>
        at {at}
        {queue !== null && (
          <>
            {" "}
            in the queue <code>{plainText(queue)}</code>
          </>
        )}
        , key <code>{plainText(idempotencyKey)}</code>
        {children !== null && `: ${plainText(children)}`}
      </dd>
    </>
  );
}
