import { HttpAgent, type RunAgentParameters } from "@ag-ui/client";
import type { AGUIEvent } from "@ag-ui/core";
import { tokens, type User } from "../served.ts";

/** The methods of the server that the client uses. */
export interface Reached {
  fetch(request: Request): Promise<Response>;
}

export interface ThreadOptions {
  readonly as?: User;
  readonly threadId?: string;
  readonly agent?: string;
  /** Changes an answer on its way to the client. */
  readonly onWay?: (response: Response) => Response;
}

/** A conversation of the official client over a fetch handler. It checks the order of all events. */
export class Thread {
  readonly client: HttpAgent;
  /** The events of the last run. */
  events: AGUIEvent[] = [];
  /** The outcome of the last run; `undefined` if it was cut off. */
  outcome: unknown;
  #server: Reached;
  #replayed: string | null = null;

  constructor(
    server: Reached,
    { as = "ann", threadId = "thread-1", agent = "desk", onWay = (response) => response }: ThreadOptions = {},
  ) {
    this.#server = server;
    this.client = new HttpAgent({
      url: `http://127.0.0.1/ag-ui/${agent}`,
      threadId,
      headers: { authorization: `Bearer ${tokens[as]}` },
      fetch: async (url, init) => {
        const response = await this.#server.fetch(new Request(url, init));
        this.#replayed = response.headers.get("idempotency-replayed");
        return onWay(response);
      },
    });
  }

  get isReplayed(): boolean {
    return this.#replayed === "true";
  }

  /** Another server of the same deployment. */
  moveTo(server: Reached): void {
    this.#server = server;
  }

  /** Sends a message and reads the run to its end. Rejects if the client finds a fault. */
  async say(text: string, parameters: RunAgentParameters = {}): Promise<this> {
    this.client.addMessage({ id: crypto.randomUUID(), role: "user", content: text });
    return await this.run(parameters);
  }

  /** `onEvent`: called with each event as it arrives. */
  async run(parameters: RunAgentParameters = {}, onEvent?: (event: AGUIEvent) => void): Promise<this> {
    this.events = [];
    this.outcome = undefined;
    let failure: Error | undefined;
    await this.client.runAgent(parameters, {
      onEvent: ({ event }) => {
        this.events.push(event as AGUIEvent);
        onEvent?.(event as AGUIEvent);
      },
      onRunFinishedEvent: (finished) => {
        this.outcome =
          finished.outcome === "success" ? { success: finished.pendingToolCallIds } : { [finished.outcome]: true };
      },
      onRunErrorEvent: ({ event }) => {
        this.outcome = { error: event.code };
      },
      onRunFailed: ({ error }) => {
        failure = error;
      },
    });
    if (failure) throw failure;
    return this;
  }

  types(): string[] {
    return this.events.map(({ type }) => type);
  }

  /** The conversation as the client shows it: `user: hello`. */
  shown(): string[] {
    return this.client.messages.map((message) => {
      const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
      const { content = "" } = message;
      const said = typeof content === "string" ? content : JSON.stringify(content);
      const owner = message.subagentRunId === undefined ? "" : "subagent ";
      return `${owner}${message.role}: ${[said, ...calls.map(({ function: { name } }) => `[${name}]`)].join("")}`;
    });
  }
}

/** Approves, rejects or answers all interrupts of the last run. */
export function resumeWith(thread: Thread, payload: unknown): RunAgentParameters {
  return {
    resume: thread.client.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload })),
  };
}
