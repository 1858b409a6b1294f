import { signal } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import { isBusy } from "../run-model/agent-moment.ts";
import { errorText } from "./feed-client.ts";
import { useFollowedEnd } from "./followed-end.ts";
import { MessageCard } from "./message-card.tsx";
import { useMessages } from "./messages-view.tsx";
import { acts, go, goLive, info } from "./page-state.ts";
import { Icon, PhaseIcon, phaseWords } from "./parts.tsx";
import { hasDraft, RequestCard, useKeptFocus } from "./requests-view.tsx";
import type { RunSession } from "./run-session.ts";
import { TextView } from "./text-view.tsx";
import { doing } from "./tree-view.tsx";
import { oneLine, plainText } from "./untrusted.tsx";

const MOST_MESSAGES = 60;

/** A conversation with the root agent of the run. The tree beside it shows the work live. */
export function TalkView({ run }: { readonly run: RunSession }) {
  const act = acts.value;
  const root = run.log.agents[0];
  const rootId = root?.agentId ?? run.runId;
  const { answer, failure } = useMessages(run, rootId, MOST_MESSAGES);
  const text = run.isLive.value && run.written.value >= 0 ? run.textOf(rootId) : "";
  const list = useRef<HTMLDivElement>(null);
  useKeptFocus(list);
  const shown = (answer?.items ?? []).filter(
    ({ message }) =>
      message.role !== "tool" && message.role !== "system" && (message.role === "user" || hasText(message.content)),
  );
  useFollowedEnd(list);
  const now = run.moment.value.agents[0];
  const open = run.requests.value.filter((one) => one.status === "open" || hasDraft(one));
  return (
    <div class="talk">
      <div ref={list} class="talk-list" role="log" aria-label="Conversation" tabIndex={0}>
        <div class="list-content">
          {!run.isLive.value && <p class="note">You look at the past; requests are shown as they are now.</p>}
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
              <TextView text={text} kind="prose" isWriting />
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
      </div>
      {act && info.value?.acts === "talk" ? (
        <Composer
          subject={rootId}
          label={`Write to ${oneLine(root?.name ?? "", 40)}`}
          send={async ({ key, text: written, images }) => {
            goLive(run);
            const isOpen = now !== undefined && isBusy(now);
            const { turnId, step } = await act.startTurn(rootId, {
              key,
              text: written,
              ifBusy: "steer",
              ...(images.length > 0 ? { images } : {}),
            });
            if (step !== undefined) return `Delivered: the model sees it in step ${step}.`;
            return isOpen ? `Queued as turn ${turnId.slice(turnId.lastIndexOf("#") + 1)}.` : null;
          }}
        />
      ) : (
        <p class="note">
          {info.value?.scope === "act"
            ? "You can talk only on the page of the process that runs the agents, while it works."
            : "This link may only watch. To talk, open the address for acting of the process that runs the agents."}
        </p>
      )}
    </div>
  );
}

function hasText(content: string | readonly unknown[]): boolean {
  return typeof content !== "string" || content !== "";
}

/** Begins a conversation with a new agent from one of this process's definitions. */
export function NewTalk() {
  const definitions = info.value?.definitions ?? [];
  const [name, setName] = useState(definitions[0] ?? "");
  const act = acts.value;
  if (!act || definitions.length === 0) return null;
  return (
    <section class="new-talk" aria-label="New conversation">
      <h2>
        Talk to{" "}
        <select aria-label="Agent" value={name} onChange={({ currentTarget }) => setName(currentTarget.value)}>
          {definitions.map((one) => (
            <option key={one} value={one}>
              {oneLine(one, 60)}
            </option>
          ))}
        </select>
      </h2>
      <Composer
        subject="new"
        label={`Write to a new ${oneLine(name, 40)}`}
        send={async ({ key, text, images }) => {
          // The agent's id is derived from the key, so a retry does not create a second agent.
          const { agentId } = await act.createAgent({ definition: name, agentId: `talk-${key.slice(0, 8)}` });
          await act.startTurn(agentId, { key, text, ...(images.length > 0 ? { images } : {}) });
          go({ page: "run", runId: agentId, at: null, agent: null, view: "talk" });
          return null;
        }}
      />
    </section>
  );
}

interface ComposerProps {
  /** The recipient: an agent's id, or `new` for a new conversation. */
  readonly subject: string;
  readonly label: string;
  /** `key` identifies this turn, so sending it twice starts one turn. Resolves to a note for the person. */
  readonly send: (turn: {
    readonly key: string;
    readonly text: string;
    readonly images: readonly string[];
  }) => Promise<string | null>;
}

/** Unsent drafts, by `subject` of the form. They outlive the form, so that switching views loses nothing. */
interface Unsent {
  readonly text: string;
  readonly images: readonly string[];
}
const unsent = signal<ReadonlyMap<string, Unsent>>(new Map());
const nothingWritten: Unsent = { text: "", images: [] };

const MOST_IMAGES = 8;
const MOST_IMAGE_BYTES = 4_000_000;

/** The form in which the person writes to an agent. Images are dropped or pasted into it. */
export function Composer({ subject, label, send }: ComposerProps) {
  const { text, images } = unsent.value.get(subject) ?? nothingWritten;
  const write = (changed: (now: Unsent) => Partial<Unsent>): void => {
    const now = unsent.peek().get(subject) ?? nothingWritten;
    unsent.value = new Map(unsent.peek()).set(subject, { ...now, ...changed(now) });
  };
  const [failure, setFailure] = useState<string | null>(null);
  const [note, setNote] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const key = useRef<string>(crypto.randomUUID());
  const isEmpty = text.trim() === "" && images.length === 0;
  const submit = async (): Promise<void> => {
    if (isEmpty || isSending) return;
    setSending(true);
    setFailure(null);
    setNote(null);
    try {
      const told = await send({ key: key.current, text, images });
      key.current = crypto.randomUUID();
      write(() => nothingWritten);
      setNote(told);
    } catch (error) {
      setFailure(errorText(error));
    }
    setSending(false);
  };
  const take = (files: Iterable<File>): void => {
    for (const file of files) {
      if (!/^image\/(?:png|jpeg|gif|webp)$/.test(file.type) || file.size > MOST_IMAGE_BYTES) {
        setFailure("Images are PNG, JPEG, GIF or WebP of at most 4 MB.");
        continue;
      }
      const reader = new FileReader();
      reader.addEventListener("load", () => {
        const { result } = reader;
        if (typeof result === "string") write((now) => ({ images: [...now.images, result].slice(0, MOST_IMAGES) }));
      });
      reader.readAsDataURL(file);
    }
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        take(event.dataTransfer?.files ?? []);
      }}
    >
      {images.length > 0 && (
        <ul class="composer-images">
          {images.map((image, index) => (
            <li key={image.slice(-40)}>
              <img src={image} alt={`Image ${index + 1}`} />
              <button
                type="button"
                class="plain"
                aria-label={`Remove image ${index + 1}`}
                onClick={() => write((now) => ({ images: now.images.filter((one) => one !== image) }))}
              >
                <Icon name="close" />
              </button>
            </li>
          ))}
        </ul>
      )}
      <textarea
        rows={3}
        placeholder={label}
        aria-label={label}
        value={text}
        onInput={({ currentTarget }) => write(() => ({ text: currentTarget.value }))}
        onPaste={(event) => take(event.clipboardData?.files ?? [])}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void submit();
        }}
      />
      <p class="choices">
        <span class="quiet">Ctrl Enter sends; images by drop or paste</span>
        <span class="spacer" />
        <button class="primary" disabled={isEmpty || isSending}>
          {isSending ? "Sending …" : "Send"}
        </button>
      </p>
      {note !== null && (
        <p class="note good" role="status">
          {note}
        </p>
      )}
      {failure !== null && (
        <p class="note bad" role="alert">
          {plainText(failure)}
        </p>
      )}
    </form>
  );
}
