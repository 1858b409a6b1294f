// A chat page with `useChat` of the AI SDK. After a reload it shows the stored messages and continues a running answer.
import { useChat, type UIMessage } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
} from "ai";
import { type SubmitEvent, StrictMode, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

/** In a project with the package installed: `UIMessage<AiSdkMetadata, AiSdkData>` with the types of `troupe/server`. */
type DeskMessage = UIMessage<{ readonly status: string }>;

const api = "/ai-sdk/desk";
const id = "page";

function Chat({ loaded }: { readonly loaded: DeskMessage[] }) {
  const last = loaded.at(-1);
  const { messages, status, error, sendMessage, resumeStream, stop, addToolApprovalResponse } = useChat<DeskMessage>({
    id,
    messages: loaded,
    transport: new DefaultChatTransport({
      api,
      // With the id of the answer, it is streamed whole even if it ends before this request.
      prepareReconnectToStreamRequest: () => ({
        api: `${api}/${id}/stream${last?.role === "assistant" ? `?message=${encodeURIComponent(last.id)}` : ""}`,
      }),
    }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const [draft, setDraft] = useState("");

  const isCut = last?.metadata?.status === "running";
  useEffect(() => {
    if (isCut) void resumeStream();
  }, [isCut, resumeStream]);

  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setDraft("");
    void sendMessage({ text: draft });
  };
  const end = async (): Promise<void> => {
    // The turn continues without its page; the route ends it.
    await fetch(`${api}/${id}/stop`, { method: "POST" });
    await stop();
  };

  return (
    <>
      <h1>Desk</h1>
      <p role="status">{status}</p>
      <ol aria-label="Conversation">
        {messages.map((message) => (
          <li key={message.id}>
            {message.role}:{" "}
            {message.parts.map((part, index) => {
              if (part.type === "text") return <span key={index}>{part.text}</span>;
              if (!isToolUIPart(part)) return null;
              const name = getToolName(part);
              if (part.state !== "approval-requested") return <em key={index}>{`[${name}: ${part.state}] `}</em>;
              const give = (approved: boolean): void =>
                void addToolApprovalResponse({ id: part.approval.id, approved });
              return (
                <span key={index}>
                  {name} {JSON.stringify(part.input)}{" "}
                  <button type="button" onClick={() => give(true)}>
                    Approve
                  </button>
                  <button type="button" onClick={() => give(false)}>
                    Reject
                  </button>
                </span>
              );
            })}
          </li>
        ))}
      </ol>
      <form onSubmit={submit}>
        <label>
          Message <input value={draft} onChange={(event) => setDraft(event.target.value)} />
        </label>
        <button disabled={status === "streaming" || status === "submitted" || draft === ""}>Send</button>
        <button type="button" disabled={status !== "streaming"} onClick={() => void end()}>
          Stop
        </button>
      </form>
      {error !== undefined && <p role="alert">{error.message}</p>}
    </>
  );
}

const place = document.getElementById("desk");
if (place !== null) {
  const response = await fetch(`${api}/${id}`);
  const { messages } = (await response.json()) as { readonly messages: DeskMessage[] };
  createRoot(place).render(
    <StrictMode>
      <Chat loaded={messages} />
    </StrictMode>,
  );
}
