// A chat page over troupe's HTTP API: it shows the conversation, the streamed answer, and calls that wait for approval.
import { type SubmitEvent, StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { createClient, type TurnRequest } from "troupe/client";
import { useAgent } from "troupe/client/react";

// The session cookie of this page's origin identifies the caller.
const client = createClient({ url: location.origin });

function Chat() {
  const { status, messages, text, requests, error, send, decide, retry } = useAgent(client, {
    definition: "desk",
    key: "page",
  });
  const [draft, setDraft] = useState("");
  const [refusal, setRefusal] = useState("");

  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setRefusal("");
    setDraft("");
    send(draft).catch((reason: Error) => setRefusal(reason.message));
  };
  const give = (request: TurnRequest, isApproved: boolean): void => {
    decide(request, isApproved ? { verdict: "approved" } : { verdict: "rejected" }).catch((reason: Error) =>
      setRefusal(reason.message),
    );
  };

  return (
    <>
      <h1>Desk</h1>
      <p role="status">{status}</p>
      <ol aria-label="Conversation">
        {messages
          .filter(({ role, content }) => (role === "user" || role === "assistant") && content !== "")
          .map(({ id, role, content }) => (
            <li key={id}>
              {role}: {typeof content === "string" ? content : "…"}
            </li>
          ))}
        {text !== "" && <li aria-live="polite">assistant: {text}</li>}
      </ol>
      {requests.map((request) => (
        <p key={request.requestId}>
          {request.prompt}
          <button type="button" onClick={() => give(request, true)}>
            Approve
          </button>
          <button type="button" onClick={() => give(request, false)}>
            Reject
          </button>
        </p>
      ))}
      <form onSubmit={submit}>
        <label>
          Message <input value={draft} onChange={(event) => setDraft(event.target.value)} />
        </label>
        <button disabled={status !== "ready" || draft === ""}>Send</button>
      </form>
      {refusal !== "" && <p role="alert">{refusal}</p>}
      {error !== null && (
        <p role="alert">
          {error.message}{" "}
          <button type="button" onClick={retry}>
            Try again
          </button>
        </p>
      )}
    </>
  );
}

const place = document.getElementById("desk");
if (place !== null) {
  createRoot(place).render(
    <StrictMode>
      <Chat />
    </StrictMode>,
  );
}
