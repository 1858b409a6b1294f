// A chat page over AG-UI with `HttpAgent`, the client that CopilotKit uses. An empty run shows the stored messages and continues a
// running answer.
import { HttpAgent, type Message } from "@ag-ui/client";
import { type SubmitEvent, StrictMode, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

const agent = new HttpAgent({ url: `${location.origin}/ag-ui/desk`, threadId: "page" });

type Interrupts = HttpAgent["pendingInterrupts"];

/** Starts a run, and returns why it failed. */
async function run(parameters: Parameters<HttpAgent["runAgent"]>[0] = {}): Promise<string> {
  let failure = "";
  await agent.runAgent(parameters, {
    onRunErrorEvent: ({ event }) => {
      failure = event.message;
    },
    onRunFailed: ({ error }) => {
      failure = error.message;
    },
  });
  return failure;
}

/** The run that shows the stored conversation; one for all renders. */
let connected: Promise<string> | undefined;

function Chat() {
  const [messages, setMessages] = useState<readonly Message[]>([]);
  const [interrupts, setInterrupts] = useState<Interrupts>([]);
  const [status, setStatus] = useState("running");
  const [failure, setFailure] = useState("");
  const [draft, setDraft] = useState("");

  const follow = async (started: Promise<string>): Promise<void> => {
    setStatus("running");
    setInterrupts([]);
    setFailure(await started);
    setInterrupts([...agent.pendingInterrupts]);
    setStatus("ready");
  };
  useEffect(() => {
    const { unsubscribe } = agent.subscribe({
      onMessagesChanged: ({ messages: changed }) => setMessages(structuredClone(changed)),
    });
    connected ??= run();
    void follow(connected);
    return unsubscribe;
  }, []);

  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    agent.addMessage({ id: crypto.randomUUID(), role: "user", content: draft });
    setDraft("");
    void follow(run());
  };
  const give = (approved: boolean): void => {
    const resume = interrupts.map(({ id: interruptId }) => ({
      interruptId,
      status: "resolved" as const,
      payload: { approved },
    }));
    void follow(run({ resume }));
  };

  return (
    <>
      <h1>Desk</h1>
      <p role="status">{status}</p>
      <ol aria-label="Conversation">
        {messages
          .filter(({ role, content }) => (role === "user" || role === "assistant") && content !== undefined)
          .map(({ id, role, content }) => (
            <li key={id}>
              {role}: {typeof content === "string" ? content : "…"}
            </li>
          ))}
      </ol>
      {interrupts.length > 0 && (
        <p>
          {interrupts.map(({ message }) => message).join(" ")}
          <button type="button" onClick={() => give(true)}>
            Approve
          </button>
          <button type="button" onClick={() => give(false)}>
            Reject
          </button>
        </p>
      )}
      <form onSubmit={submit}>
        <label>
          Message <input value={draft} onChange={(event) => setDraft(event.target.value)} />
        </label>
        <button disabled={status !== "ready" || interrupts.length > 0 || draft === ""}>Send</button>
      </form>
      {failure !== "" && <p role="alert">{failure}</p>}
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
