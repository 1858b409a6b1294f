import { useState } from "preact/hooks";
import type { DecisionBody } from "../feed/wire.ts";
import { FeedFailure, type RequestRow, wordsOf } from "./feed-client.ts";
import { milliseconds, plural, shortId, sinceStart } from "./format.ts";
import { type JsonValue, JsonView, LongText, oneLine, plainText } from "./untrusted.tsx";
import { acts, info, say, selectAgent } from "./page-state.ts";
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
      {open.length > 0 && acts.value && (
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

/** What somebody is about to do; it happens only after a second press. */
type Step = "choose" | "approve" | "reject" | "edit" | "answer";

const kindWords: Readonly<Record<RequestRow["kind"], string>> = {
  approval: "wants to run",
  client: "asks its caller to run",
  question: "asks",
  auth: "needs credentials for",
};

/** One request for a decision. The decision carries the hash of what is shown here. */
export function RequestCard({ run, request }: { readonly run: RunSession; readonly request: RequestRow }) {
  const [step, setStep] = useState<Step>("choose");
  const [failure, setFailure] = useState<FeedFailure | null>(null);
  const [isSending, setSending] = useState(false);
  const act = acts.value;
  const send = async (body: DecisionBody): Promise<void> => {
    setSending(true);
    setFailure(null);
    try {
      await act?.decide(request.requestId, { ...body, argumentsHash: request.argumentsHash });
      say(`${oneLine(request.name, 40)}: ${body.verdict}`);
      setStep("choose");
    } catch (error) {
      setFailure(error instanceof FeedFailure ? error : new FeedFailure("unknown", wordsOf(error)));
    }
    setSending(false);
  };
  const isOpen = request.status === "open";
  const { agentId, agentName } = request;
  return (
    <article class={isOpen ? "request" : "request over"} aria-label={`Request of ${plainText(agentName)}`}>
      <header>
        <span class={`pill ${isOpen ? "asking" : "waiting"}`}>{request.kind}</span>
        <span>
          <button type="button" class="link" onClick={() => selectAgent(agentId)}>
            {oneLine(agentName, 40)} {shortId(agentId)}
          </button>{" "}
          {kindWords[request.kind]} <code class="call-name">{oneLine(request.name, 80)}</code>
        </span>
        <span class="spacer" />
        <Times run={run} request={request} />
      </header>
      <p class="request-path quiet">{pathTo(run, agentId)}</p>
      <div class="request-prompt">
        <LongText text={request.prompt} />
      </div>
      <section aria-label="Arguments">
        <JsonView value={request.arguments as JsonValue} />
        <code class="id" title={`Hash of these arguments: ${plainText(request.argumentsHash)}`}>
          {plainText(request.argumentsHash)}
        </code>
      </section>
      {request.decision && <Decided request={request} />}
      {isOpen && act && (
        <Choices
          request={request}
          step={step}
          setStep={setStep}
          isSending={isSending}
          send={(body) => void send(body)}
        />
      )}
      {isOpen && !act && (
        <p class="note">
          {info.value?.scope === "act"
            ? "The process that ran the agents has ended its work: decide on the command line, or where they run."
            : "This link may only watch. Open the address for acting to decide."}
        </p>
      )}
      {failure && <Conflict failure={failure} />}
    </article>
  );
}

function pathTo(run: RunSession, agentId: string): string {
  const names: string[] = [];
  for (let index = run.log.indexOfAgent(agentId); index >= 0; index = run.log.agents[index]?.parent ?? -1) {
    const agent = run.log.agents[index];
    if (agent) names.unshift(`${oneLine(agent.name, 40)} ${shortId(agent.agentId)}`);
  }
  return names.join(" › ");
}

function Times({ run, request }: { readonly run: RunSession; readonly request: RequestRow }) {
  const left = request.expiresAt === null ? null : request.expiresAt - Date.now();
  return (
    <span class="quiet figures">
      at {sinceStart(request.openedAt, run.log.startedAt)}
      {request.status === "open" && left !== null && (left > 0 ? `, expires in ${milliseconds(left)}` : ", expired")}
    </span>
  );
}

function Decided({ request: { decision, status } }: { readonly request: RequestRow }) {
  if (!decision) return status === "closed" ? <p class="note">The turn went on without a decision.</p> : null;
  return (
    <p class="note good">
      <b>{decision.verdict}</b>
      {decision.by !== null && ` by ${oneLine(decision.by, 60)}`}
      {decision.reason !== null && `: ${plainText(decision.reason)}`}
    </p>
  );
}

/** Who was faster, or which fields are to blame. */
function Conflict({ failure }: { readonly failure: FeedFailure }) {
  const { request, issues } = failure;
  const by = request?.decision?.by;
  return (
    <div class="note bad" role="alert">
      <p>
        {request?.decision
          ? `${by == null ? "Somebody" : oneLine(by, 60)} was faster: ${request.decision.verdict}.`
          : plainText(failure.message)}
      </p>
      {issues.length > 0 && (
        <ul>
          {issues.map(({ path, message }) => (
            <li key={`${path} ${message}`}>
              <code>{plainText(path === "" ? "arguments" : path)}</code> {plainText(message)}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

interface ChoicesProps {
  readonly request: RequestRow;
  readonly step: Step;
  readonly setStep: (step: Step) => void;
  readonly isSending: boolean;
  readonly send: (body: DecisionBody) => void;
}

function Choices(props: ChoicesProps) {
  const { request, step, setStep } = props;
  if (step !== "choose") return <Confirmation {...props} />;
  const isApproval = request.kind === "approval";
  return (
    <p class="choices">
      {isApproval && (
        <button type="button" class="primary" onClick={() => setStep("approve")}>
          Approve …
        </button>
      )}
      {isApproval && (
        <button type="button" onClick={() => setStep("edit")}>
          Edit and approve …
        </button>
      )}
      {(request.kind === "client" || request.kind === "question") && (
        <button type="button" class="primary" onClick={() => setStep("answer")}>
          Answer …
        </button>
      )}
      <button type="button" class="danger" onClick={() => setStep("reject")}>
        Reject …
      </button>
    </p>
  );
}

function Confirmation({ request, step, setStep, isSending, send }: ChoicesProps) {
  const [text, setText] = useState(step === "edit" ? JSON.stringify(request.arguments, null, 2) : "");
  const edited = step === "edit" ? parsed(text) : undefined;
  const isBroken = step === "edit" && edited === undefined;
  const confirm = (): void => {
    if (step === "approve") send({ verdict: "approved" });
    else if (step === "edit" && edited !== undefined) send({ verdict: "edited", arguments: edited });
    else if (step === "answer") send({ verdict: "answered", result: text });
    else if (step === "reject") send({ verdict: "rejected", ...(text === "" ? {} : { reason: text }) });
  };
  const labels = {
    choose: "",
    approve: "",
    edit: "Arguments as JSON",
    answer: "Answer",
    reject: "Reason, for the model",
  };
  return (
    <form
      class="confirmation"
      onSubmit={(event) => {
        event.preventDefault();
        confirm();
      }}
    >
      {step !== "approve" && (
        <label>
          <span>{labels[step]}</span>
          <textarea
            rows={step === "edit" ? Math.min(16, text.split("\n").length + 1) : 2}
            class={step === "edit" ? "code" : ""}
            value={text}
            aria-invalid={isBroken}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </label>
      )}
      {isBroken && <p class="note bad">This is no JSON yet.</p>}
      <p class="choices">
        <button class={step === "reject" ? "danger" : "primary"} disabled={isSending || isBroken}>
          {confirmWords(step, oneLine(request.name, 40))}
        </button>
        <button type="button" onClick={() => setStep("choose")}>
          Cancel
        </button>
      </p>
    </form>
  );
}

function confirmWords(step: Step, name: string): string {
  if (step === "approve") return `Run ${name} with these arguments`;
  if (step === "edit") return `Run ${name} with the edited arguments`;
  return step === "answer" ? "Send the answer" : `Reject ${name}`;
}

function parsed(text: string): DecisionBody["arguments"] {
  try {
    return JSON.parse(text) as Exclude<DecisionBody["arguments"], undefined>;
  } catch {
    return undefined;
  }
}
