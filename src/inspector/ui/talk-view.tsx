import { useEffect, useRef } from "preact/hooks";
import { isBusy } from "../run-model/agent-moment.ts";
import { useAsked } from "./asked.ts";
import { Composer } from "./composer.tsx";
import { phaseWords, PhaseIcon } from "./icons.tsx";
import { MessageCard } from "./message-card.tsx";
import { client, goLive } from "./page-state.ts";
import { RequestCard } from "./request-card.tsx";
import type { RunSession } from "./run-session.ts";
import { doing } from "./tree-view.tsx";
import { LongText, oneLine } from "./untrusted.tsx";

const MOST_MESSAGES = 60;

/** A conversation with the root of the run; the tree beside it moves along. */
export function TalkView({ run }: { readonly run: RunSession }) {
  const act = client.value?.act;
  const root = run.log.agents[0];
  const rootId = root?.agentId ?? run.runId;
  const { answer, failure } = useAsked(() => run.client.messages(run.runId, rootId, { limit: MOST_MESSAGES }), {
    subject: rootId,
    on: [run.length.value],
    delayMs: 120,
  });
  const text = run.written.value >= 0 ? run.textOf(rootId) : "";
  const list = useRef<HTMLDivElement>(null);
  const shown = (answer?.items ?? []).filter(
    ({ message }) =>
      message.role !== "tool" && message.role !== "system" && (message.role === "user" || hasText(message.content)),
  );
  // Of the list alone: on a narrow screen all that is around it scrolls too.
  useEffect(() => list.current?.scrollTo({ top: list.current.scrollHeight }), [shown.length, text.length > 0]);
  const now = run.moment.value.agents[0];
  const open = run.requests.value.filter(({ status }) => status === "open");
  return (
    <div class="talk">
      <div ref={list} class="talk-list" role="log" aria-label="Conversation" tabIndex={0}>
        {failure !== null && <p class="empty">{failure}</p>}
        {answer && shown.length === 0 && text === "" && <p class="empty">Nothing has been said yet.</p>}
        {shown.map(({ message, isCut }) => (
          <MessageCard key={message.id} message={message} isCut={isCut} />
        ))}
        {text !== "" && (
          <article class="message assistant writing-now">
            <header>
              <b class="role">assistant</b>
              <span class="tag">writing</span>
            </header>
            <LongText text={text} />
          </article>
        )}
        {run.isLive.value && now && isBusy(now) && (
          <p class="talk-doing" aria-live="polite">
            <PhaseIcon phase={now.phase} /> {oneLine(root?.name ?? "", 40)}: {phaseWords[now.phase]}
            <span class="quiet">{doing(now) === phaseWords[now.phase] ? "" : doing(now)}</span>
          </p>
        )}
        {open.map((request) => (
          <RequestCard key={request.requestId} run={run} request={request} />
        ))}
      </div>
      {act ? (
        <Composer
          label={`Write to ${oneLine(root?.name ?? "", 40)}`}
          send={async ({ key, text: written, images }) => {
            goLive(run);
            await act.startTurn(rootId, {
              key,
              text: written,
              ifBusy: "queue",
              ...(images.length > 0 ? { images } : {}),
            });
          }}
        />
      ) : (
        <p class="note">This link may only watch; one can talk where agents run and the address allows acting.</p>
      )}
    </div>
  );
}

function hasText(content: string | readonly unknown[]): boolean {
  return typeof content !== "string" || content !== "";
}
