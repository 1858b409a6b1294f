import { signal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { DecisionBody } from "../feed/wire.ts";
import { FeedFailure, type RequestRow, wordsOf } from "./feed-client.ts";
import { milliseconds, plural, shortId, sinceStart } from "./format.ts";
import { TextView } from "./text-view.tsx";
import { type JsonValue, JsonView, LongText, oneLine, plainText } from "./untrusted.tsx";
import { acts, go, info, say, selectAgent } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";

const MOST_SHOWN = 100;

/** The focus is to go to the next open request as soon as that is drawn. */
const isNextWanted = signal(false);

/** Takes the focus to the next request that somebody has to decide. */
export function showNextRequest(run: RunSession): void {
  const newest = run.moments.at(run.length.peek());
  if (!newest.agents.some((agent) => agent !== undefined && agent.requests.length > 0)) {
    say("Nothing waits for a decision");
    return;
  }
  isNextWanted.value = true;
  go({ view: "requests" });
}

/** Focuses what can be done first about the open request behind the one that has the focus. */
function focusNext(list: HTMLElement): boolean {
  const cards = [...list.querySelectorAll<HTMLElement>("article.request:not(.over)")];
  const at = cards.findIndex((card) => card.contains(document.activeElement));
  const card = cards[(at + 1) % cards.length];
  (card?.querySelector<HTMLElement>(firstControl) ?? card)?.focus();
  return card !== undefined;
}

const firstControl = ".confirmation textarea, .choices button";

/** The focus of a request that was decided goes to the next open one, else to the list. */
export function useKeptFocus(list: RefObject<HTMLElement | null>): void {
  const hadFocus = list.current?.contains(document.activeElement) === true;
  useLayoutEffect(() => {
    const { current } = list;
    if (hadFocus && current && !current.contains(document.activeElement) && !focusNext(current)) current.focus();
  });
}

/** Everything in this run that somebody has to decide, and what was decided. */
export function RequestsView({ run }: { readonly run: RunSession }) {
  const all = run.requests.value;
  const open = all.filter(({ status }) => status === "open");
  // What somebody else has decided meanwhile stays where it is until that was read.
  const first = all.filter((one) => one.status === "open" || hasDraft(one));
  const over = all.filter((one) => !first.includes(one)).toSorted((one, other) => other.openedAt - one.openedAt);
  const list = useRef<HTMLDivElement>(null);
  useKeptFocus(list);
  useLayoutEffect(() => {
    if (isNextWanted.value && list.current && focusNext(list.current)) isNextWanted.value = false;
  }, [isNextWanted.value, open.length]);
  useEffect(
    () => () => {
      isNextWanted.value = false;
    },
    [],
  );
  if (all.length === 0) {
    return (
      <p class="empty">
        Nothing waits for a decision. Calls that need approval, questions and missing credentials show up here.
      </p>
    );
  }
  return (
    <div ref={list} class="requests" tabIndex={0} role="region" aria-label="Requests">
      {!run.isLive.value && open.length > 0 && <p class="note">You look at the past; what is open here is open now.</p>}
      {open.length > 0 && acts.value && (
        <p class="quiet">Nothing happens at the first press: each decision is confirmed, and no key alone approves.</p>
      )}
      {first.length > 0 && <h2 class="visually-hidden">Waiting for a decision</h2>}
      {first
        .toSorted((one, other) => one.openedAt - other.openedAt)
        .slice(0, MOST_SHOWN)
        .map((request) => (
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

/** How far the person is with a request. */
interface Draft {
  readonly step: Step;
  /** Why the decision was not taken. */
  readonly failure: FeedFailure | null;
}
const nothingBegun: Draft = { step: "choose", failure: null };

/** By request: a card is drawn elsewhere, or anew, while somebody is about to decide. */
const drafts = signal<ReadonlyMap<string, Draft>>(new Map());

/** Is the person about to decide, or has to hear that somebody else has? */
export function hasDraft({ requestId }: RequestRow): boolean {
  return drafts.value.has(requestId);
}

function setDraft(requestId: string, draft: Draft): void {
  const next = new Map(drafts.peek());
  if (draft.step === "choose" && draft.failure === null) next.delete(requestId);
  else next.set(requestId, draft);
  drafts.value = next;
}

const kindWords: Readonly<Record<RequestRow["kind"], string>> = {
  approval: "wants to run",
  client: "asks its caller to run",
  question: "asks",
  auth: "needs credentials for",
};

/** One request for a decision. The decision carries the hash of what is shown here. */
export function RequestCard({ run, request }: { readonly run: RunSession; readonly request: RequestRow }) {
  const { requestId, agentId, agentName, argumentsHash, decision } = request;
  const { step, failure } = drafts.value.get(requestId) ?? nothingBegun;
  const [isSending, setSending] = useState(false);
  const act = acts.value;
  const setStep = (next: Step): void => setDraft(requestId, { step: next, failure: null });
  const send = async (body: DecisionBody): Promise<void> => {
    setSending(true);
    setDraft(requestId, { step, failure: null });
    try {
      await act?.decide(requestId, { ...body, argumentsHash });
      say(`${oneLine(request.name, 40)}: ${verdictWords[body.verdict]}`);
      await run.readRequests().catch(() => undefined);
      setStep("choose");
    } catch (error) {
      const reason = error instanceof FeedFailure ? error : new FeedFailure("unknown", wordsOf(error));
      setDraft(requestId, { step, failure: reason });
      if (reason.request) await run.readRequests().catch(() => undefined);
    }
    setSending(false);
  };
  const card = useRef<HTMLElement>(null);
  const shownStep = useRef(step);
  useLayoutEffect(() => {
    const left = shownStep.current;
    shownStep.current = step;
    if (left === step || !card.current) return;
    const control = step === "choose" ? `[data-step=${left}]` : ".confirmation textarea, .confirmation button";
    card.current.querySelector<HTMLElement>(control)?.focus();
  }, [step]);
  const isOpen = request.status === "open";
  const isOvertaken = !isOpen && !isSending && hasDraft(request);
  return (
    <article
      ref={card}
      class={isOpen ? "request" : "request over"}
      aria-label={`Request of ${plainText(agentName)}`}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key === "Escape" && isOpen && step !== "choose" && !isSending) setStep("choose");
        // A key that is held down would press the button that has got the focus meanwhile.
        else if (!(event.key === "Enter" && event.repeat && event.target instanceof HTMLButtonElement)) return;
        event.preventDefault();
      }}
    >
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
      {decision?.arguments !== undefined && (
        <div role="group" aria-label="Arguments as decided">
          <h3>As decided</h3>
          <JsonView value={decision.arguments as JsonValue} />
        </div>
      )}
      <div role="group" aria-label="Arguments">
        {decision?.arguments !== undefined && <h3>As asked for, not run</h3>}
        <JsonView value={request.arguments as JsonValue} />
        <code class="id" title={`Hash of these arguments: ${plainText(argumentsHash)}`}>
          {plainText(argumentsHash)}
        </code>
      </div>
      {!isOpen && <Decided run={run} request={request} />}
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
      {isOvertaken ? (
        <Overtaken request={failure?.request ?? request} onRead={() => setStep("choose")} />
      ) : (
        failure && <Mistakes failure={failure} />
      )}
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

type Verdict = NonNullable<RequestRow["decision"]>["verdict"];

const verdictWords: Readonly<Record<Verdict, string>> = {
  approved: "approved",
  edited: "approved with other arguments",
  rejected: "rejected",
  answered: "answered",
  provided: "provided",
  expired: "expired",
};

/** What was decided, by whom and when, with the answer. */
function Decided({ run, request }: { readonly run: RunSession; readonly request: RequestRow }) {
  const { decision, decidedAt } = request;
  if (!decision) return <p class="note">The turn went on without a decision.</p>;
  const { verdict, by, reason, result } = decision;
  const isRefused = verdict === "rejected" || verdict === "expired";
  return (
    <>
      {result && (
        <div role="group" aria-label="Answer">
          <h3>{result.isError ? "Answer: an error" : "Answer"}</h3>
          <TextView text={result.text} kind="data" isFolded />
        </div>
      )}
      <p class={isRefused ? "note bad" : "note good"}>
        <b>{verdictWords[verdict]}</b>
        {by !== null && ` by ${oneLine(by, 60)}`}
        {decidedAt !== null && ` at ${sinceStart(decidedAt, run.log.startedAt)}`}
        {reason !== null && `: ${plainText(reason)}`}
      </p>
    </>
  );
}

/** Somebody else has decided while this person was about to. Stays until it was read. */
function Overtaken({ request, onRead }: { readonly request: RequestRow; readonly onRead: () => void }) {
  const { decision } = request;
  const by = decision?.by;
  return (
    <div class="note bad overtaken" role="alert">
      <p>
        {decision
          ? `${by == null ? "Somebody" : oneLine(by, 60)} was faster: ${verdictWords[decision.verdict]}.`
          : "The turn went on without a decision."}{" "}
        Your decision was not taken.
      </p>
      <button type="button" onClick={onRead}>
        OK
      </button>
    </div>
  );
}

/** Why a decision was not taken, and which fields are to blame. */
function Mistakes({ failure }: { readonly failure: FeedFailure }) {
  const { issues } = failure;
  return (
    <div class="note bad" role="alert">
      <p>{plainText(failure.message)}</p>
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
        <button type="button" class="primary" data-step="approve" onClick={() => setStep("approve")}>
          Approve …
        </button>
      )}
      {isApproval && (
        <button type="button" data-step="edit" onClick={() => setStep("edit")}>
          Edit and approve …
        </button>
      )}
      {(request.kind === "client" || request.kind === "question") && (
        <button type="button" class="primary" data-step="answer" onClick={() => setStep("answer")}>
          Answer …
        </button>
      )}
      <button type="button" class="danger" data-step="reject" onClick={() => setStep("reject")}>
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
        if (!isSending) confirm();
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
        {/* A disabled button would lose the focus. */}
        <button class={step === "reject" ? "danger" : "primary"} disabled={isBroken} aria-disabled={isSending}>
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
