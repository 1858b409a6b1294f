import type { FeedMessageItem } from "../feed/wire.ts";
import { Icon } from "./icons.tsx";
import { type JsonValue, JsonView } from "./json-view.tsx";
import { copyText } from "./page-state.ts";
import { LongText, oneLine, plainText } from "./untrusted.tsx";

export type ShownMessage = FeedMessageItem["message"];

interface CardProps {
  readonly message: ShownMessage;
  /** Beside the role: the step, the time. */
  readonly place?: string;
  /** How it differs from the prompt before. */
  readonly mark?: "new" | "changed" | undefined;
  readonly isCut?: boolean;
  /** Of a tool's result: the tool. */
  readonly callName?: string | undefined;
  readonly onCall?: ((callId: string) => void) | undefined;
}

/** Where messages of each role come from as a rule. */
const plainOrigins: ReadonlySet<string> = new Set(["", "user", "model", "tool"]);

/** The names of the calls that messages ask for, by their ids. */
export function callNamesIn(messages: Iterable<ShownMessage>): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    for (const { callId, name } of message.toolCalls ?? []) names.set(callId, name);
  }
  return names;
}

/** The tool whose result a message is. */
export function callNameOf(message: ShownMessage, names: ReadonlyMap<string, string>): string | undefined {
  return message.role === "tool" ? names.get(message.callId) : undefined;
}

/** One message: who said it, where it comes from, its text, the calls that it asks for. */
export function MessageCard({ message, place = "", mark, isCut = false, callName, onCall }: CardProps) {
  const isFailure = message.role === "tool" && message.isError === true;
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
      <MessageContent message={message} />
      {isCut && <p class="note">The text goes on; it is longer than what is sent here.</p>}
      {message.role === "assistant" && message.reasoning !== undefined && (
        <details>
          <summary>reasoning</summary>
          <JsonView value={message.reasoning as JsonValue} />
        </details>
      )}
      {message.role === "assistant" && message.toolCalls !== undefined && message.toolCalls.length > 0 && (
        <ul class="asked-calls">
          {message.toolCalls.map((call) => (
            <li key={call.callId}>
              <details>
                <summary>
                  <code class="call-name">{oneLine(call.name, 80)}</code>
                  <code class="quiet call-arguments">{oneLine(call.arguments, 120)}</code>
                </summary>
                <JsonText text={call.arguments} />
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

function MessageContent({ message: { content } }: { readonly message: ShownMessage }) {
  if (typeof content === "string") return content === "" ? null : <LongText text={content} />;
  return (
    <>
      {content.map((part, index) =>
        part.type === "text" ? <LongText key={index} text={part.text} /> : <Image key={index} url={part.url} />,
      )}
    </>
  );
}

/** Only a picture that is in the message itself is shown; an address is text, because loading it would tell its host. */
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

/** Text that is meant to be JSON: as a tree if it is, else as it was written. */
export function JsonText({ text }: { readonly text: string }) {
  const value = parsed(text);
  return value === undefined ? <LongText text={text} isCode /> : <JsonView value={value} />;
}

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
