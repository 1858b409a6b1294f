import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { FeedMessageItem, Prompt, PromptRow } from "../feed/wire.ts";
import { useAsked } from "./asked.ts";
import { errorText } from "./feed-client.ts";
import { useFollowedEnd } from "./followed-end.ts";
import { ForkHere } from "./fork-point.tsx";
import { compact, costOfCall, costText, milliseconds, percent, plural } from "./format.ts";
import { CallAside, callNameOf, callNamesIn, MessageCard, type ShownMessage } from "./message-card.tsx";
import { copyText, info, selectedAgent } from "./page-state.ts";
import { Icon } from "./parts.tsx";
import type { RunSession } from "./run-session.ts";
import { sought, TextView } from "./text-view.tsx";
import { type JsonValue, JsonView, oneLine, plainText } from "./untrusted.tsx";
import { WrittenCalls } from "./written-calls.tsx";

const shownPart = signal<"conversation" | "prompts">("conversation");
const openCall = signal<string | null>(null);
const PAGE = 50;

/** The agent's conversation, and each prompt as it was sent. */
export function MessagesView({ run }: { readonly run: RunSession }) {
  const agent = run.log.agents[selectedAgent.value];
  useEffect(
    () => () => {
      sought.value = null;
    },
    [agent?.agentId],
  );
  if (!agent) return null;
  if (info.value?.namesOnly === true) {
    return <p class="empty">Contents are not shown here: the page was opened with --names-only.</p>;
  }
  const part = sought.value ? "conversation" : shownPart.value;
  const show = (next: typeof part): void => {
    sought.value = null;
    shownPart.value = next;
  };
  return (
    <div class="messages">
      <div class="messages-main">
        <div class="view-bar">
          <span class="segments" role="group" aria-label="Part">
            <button type="button" aria-pressed={part === "conversation"} onClick={() => show("conversation")}>
              Conversation
            </button>
            <button type="button" aria-pressed={part === "prompts"} onClick={() => show("prompts")}>
              Prompts as sent
            </button>
          </span>
          <span class="quiet">
            {part === "conversation"
              ? "The stored messages up to this moment."
              : "One row per model call. Each prompt is rebuilt from the journal and checked by its hash."}
          </span>
        </div>
        {part === "conversation" ? (
          <Conversation key={agent.agentId} run={run} agentId={agent.agentId} />
        ) : (
          <PromptsPane key={agent.agentId} run={run} agentId={agent.agentId} onCall={showCall} />
        )}
      </div>
      {openCall.value !== null && (
        <CallAside run={run} callId={openCall.value} onClose={() => (openCall.value = null)} />
      )}
    </div>
  );
}

function showCall(callId: string): void {
  openCall.value = callId;
}

/** The newest messages of an agent at the moment that the page shows, and the cursor of that moment if it is past. */
export function useMessages(run: RunSession, agentId: string, limit: number) {
  const at = run.isLive.value ? undefined : run.moment.value.cursor;
  const asked = useAsked(
    () => run.client.messages(run.runId, agentId, { limit, ...(at === undefined ? {} : { at }) }),
    { subject: agentId, on: [at, at === undefined ? run.length.value : 0], delayMs: 150 },
  );
  return { ...asked, at };
}

function Conversation({ run, agentId }: { readonly run: RunSession; readonly agentId: string }) {
  const { answer, failure, isWaiting, at } = useMessages(run, agentId, PAGE);
  const [earlier, setEarlier] = useState<{ items: readonly FeedMessageItem[]; next: string | null } | null>(null);
  const [earlierFailure, setEarlierFailure] = useState<string | null>(null);
  useEffect(() => setEarlier(null), [at, answer]);
  const list = useRef<HTMLDivElement>(null);
  // Keeps the search hit visible.
  useFollowedEnd(list, answer !== undefined && failure === null && sought.value === null);
  if (failure !== null) return <p class="empty">{failure}</p>;
  if (!answer) return <p class="empty loading">{isWaiting ? "Reading messages …" : ""}</p>;
  const next = earlier ? earlier.next : answer.next;
  const items = [...(earlier?.items ?? []), ...answer.items];
  const readEarlier = async (): Promise<void> => {
    try {
      const page = await run.client.messages(run.runId, agentId, {
        limit: PAGE,
        ...(next === null ? {} : { before: next }),
        ...(at === undefined ? {} : { at }),
      });
      setEarlier({ items: [...page.items, ...(earlier?.items ?? [])], next: page.next });
    } catch (error) {
      setEarlierFailure(errorText(error));
    }
  };
  const text = run.written.value >= 0 ? run.textOf(agentId) : "";
  const calls = run.written.value >= 0 ? run.callsOf(agentId) : [];
  const names = callNamesIn(items.map(({ message }) => message));
  return (
    <div ref={list} class="message-list" role="log" aria-label="Conversation" tabIndex={0}>
      <div class="list-content">
        {next !== null && (
          <p>
            <button type="button" onClick={() => void readEarlier()}>
              Earlier messages
            </button>
            {earlierFailure !== null && <span class="quiet"> {earlierFailure}</span>}
          </p>
        )}
        {items.length === 0 && text === "" && calls.length === 0 && (
          <p class="empty">There is no message at this moment.</p>
        )}
        {items.map(({ message, step, turnId, isCut }) => (
          <MessageCard
            key={message.id}
            message={message}
            isCut={isCut}
            callName={callNameOf(message, names)}
            place={turnAndStep(turnId, step)}
            onCall={showCall}
            readArtifact={(id) => run.client.artifact(run.runId, agentId, id)}
          />
        ))}
        {(text !== "" || calls.length > 0) && (
          <article class="message assistant">
            <header>
              <b class="role">assistant</b>
              <span class="tag">writing</span>
            </header>
            {text !== "" && <TextView text={text} kind="prose" isWriting />}
            {calls.length > 0 && <WrittenCalls calls={calls} />}
          </article>
        )}
      </div>
    </div>
  );
}

function turnAndStep(turnId: string | null, step: number | null): string {
  const turn = turnId === null ? "" : `turn ${turnId.slice(turnId.indexOf("#") + 1)}`;
  return [turn, step === null || step === 0 ? "" : `step ${step}`].filter((part) => part !== "").join(", ");
}

interface PaneProps {
  readonly run: RunSession;
  readonly agentId: string;
  readonly onCall: (callId: string) => void;
}

/** `seq` of the selected prompt; `null` for the newest at the moment. */
const chosen = signal<number | null>(null);

/** The model calls of an agent, with prompt and answer of the selected one. */
export function PromptsPane({ run, agentId, onCall }: PaneProps) {
  const { answer, failure } = useAsked(() => run.client.prompts(run.runId, agentId), {
    subject: agentId,
    on: [run.length.value],
    delayMs: 500,
  });
  const { cursor } = run.moment.value;
  const rows = useMemo(() => (answer ?? []).filter((row) => row.cursor <= cursor), [answer, cursor]);
  if (failure !== null) return <p class="empty">{failure}</p>;
  if (!answer) return <p class="empty loading">Reading prompts …</p>;
  const row = rows.find(({ seq }) => seq === chosen.value) ?? rows.at(-1);
  if (!row) return <p class="empty">No model call had been made at this moment.</p>;
  const before = rows[rows.indexOf(row) - 1];
  return (
    <div class="prompts">
      <ol class="prompt-list" aria-label="Model calls">
        {rows.map((one) => (
          <li key={one.seq}>
            <button
              type="button"
              class="prompt-row"
              aria-pressed={one === row}
              onClick={() => {
                chosen.value = one.seq;
              }}
            >
              <b>
                step {one.step}
                {one.attempt > 1 && ` · attempt ${one.attempt}`}
              </b>
              <span class={`outcome ${one.outcome}`}>{one.outcome}</span>
              <span class="quiet figures">{one.usage ? `${compact(one.usage.inputTokens)} in` : ""}</span>
              <span class="quiet figures">{one.usage ? `${compact(one.usage.outputTokens)} out` : ""}</span>
              <span class="quiet figures">{one.durationMs === null ? "" : milliseconds(one.durationMs)}</span>
              {one.isLast && <span class="tag">last call</span>}
            </button>
          </li>
        ))}
      </ol>
      <PromptDetail key={row.seq} run={run} agentId={agentId} row={row} before={before} onCall={onCall} />
    </div>
  );
}

interface DetailProps extends PaneProps {
  readonly row: PromptRow;
  readonly before: PromptRow | undefined;
}

function PromptDetail({ run, agentId, row, before, onCall }: DetailProps) {
  const { answer: prompt, failure } = useAsked(() => run.client.prompt(run.runId, agentId, row.seq), {
    subject: row.seq,
    on: [row.outcome],
  });
  const { answer: previous } = useAsked(
    async () => (before ? await run.client.prompt(run.runId, agentId, before.seq) : null),
    { subject: before?.seq, on: [] },
  );
  if (failure !== null) return <p class="empty">{failure}</p>;
  if (!prompt) return <p class="empty loading">Building the prompt again …</p>;
  return (
    <div class="prompt" tabIndex={0} role="region" aria-label={`Prompt of step ${row.step}`}>
      <header class="prompt-head">
        {prompt.isExact ? (
          <span class="pill done" title="Built again from the journal, it has the hash of the prompt that was sent.">
            exact
          </span>
        ) : (
          <span class="pill stopped">not exact</span>
        )}
        {prompt.why !== null && <span>{plainText(prompt.why)}</span>}
        {prompt.isLast && <span class="tag">last permitted call: no tool may be called</span>}
        <span class="spacer" />
        <code class="quiet">{plainText(prompt.promptHash)}</code>
        <ForkHere run={run} agentId={agentId} call={row} />
        <button type="button" onClick={() => void copyText(JSON.stringify(prompt, null, 2), "Prompt")}>
          <Icon name="copy" /> JSON
        </button>
      </header>
      <PromptMessages prompt={prompt} previous={previous ?? undefined} onCall={onCall} />
      <Tools prompt={prompt} />
      <Answer prompt={prompt} onCall={onCall} />
    </div>
  );
}

interface MessagesProps {
  readonly prompt: Prompt;
  readonly previous: Prompt | undefined;
  readonly onCall: (callId: string) => void;
}

/** The messages of a prompt. Messages that the previous step also had are folded; new and changed messages are open. */
function PromptMessages({ prompt, previous, onCall }: MessagesProps) {
  const { same, rest, gone } = useMemo(() => differenceOf(prompt, previous), [prompt, previous]);
  const names = callNamesIn(prompt.messages);
  return (
    <section class="prompt-messages">
      {same.length > 0 && (
        <details class="same">
          <summary>{plural(same.length, "message")} as in the step before</summary>
          {same.map((message) => (
            <MessageCard key={message.id} message={message} callName={callNameOf(message, names)} onCall={onCall} />
          ))}
        </details>
      )}
      {gone > 0 && <p class="note">{plural(gone, "message")} of the step before are no longer sent.</p>}
      {rest.map(({ message, mark }) => (
        <MessageCard
          key={message.id}
          message={message}
          mark={mark}
          callName={callNameOf(message, names)}
          onCall={onCall}
        />
      ))}
    </section>
  );
}

interface Difference {
  /** The number of equal messages at the beginning. */
  readonly same: readonly ShownMessage[];
  readonly rest: readonly { readonly message: ShownMessage; readonly mark: "new" | "changed" | undefined }[];
  readonly gone: number;
}

function differenceOf(prompt: Prompt, previous: Prompt | undefined): Difference {
  if (!previous) return { same: [], rest: prompt.messages.map((message) => ({ message, mark: undefined })), gone: 0 };
  const before = new Map(previous.messages.map((message) => [message.id, JSON.stringify(message.content)]));
  const ids = new Set(prompt.messages.map(({ id }) => id));
  const marked = prompt.messages.map((message) => {
    const known = before.get(message.id);
    const mark = known === undefined ? "new" : known === JSON.stringify(message.content) ? undefined : "changed";
    return { message, mark } as const;
  });
  const first = marked.findIndex(({ mark }) => mark !== undefined);
  const end = first < 0 ? marked.length : first;
  return {
    same: marked.slice(0, end).map(({ message }) => message),
    rest: marked.slice(end),
    gone: previous.messages.filter(({ id }) => !ids.has(id)).length,
  };
}

/** The tools offered to the model, and the parameters of the call. */
export function Tools({ prompt: { tools, parameters } }: { readonly prompt: Prompt }) {
  return (
    <section class="prompt-more">
      <details>
        <summary>
          {tools === null ? "Tools are not known" : plural(tools.length, "tool")}
          <span class="quiet"> {(tools ?? []).map(({ name }) => oneLine(name, 40)).join(", ")}</span>
        </summary>
        {(tools ?? []).map(({ name, description, parameters: schema }) => (
          <details key={name} class="prompt-tool">
            <summary>
              <code>{oneLine(name, 80)}</code> <span class="quiet">{oneLine(description)}</span>
            </summary>
            <p>{plainText(description)}</p>
            <JsonView value={schema as JsonValue} />
          </details>
        ))}
      </details>
      <details>
        <summary>Parameters</summary>
        <JsonView value={parameters as unknown as JsonValue} />
      </details>
    </section>
  );
}

/** The model's answer, or the error of the call. */
export function Answer({ prompt, onCall }: { readonly prompt: Prompt; readonly onCall: (callId: string) => void }) {
  const { answer, usage, error } = prompt;
  const figures = [
    usage
      ? `${compact(usage.inputTokens)} in${usage.cachedInputTokens ? ` (${percent(usage.cachedInputTokens, usage.inputTokens)} cached)` : ""}`
      : "",
    usage ? `${compact(usage.outputTokens)} out` : "",
    usage?.estimated === true ? "counted here" : "",
    usage ? costText(costOfCall(prompt.costMicros)) : "",
    prompt.durationMs === null ? "" : milliseconds(prompt.durationMs),
    prompt.finishReason === null ? "" : `finish ${prompt.finishReason}`,
  ].filter((part) => part !== "");
  return (
    <section class="prompt-answer">
      <h2>
        Answer <span class="quiet figures">{figures.join(" · ")}</span>
      </h2>
      {error && (
        <p class="note bad">
          <code>{error.code}</code> {plainText(error.message)}
        </p>
      )}
      {answer ? <MessageCard message={answer} onCall={onCall} /> : !error && <p class="quiet">No answer yet.</p>}
    </section>
  );
}
