import type { CallDetail, FeedMessageItem } from "../feed/wire.ts";
import { useAsked } from "./asked.ts";
import { milliseconds, shortId, sinceStart } from "./format.ts";
import { MessageFile, type ReadArtifact } from "./message-file.tsx";
import { copyText, selectAgent } from "./page-state.ts";
import { Icon } from "./parts.tsx";
import type { RunSession } from "./run-session.ts";
import { CopyButton, sought, TextView } from "./text-view.tsx";
import { type JsonValue, JsonView, oneLine, plainText } from "./untrusted.tsx";

export type ShownMessage = FeedMessageItem["message"];

interface CardProps {
  readonly message: ShownMessage;
  /** Text beside the role, such as the step or the time. */
  readonly place?: string;
  /** The difference from the previous prompt. */
  readonly mark?: "new" | "changed" | undefined;
  readonly isCut?: boolean;
  /** The tool, for a tool's result. */
  readonly callName?: string | undefined;
  readonly onCall?: ((callId: string) => void) | undefined;
  /** Reads the files of the message. Default: only files within the message can be saved. */
  readonly readArtifact?: ReadArtifact | undefined;
}

/** The usual source of messages of each role. */
const plainOrigins: ReadonlySet<string> = new Set(["", "user", "model", "tool"]);

/** The tools that the calls in the messages mean, by call id. */
export function callNamesIn(messages: Iterable<ShownMessage>): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    for (const { callId, name, tool } of message.toolCalls ?? []) names.set(callId, tool ?? name);
  }
  return names;
}

/** The tool whose result the message contains. */
export function callNameOf(message: ShownMessage, names: ReadonlyMap<string, string>): string | undefined {
  return message.role === "tool" ? names.get(message.callId) : undefined;
}

/** One message: its role, source, text and tool calls. */
export function MessageCard({ message, place = "", mark, isCut = false, callName, onCall, readArtifact }: CardProps) {
  const isFailure = message.role === "tool" && message.isError === true;
  const look = soughtIn(message);
  return (
    <article class={`message ${message.role}${mark ? ` ${mark}` : ""}`}>
      <header>
        <b class="role">{message.role}</b>
        {callName !== undefined && <code class="call-name">{oneLine(callName, 60)}</code>}
        {!plainOrigins.has(message.origin) && <span class="tag">{oneLine(message.origin, 60)}</span>}
        {isFailure && <span class="tag bad">error</span>}
        {mark && <span class="tag mark">{mark}</span>}
        <span class="spacer" />
        {message.role === "tool" && onCall && (
          <button type="button" class="link" onClick={() => onCall(message.callId)}>
            call
          </button>
        )}
        <span class="quiet figures">{place}</span>
        <button
          type="button"
          class="plain copy"
          aria-label="Copy as JSON"
          title="Copy as JSON"
          onClick={() => void copyText(JSON.stringify(message, null, 2), "Message")}
        >
          <Icon name="copy" />
        </button>
      </header>
      <MessageContent message={message} readArtifact={readArtifact} />
      {isCut && <p class="note">The text is cut here; the stored one is longer.</p>}
      {message.role === "assistant" && message.reasoning !== undefined && (
        <details>
          <summary>reasoning</summary>
          <JsonView value={message.reasoning as JsonValue} />
        </details>
      )}
      {message.role === "assistant" && message.sources !== undefined && <Sources sources={message.sources} />}
      {message.role === "assistant" && message.toolCalls !== undefined && message.toolCalls.length > 0 && (
        <ul class="asked-calls">
          {message.toolCalls.map((call) => (
            <li key={call.callId}>
              <details open={look !== undefined && call.arguments.includes(look)}>
                <summary>
                  <code class="call-name">{oneLine(call.tool ?? call.name, 80)}</code>
                  {call.tool !== undefined && <span class="tag">through {oneLine(call.name, 60)}</span>}
                  <code class="quiet call-arguments">{oneLine(call.arguments, 120)}</code>
                </summary>
                <TextView key={look} text={call.arguments} kind="data" look={look} />
                {onCall && (
                  <button type="button" class="link" onClick={() => onCall(call.callId)}>
                    What became of this call
                  </button>
                )}
              </details>
            </li>
          ))}
        </ul>
      )}
    </article>
  );
}

/** What an answer is based on, as text: opening an address would reveal the reader to its host. */
function Sources({
  sources,
}: {
  readonly sources: NonNullable<Extract<ShownMessage, { role: "assistant" }>["sources"]>;
}) {
  return (
    <ul class="sources" aria-label="Sources">
      {sources.map(({ type, id, url, title, mediaType }, index) => (
        <li key={index}>
          {oneLine(title ?? url ?? id ?? type, 120)}{" "}
          <span class="quiet">{oneLine(title === undefined ? (mediaType ?? "") : (url ?? mediaType ?? ""), 200)}</span>
        </li>
      ))}
    </ul>
  );
}

function MessageContent({ message, readArtifact }: Pick<CardProps, "message" | "readArtifact">) {
  const { content, role } = message;
  if (content === "") return null;
  const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
  const look = soughtIn(message);
  return (
    <>
      {parts.map((part, index) => {
        if (part.type === "image") return <Image key={index} url={part.url} />;
        if (part.type === "file") return <MessageFile key={index} part={part} readArtifact={readArtifact} />;
        return (
          <TextView
            key={`${index} ${look ?? ""}`}
            text={part.text}
            kind={role === "tool" ? "data" : "prose"}
            isFolded={role !== "assistant"}
            look={look}
          />
        );
      })}
    </>
  );
}

/** The search hit in this message. */
function soughtIn({ id }: ShownMessage): string | undefined {
  return sought.value?.messageId === id ? sought.value.text : undefined;
}

/**
 * Only embedded images are shown. An address is shown as text, because loading the image would reveal the reader to its
 * host.
 */
function Image({ url }: { readonly url: string }) {
  if (/^data:image\/(?:png|jpeg|gif|webp|avif);base64,[a-z0-9+/=]+$/i.test(url)) {
    return <img class="message-image" src={url} alt="Part of the message" />;
  }
  return (
    <p class="quiet">
      image at <code>{plainText(url.slice(0, 400))}</code>, not loaded
    </p>
  );
}

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

/** One tool call in the pane beside a list. */
export function CallAside({ run, callId, onClose }: CallProps) {
  return (
    <aside class="detail" aria-label="Tool call">
      <header class="detail-head">
        <h2>Tool call</h2>
        <button type="button" class="plain" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <CallDetailView run={run} callId={callId} />
    </aside>
  );
}

/** One tool call, from the model's request to the result. */
export function CallDetailView({ run, callId }: Omit<CallProps, "onClose">) {
  const count = run.length.value;
  const { answer, failure } = useAsked(() => run.client.call(run.runId, callId), {
    subject: callId,
    on: [count],
    delayMs: 400,
  });
  return (
    <>
      {answer && (
        <h2>
          <code>{oneLine(answer.name, 60)}</code>
        </h2>
      )}
      <code class="id long">{plainText(callId)}</code>
      {failure !== null && <p class="note">{failure}</p>}
      {answer && <Call run={run} call={answer} />}
    </>
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
        <h3>Arguments {gate && call.asked !== null && <CopyButton text={call.asked} />}</h3>
        {gate ? (
          <JsonView value={gate.arguments as JsonValue} />
        ) : (
          call.asked !== null && <TextView text={call.asked} kind="data" />
        )}
      </section>
      {end?.message && (
        <section>
          <h3>Result</h3>
          <MessageContent message={end.message} />
        </section>
      )}
      {end?.structured !== undefined && (
        <section>
          <h3>Structured</h3>
          <JsonView value={end.structured as JsonValue} />
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
