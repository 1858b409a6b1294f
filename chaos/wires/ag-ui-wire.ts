import { HttpAgent, type RunAgentParameters } from "@ag-ui/client";
import type { Line } from "./wire-client.ts";
import {
  type Asked,
  type Exchange,
  type Heard,
  type Hearing,
  spokenOf,
  stampTool,
  type Talk,
  type Wire,
} from "./wire.ts";

/** The official client checks the order of all events. */
export const agUiWire: Wire = {
  name: "ag-ui",
  surface: "ag-ui",
  open: async (line, threadId) => new AgUiTalk(line, threadId, []),
};

const address = "http://127.0.0.1/ag-ui/teller";
type Messages = HttpAgent["messages"];
/** Kinds of requests, such as questions and approvals, by their names in the protocol. */
const kinds: Readonly<Record<string, Asked["kind"]>> = { tool_call: "approval", input_required: "question" };

class AgUiTalk implements Talk {
  readonly deeds = ["talk", "work", "pay", "sign", "stamp", "ask", "drone"] as const;
  readonly #line: Line;
  readonly #client: HttpAgent;
  /** Ids of the messages. */
  readonly #said = new Set<string>();

  constructor(line: Line, threadId: string, messages: Messages) {
    this.#line = line;
    // The client cancels the reader of a broken body and ignores the failure.
    line.endsWhenCut = true;
    this.#client = new HttpAgent({ url: address, threadId, initialMessages: messages, fetch: line.fetch });
  }

  async twin(line: Line): Promise<Talk> {
    return new AgUiTalk(line, this.#client.threadId, structuredClone(this.#client.messages));
  }

  async send({ key, text }: Exchange, hearing: Hearing): Promise<Heard> {
    this.#say({ id: key, role: "user", content: text });
    return await this.#run({ runId: key, tools: [stampTool] }, hearing);
  }

  async answer({ key, answer }: Exchange, asked: readonly Asked[], hearing: Hearing): Promise<Heard> {
    const resume = asked.flatMap(({ id, kind }) => {
      const payload = kind === "approval" ? { approved: true } : answer;
      return kind === "client" ? [] : [{ interruptId: id, status: "resolved" as const, payload }];
    });
    for (const { id, kind } of asked) {
      if (kind === "client") this.#say({ id: `${key} of ${id}`, role: "tool", toolCallId: id, content: answer });
    }
    const more = resume.length === 0 ? {} : { resume };
    return await this.#run({ runId: `${key}-${asked[0]?.id}`, tools: [stampTool], ...more }, hearing);
  }

  async cancel({ key: runId }: Exchange): Promise<void> {
    const response = await this.#line.fetch(`${address}/cancel`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ threadId: this.#client.threadId, runId }),
    });
    const body = await response.text();
    if (!response.ok) throw new Error(`a cancel was answered ${response.status}: ${body}`);
  }

  #say(message: Messages[number]): void {
    if (!this.#said.has(message.id)) this.#client.addMessage(message);
    this.#said.add(message.id);
  }

  async #run(parameters: RunAgentParameters, hearing: Hearing): Promise<Heard> {
    let heard: Pick<Heard, "state" | "asked"> | undefined;
    let failure: Error | undefined;
    let text = "";
    await this.#client.runAgent(parameters, {
      onStepStartedEvent: ({ event }) => {
        if (event.subagentRunId === undefined) hearing.isOf(event.stepName.replace(/:\d+$/, ""));
      },
      onTextMessageContentEvent: ({ event, textMessageBuffer }) => {
        if (event.subagentRunId !== undefined) return;
        text = textMessageBuffer + event.delta;
        hearing.show(text);
      },
      onRunFinishedEvent: (finished) => {
        if (finished.outcome === "interrupt") {
          const asked = finished.interrupts.map(({ id, reason }) => ({ id, kind: kinds[reason] ?? "client" }));
          heard = { state: "waiting", asked };
        } else if (finished.outcome === "success" && finished.pendingToolCallIds.length > 0) {
          heard = { state: "waiting", asked: finished.pendingToolCallIds.map((id) => ({ id, kind: "client" })) };
        } else heard = { state: finished.outcome === "success" ? "completed" : "canceled", asked: [] };
      },
      onRunErrorEvent: () => {
        heard = { state: "failed", asked: [] };
      },
      onRunFailed: ({ error }) => {
        failure = error;
        // Otherwise the client also logs it to the console.
        const quiet = { messages: this.#client.messages, stopPropagation: true };
        return quiet;
      },
    });
    if (failure) throw failure;
    if (heard === undefined) throw new Error("the run ended without a last event");
    const shown = this.#shown();
    return { ...heard, text: heard.state === "completed" ? (shown.at(-1) ?? "") : text, shown };
  }

  /** Leaves out the texts of subagents. */
  #shown(): string[] {
    const own = this.#client.messages.filter(({ subagentRunId }) => subagentRunId === undefined);
    return spokenOf(own.map(({ role, content }) => ({ role, text: typeof content === "string" ? content : "" })));
  }
}
