import { signal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { DecisionBody } from "../feed/wire.ts";
import { AlikeRequests } from "./alike-requests.tsx";
import { ArgumentsForm, hasForm, jsonIn } from "./arguments-form.tsx";
import { useAsked } from "./asked.ts";
import { errorText, FeedFailure, type RequestRow } from "./feed-client.ts";
import { amountText, grouped, limitWord, milliseconds, plural, shortId, sinceStart } from "./format.ts";
import { acts, go, info, say, selectAgent } from "./page-state.ts";
import type { RunSession } from "./run-session.ts";
import { TextView } from "./text-view.tsx";
import { type JsonValue, JsonView, LongText, oneLine, plainText } from "./untrusted.tsx";
import { verdictWord } from "./verdicts.ts";

const MOST_SHOWN = 100;

/** Whether to move the focus to the next open request once it is rendered. */
const isNextWanted = signal(false);

/** Moves the focus to the next open request. */
export function showNextRequest(run: RunSession): void {
  const newest = run.moments.at(run.length.peek());
  if (!newest.agents.some((agent) => agent !== undefined && agent.requests.length > 0)) {
    say("Nothing waits for a decision");
    return;
  }
  isNextWanted.value = true;
  go({ view: "requests" });
}

/** Focuses the first action of the open request after the focused one. */
function focusNext(list: HTMLElement): boolean {
  const cards = [...list.querySelectorAll<HTMLElement>("article.request:not(.over)")];
  const at = cards.findIndex((card) => card.contains(document.activeElement));
  const card = cards[(at + 1) % cards.length];
  (card?.querySelector<HTMLElement>(firstControl) ?? card)?.focus();
  return card !== undefined;
}

const firstField = ".confirmation :is(input, select, textarea), .confirmation button";
const firstControl = `${firstField}, .choices button`;

/** When a focused request is decided, moves the focus to the next open request, else to the list. */
export function useKeptFocus(list: RefObject<HTMLElement | null>): void {
  const hadFocus = list.current?.contains(document.activeElement) === true;
  useLayoutEffect(() => {
    const { current } = list;
    if (hadFocus && current && !current.contains(document.activeElement) && !focusNext(current)) current.focus();
  });
}

/** The requests of this run: open requests first, then decided ones. */
export function RequestsView({ run }: { readonly run: RunSession }) {
  const all = run.requests.value;
  const open = all.filter(({ status }) => status === "open");
  // A request that another client decided keeps its position until the person dismisses the message.
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
      {!run.isLive.value && <p class="note">You look at the past; requests are shown as they are now.</p>}
      {open.length > 0 && acts.value && (
        <p class="quiet">The first press decides nothing: you confirm each decision, and no single key approves.</p>
      )}
      <AlikeRequests run={run} />
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

/** The action that the person has chosen. It is sent only after a second press. */
type Step = "choose" | "approve" | "reject" | "edit" | "answer" | "option" | "done";

/** The person's unfinished decision on a request. */
interface Draft {
  readonly step: Step;
  /** The selected option. */
  readonly option: string;
  /** The answer or the reason as typed so far. */
  readonly text: string;
  /** The arguments as edited so far; `undefined` before the first edit. */
  readonly edit: Edit | undefined;
  /** Why the decision was rejected. */
  readonly failure: FeedFailure | null;
}
const nothingBegun: Draft = { step: "choose", option: "", text: "", edit: undefined, failure: null };

/** Arguments that are being edited. */
interface Edit {
  readonly value: JsonValue;
  /** The text of the JSON editor; `null` while the form is shown. */
  readonly json: string | null;
  /** Paths of the form's fields whose JSON text is invalid. */
  readonly broken: readonly string[];
}

/** Drafts by request. They outlive the cards, which may move or be rendered anew meanwhile. */
const drafts = signal<ReadonlyMap<string, Draft>>(new Map());

/** Whether the person has started a decision, or has not yet dismissed the message that another client decided. */
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
  budget: "asks for more budget for",
};

/** One request for a decision. The decision is sent with the hash of the shown arguments. */
export function RequestCard({ run, request }: { readonly run: RunSession; readonly request: RequestRow }) {
  const { requestId, agentId, agentName, argumentsHash, decision } = request;
  const draft = drafts.value.get(requestId) ?? nothingBegun;
  const { step, failure } = draft;
  const [isSending, setSending] = useState(false);
  const act = acts.value;
  const setStep = (next: Step, option = ""): void => setDraft(requestId, { ...nothingBegun, step: next, option });
  const send = async (body: DecisionBody): Promise<void> => {
    setSending(true);
    setDraft(requestId, { ...draft, failure: null });
    try {
      await act?.decide(requestId, { ...body, argumentsHash });
      say(`${oneLine(request.name, 40)}: ${verdictWord(request.kind, body.verdict)}`);
      await run.readRequests().catch(() => undefined);
      setStep("choose");
    } catch (error) {
      const reason = error instanceof FeedFailure ? error : new FeedFailure("unknown", errorText(error));
      setDraft(requestId, { ...draft, failure: reason });
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
    const control = step === "choose" ? `[data-step=${left}]` : firstField;
    card.current.querySelector<HTMLElement>(control)?.focus();
  }, [step]);
  const isOpen = request.status === "open";
  const { said, parameters } = useCall(run, request);
  const isOvertaken = !isOpen && !isSending && hasDraft(request);
  return (
    <article
      ref={card}
      class={isOpen ? "request" : "request over"}
      aria-label={`Request of ${plainText(agentName)}`}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key === "Escape" && isOpen && step !== "choose" && !isSending) setStep("choose");
        // A key held down would press the button that received the focus meanwhile.
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
      {said !== "" && (
        <div role="group" aria-label="What the model said">
          <p class="request-path quiet">Before the call it said</p>
          <TextView text={said} kind="prose" isFolded />
        </div>
      )}
      <div class="request-prompt">
        <LongText text={request.prompt} />
      </div>
      {isOpen && <PageToVisit request={request} />}
      {decision?.arguments !== undefined && (
        <div role="group" aria-label="Arguments as decided">
          <h3>As decided</h3>
          <JsonView value={decision.arguments as JsonValue} />
        </div>
      )}
      <div role="group" aria-label="Arguments">
        {decision?.arguments !== undefined && <h3>As asked for, not run</h3>}
        <JsonView value={request.arguments as JsonValue} openDepth={4} />
        <code class="id" title={`Hash of these arguments: ${plainText(argumentsHash)}`}>
          {plainText(argumentsHash)}
        </code>
      </div>
      {!isOpen && <Decided run={run} request={request} />}
      {isOpen && act && (
        <Choices
          request={request}
          draft={draft}
          parameters={parameters}
          setStep={setStep}
          change={(changed) => {
            const now = drafts.peek().get(requestId) ?? draft;
            setDraft(requestId, { ...now, ...changed(now) });
          }}
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

/** A link to the page that the person has to visit. The address comes from a tool, so it is shown in full. */
function PageToVisit({ request }: { readonly request: RequestRow }) {
  const page = pageOf(request);
  if (page === undefined) return null;
  return (
    <p class="request-page">
      <a href={page.href} target="_blank" rel="noopener noreferrer">
        {page.href}
      </a>
    </p>
  );
}

/** The address with TLS, or on this machine, that a tool asks to visit. */
function pageOf({ kind, isAsked, arguments: given }: RequestRow): URL | undefined {
  if (kind !== "auth" || isAsked !== true || typeof given !== "object" || given === null || !("url" in given))
    return undefined;
  const page = typeof given.url === "string" ? URL.parse(given.url) : null;
  if (page === null || page.username !== "" || page.password !== "") return undefined;
  const isHere = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(page.hostname);
  return page.protocol === "https:" || (page.protocol === "http:" && isHere) ? page : undefined;
}

function pathTo(run: RunSession, agentId: string): string {
  const names: string[] = [];
  for (let index = run.log.indexOfAgent(agentId); index >= 0; index = run.log.agents[index]?.parent ?? -1) {
    const agent = run.log.agents[index];
    if (agent) names.unshift(`${oneLine(agent.name, 40)} ${shortId(agent.agentId)}`);
  }
  return names.join(" › ");
}

/** The model's text before the call of an open request, which one for more budget does not have, and the JSON Schema of the arguments. */
function useCall(run: RunSession, { callId, status, kind }: RequestRow) {
  const isWanted = status === "open" && kind !== "auth" && kind !== "budget" && info.value?.namesOnly !== true;
  const { answer } = useAsked(async () => (isWanted ? await run.client.call(run.runId, callId) : null), {
    subject: callId,
    on: [status],
  });
  return { said: answer?.said ?? "", parameters: (answer?.parameters ?? null) as JsonValue };
}

/** When the request was opened, and how long it has waited until the page's moment. */
function Times({ run, request }: { readonly run: RunSession; readonly request: RequestRow }) {
  const { openedAt, decidedAt, expiresAt, status } = request;
  const now = run.time;
  const end = decidedAt ?? (status === "open" ? Number.POSITIVE_INFINITY : null);
  const isWaiting = end !== null && now < end;
  const left = expiresAt === null ? null : expiresAt - now;
  return (
    <span class="quiet figures">
      at {sinceStart(openedAt, run.log.startedAt)}
      {now < openedAt
        ? ", later than this moment"
        : end !== null && (
            <>
              , <b>{isWaiting ? "waits" : "waited"}</b> {waitText(Math.min(now, end) - openedAt)}
            </>
          )}
      {isWaiting && left !== null && (left > 0 ? `, expires in ${waitText(left)}` : ", expired")}
    </span>
  );
}

/** Formats a duration; below a minute in whole seconds. */
function waitText(amountMs: number): string {
  return amountMs < 60_000 ? `${Math.floor(Math.max(0, amountMs) / 1_000)} s` : milliseconds(amountMs);
}

/** The decision, its author, its time and the answer. */
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
        <b>{verdictWord(request.kind, verdict)}</b>
        {by !== null && ` by ${oneLine(by, 60)}`}
        {decidedAt !== null && ` at ${sinceStart(decidedAt, run.log.startedAt)}`}
        {reason !== null && `: ${plainText(reason)}`}
      </p>
    </>
  );
}

/** Shown if another client decided the request while this person was deciding. Stays until the person dismisses it. */
function Overtaken({ request, onRead }: { readonly request: RequestRow; readonly onRead: () => void }) {
  const { decision } = request;
  const by = decision?.by;
  return (
    <div class="note bad overtaken" role="alert">
      <p>
        {decision
          ? `${by == null ? "Another person" : oneLine(by, 60)} was faster: ${verdictWord(request.kind, decision.verdict)}.`
          : "The turn went on without a decision."}{" "}
        Your decision was not taken.
      </p>
      <button type="button" onClick={onRead}>
        OK
      </button>
    </div>
  );
}

/** Why a decision was rejected, and which fields are invalid. */
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
  readonly draft: Draft;
  /** JSON Schema of the arguments; `null` if it is not known. */
  readonly parameters: JsonValue;
  readonly setStep: (step: Step, option?: string) => void;
  /** Changes the newest draft, which may be newer than the drawn one. */
  readonly change: (changed: (draft: Draft) => Partial<Draft>) => void;
  readonly isSending: boolean;
  readonly send: (body: DecisionBody) => void;
}

/** With more options than this, the person types the answer. */
const MOST_OPTIONS = 20;

interface MoreBudget {
  readonly limit: string;
  /** The proposed amount, in dollars for the cost. */
  readonly add: number;
  readonly isCost: boolean;
  /** The proposed amount with its unit. */
  readonly words: string;
}

/** What a request for more budget proposes; `undefined` for other requests. */
function budgetOf({ kind, arguments: given }: RequestRow): MoreBudget | undefined {
  if (kind !== "budget") return undefined;
  const { limit, add } = Object(given) as { readonly limit?: unknown; readonly add?: unknown };
  if (typeof limit !== "string" || typeof add !== "number") return undefined;
  const isCost = limit === "maxCostMicros";
  return { limit, add, isCost, words: isCost ? amountText(limit, add * 1e6) : `${grouped(add)} ${limitWord(limit)}` };
}

/** The answers that a question offers. */
function optionsOf({ kind, arguments: given }: RequestRow): readonly string[] {
  if (kind !== "question" || typeof given !== "object" || given === null || !("options" in given)) return [];
  const { options } = given;
  const isList = Array.isArray(options) && options.length <= MOST_OPTIONS;
  return isList && options.every((one) => typeof one === "string") ? options : [];
}

function Choices(props: ChoicesProps) {
  const { request, draft, setStep, change } = props;
  if (draft.step !== "choose") return <Confirmation {...props} />;
  const isApproval = request.kind === "approval";
  const more = budgetOf(request);
  const options = optionsOf(request);
  return (
    <p class="choices">
      {more && (
        <>
          <button type="button" class="primary" data-step="approve" onClick={() => setStep("approve")}>
            Continue with {more.words} more …
          </button>
          <button
            type="button"
            data-step="edit"
            onClick={() => change(() => ({ step: "edit", text: String(more.add) }))}
          >
            Another amount …
          </button>
        </>
      )}
      {isApproval && (
        <button type="button" class="primary" data-step="approve" onClick={() => setStep("approve")}>
          Approve …
        </button>
      )}
      {isApproval && request.isAsked !== true && (
        <button type="button" data-step="edit" onClick={() => setStep("edit")}>
          Edit and approve …
        </button>
      )}
      {options.map((option) => (
        <button key={option} type="button" class="option" data-step="option" onClick={() => setStep("option", option)}>
          {oneLine(option, 120)}
        </button>
      ))}
      {(request.kind === "client" || request.kind === "question") && (
        <button
          type="button"
          class={options.length > 0 ? "" : "primary"}
          data-step="answer"
          onClick={() => setStep("answer")}
        >
          {options.length > 0 ? "Another answer …" : "Answer …"}
        </button>
      )}
      {request.kind === "auth" && request.isAsked === true && (
        <button type="button" class="primary" data-step="done" onClick={() => setStep("done")}>
          Done …
        </button>
      )}
      <button type="button" class="danger" data-step="reject" onClick={() => setStep("reject")}>
        {more ? "Stop …" : "Reject …"}
      </button>
    </p>
  );
}

function Confirmation(props: ChoicesProps) {
  const { request, draft, setStep, change, isSending, send } = props;
  const { step, option, text } = draft;
  const edit = draft.edit ?? firstEdit(props);
  const more = budgetOf(request);
  const isBroken = step === "edit" && more === undefined && isEditBroken(edit);
  const confirm = (): void => {
    if (step === "approve") send({ verdict: "approved" });
    else if (step === "done") send({ verdict: "provided" });
    else if (step === "edit" && more) send({ verdict: "edited", arguments: { add: Number(text) } });
    else if (step === "edit")
      send({ verdict: "edited", arguments: edit.value as Exclude<DecisionBody["arguments"], undefined> });
    else if (step === "answer" || step === "option")
      send({ verdict: "answered", result: step === "option" ? option : text });
    else if (step === "reject") send({ verdict: "rejected", ...(text === "" ? {} : { reason: text }) });
  };
  return (
    <form
      class="confirmation"
      onSubmit={(event) => {
        event.preventDefault();
        if (!isSending && !isBroken) confirm();
      }}
    >
      {step === "edit" &&
        (more ? (
          <label>
            <span>{more.isCost ? "Dollars to add" : `${limitWord(more.limit)} to add`}</span>
            <input
              type="number"
              required
              min={more.isCost ? 0 : 1}
              step={more.isCost ? "any" : 1}
              value={text}
              onInput={({ currentTarget }) => change(() => ({ text: currentTarget.value }))}
            />
          </label>
        ) : (
          <Edited {...props} edit={edit} />
        ))}
      {(step === "answer" || step === "reject") && (
        <label>
          <span>{step === "answer" ? "Answer" : more ? "Reason" : "Reason, for the model"}</span>
          <textarea
            rows={2}
            value={text}
            onInput={({ currentTarget }) => change(() => ({ text: currentTarget.value }))}
          />
        </label>
      )}
      <p class="choices">
        {/* A disabled button would lose the focus. */}
        <button class={step === "reject" ? "danger" : "primary"} disabled={isBroken} aria-disabled={isSending}>
          {more ? budgetWords(draft, more.words) : confirmWords(draft, oneLine(request.name, 40))}
        </button>
        <button type="button" onClick={() => setStep("choose")}>
          Cancel
        </button>
      </p>
    </form>
  );
}

/** A form where the schema names the arguments, else JSON. */
function firstEdit({ request, parameters }: ChoicesProps): Edit {
  const value = request.arguments as JsonValue;
  return { value, json: hasForm(parameters, value) ? null : jsonText(value), broken: [] };
}

function jsonText(value: JsonValue): string {
  return JSON.stringify(value, null, 2);
}

function isEditBroken({ json, broken }: Edit): boolean {
  return json === null ? broken.length > 0 : jsonIn(json) === undefined;
}

/** The arguments as form fields if their schema allows it, or as JSON. */
function Edited({ draft, parameters, change, edit }: ChoicesProps & { readonly edit: Edit }) {
  const { value, json, broken } = edit;
  const isBroken = isEditBroken(edit);
  const set = (changed: (edit: Edit) => Partial<Edit>): void =>
    change((newest) => {
      const now = newest.edit ?? edit;
      return { edit: { ...now, ...changed(now) } };
    });
  // A field that is rendered anew shows its last valid value.
  useEffect(() => {
    if (broken.length > 0) set(() => ({ broken: [] }));
  }, []);
  return (
    <>
      {json === null ? (
        hasForm(parameters, value) && (
          <ArgumentsForm
            schema={parameters}
            value={value}
            issues={draft.failure?.issues ?? []}
            onChange={(next) => set(() => ({ value: next }))}
            onBroken={(path, isWrong) =>
              set((now) => {
                const rest = now.broken.filter((one) => one !== path);
                return { broken: isWrong ? [...rest, path] : rest };
              })
            }
          />
        )
      ) : (
        <label>
          <span>Arguments as JSON</span>
          <textarea
            rows={Math.min(16, json.split("\n").length + 1)}
            class="code"
            value={json}
            aria-invalid={isBroken}
            onInput={({ currentTarget }) => {
              const next = jsonIn(currentTarget.value);
              set(() => ({ json: currentTarget.value, ...(next === undefined ? {} : { value: next }) }));
            }}
          />
        </label>
      )}
      {json !== null && isBroken && <p class="note bad">This is not valid JSON yet.</p>}
      {hasForm(parameters, value) && (
        <p>
          <button
            type="button"
            class="link"
            disabled={isBroken}
            onClick={() => set((now) => ({ json: now.json === null ? jsonText(now.value) : null }))}
          >
            {json === null ? "Edit as JSON" : "Edit as a form"}
          </button>
        </p>
      )}
    </>
  );
}

function budgetWords({ step }: Draft, words: string): string {
  if (step === "approve") return `Add ${words} and continue`;
  return step === "edit" ? "Add it and continue" : "Stop the turn at its limit";
}

function confirmWords({ step, option }: Draft, name: string): string {
  if (step === "approve") return `Run ${name} with these arguments`;
  if (step === "done") return `Continue ${name}`;
  if (step === "edit") return `Run ${name} with the edited arguments`;
  if (step === "option") return `Answer “${oneLine(option, 80)}”`;
  return step === "answer" ? "Send the answer" : `Reject ${name}`;
}
