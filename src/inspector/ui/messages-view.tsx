import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { FeedMessageItem } from "../feed/wire.ts";
import { useAsked } from "./asked.ts";
import { CallAside } from "./call-detail.tsx";
import { info, selectedAgent } from "./page-state.ts";
import { callNameOf, callNamesIn, MessageCard } from "./message-card.tsx";
import { PromptsPane } from "./prompts-pane.tsx";
import { wordsOf } from "./feed-client.ts";
import { plainText } from "./untrusted.tsx";
import type { RunSession } from "./run-session.ts";

const shownPart = signal<"conversation" | "prompts">("conversation");
const openCall = signal<string | null>(null);
const PAGE = 50;

/** What the agent said and was told, and each prompt as it was sent. */
export function MessagesView({ run }: { readonly run: RunSession }) {
  const agent = run.log.agents[selectedAgent.value];
  if (!agent) return null;
  if (info.value?.namesOnly === true) {
    return <p class="empty">Contents are not shown here: the page was opened with --names-only.</p>;
  }
  return (
    <div class="messages">
      <div class="messages-main">
        <div class="view-bar">
          <span class="segments" role="group" aria-label="Part">
            <button
              type="button"
              aria-pressed={shownPart.value === "conversation"}
              onClick={() => (shownPart.value = "conversation")}
            >
              Conversation
            </button>
            <button
              type="button"
              aria-pressed={shownPart.value === "prompts"}
              onClick={() => (shownPart.value = "prompts")}
            >
              Prompts as sent
            </button>
          </span>
          <span class="quiet">
            {shownPart.value === "conversation"
              ? "The stored messages until this moment."
              : "One row a model call; each prompt is built again from the journal and checked by its hash."}
          </span>
        </div>
        {shownPart.value === "conversation" ? (
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

function Conversation({ run, agentId }: { readonly run: RunSession; readonly agentId: string }) {
  const moment = run.moment.value;
  const at = run.isLive.value ? undefined : moment.cursor;
  const { answer, failure, isWaiting } = useAsked(
    () => run.client.messages(run.runId, agentId, { limit: PAGE, ...(at === undefined ? {} : { at }) }),
    { subject: agentId, on: [at, at === undefined ? run.length.value : 0], delayMs: 150 },
  );
  const [earlier, setEarlier] = useState<{ items: readonly FeedMessageItem[]; next: string | null } | null>(null);
  const [earlierFailure, setEarlierFailure] = useState<string | null>(null);
  useEffect(() => setEarlier(null), [at, answer]);
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
      setEarlierFailure(wordsOf(error));
    }
  };
  const text = run.written.value >= 0 ? run.textOf(agentId) : "";
  const names = callNamesIn(items.map(({ message }) => message));
  return (
    <div class="message-list" role="log" aria-label="Conversation" tabIndex={0}>
      {next !== null && (
        <p>
          <button type="button" onClick={() => void readEarlier()}>
            Earlier messages
          </button>
          {earlierFailure !== null && <span class="quiet"> {earlierFailure}</span>}
        </p>
      )}
      {items.length === 0 && text === "" && <p class="empty">There is no message at this moment.</p>}
      {items.map(({ message, step, turnId, isCut }) => (
        <MessageCard
          key={message.id}
          message={message}
          isCut={isCut}
          callName={callNameOf(message, names)}
          place={placeOf(turnId, step)}
          onCall={showCall}
        />
      ))}
      {text !== "" && (
        <article class="message assistant">
          <header>
            <b class="role">assistant</b>
            <span class="tag">writing</span>
          </header>
          <div class="long-text">{plainText(text)}</div>
        </article>
      )}
    </div>
  );
}

function placeOf(turnId: string | null, step: number | null): string {
  const turn = turnId === null ? "" : `turn ${turnId.slice(turnId.indexOf("#") + 1)}`;
  return [turn, step === null || step === 0 ? "" : `step ${step}`].filter((part) => part !== "").join(", ");
}
