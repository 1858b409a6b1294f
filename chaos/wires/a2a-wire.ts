import { Role, type Message, type SendMessageRequest, type StreamResponse, type Task, TaskState } from "@a2a-js/sdk";
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";
import { TaskNotCancelableError, UnsupportedOperationError } from "@a2a-js/sdk/errors";
import type { Line } from "./wire-client.ts";
import type { Asked, Exchange, Heard, Hearing, Talk, Wire } from "./wire.ts";

const decisions = "urn:troupe:a2a:decisions:v1";

/** Every other client uses JSON-RPC, the others HTTP. */
export const a2aWire: Wire = {
  name: "a2a",
  surface: "a2a",
  open: async (line, conversation) => new A2aTalk(await clientOver(line), conversation),
};

async function clientOver({ fetch: fetchImpl, place }: Line): Promise<Client> {
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
    preferredTransports: [place.number % 2 === 0 ? "JSONRPC" : "HTTP+JSON"],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  });
  return await factory.createFromUrl("http://127.0.0.1/a2a/teller/");
}

class A2aTalk implements Talk {
  readonly deeds = ["talk", "work", "pay", "sign", "ask", "drone"] as const;
  readonly #client: Client;
  readonly #contextId: string;
  /** The known task ids of exchanges. */
  readonly #tasks: Map<string, string>;
  #attempts = 0;

  constructor(client: Client, contextId: string, tasks = new Map<string, string>()) {
    this.#client = client;
    this.#contextId = contextId;
    this.#tasks = tasks;
  }

  async twin(line: Line): Promise<Talk> {
    return new A2aTalk(await clientOver(line), this.#contextId, this.#tasks);
  }

  /** After a cut it alternately subscribes to the task or sends its message again. */
  async send(exchange: Exchange, hearing: Hearing): Promise<Heard> {
    this.#attempts += 1;
    const id = this.#tasks.get(exchange.key);
    if (id !== undefined && this.#attempts % 2 === 0) return await this.#subscribe(id, exchange, hearing);
    return await this.#sent(exchange, { messageId: exchange.key, parts: [textPart(exchange.text)] }, hearing);
  }

  async answer(exchange: Exchange, asked: readonly Asked[], hearing: Hearing): Promise<Heard> {
    const [first] = asked;
    const said =
      first?.kind === "question"
        ? { parts: [textPart(exchange.answer)] }
        : { parts: asked.map((one) => decisionPart(one, exchange)), extensions: [decisions] };
    const taskId = this.#tasks.get(exchange.key) ?? "";
    return await this.#sent(exchange, { messageId: `${exchange.key}/${first?.id}`, taskId, ...said }, hearing);
  }

  async cancel({ key }: Exchange): Promise<void> {
    const id = this.#tasks.get(key) ?? "";
    try {
      await this.#client.cancelTask({ tenant: "", id, metadata: undefined });
    } catch (error) {
      // The task had already ended: by itself, or by a cancel whose answer was cut.
      if (!(error instanceof TaskNotCancelableError)) throw error;
    }
  }

  async #sent(exchange: Exchange, message: Partial<Message>, hearing: Hearing): Promise<Heard> {
    const request: SendMessageRequest = {
      tenant: "",
      metadata: undefined,
      configuration: undefined,
      message: {
        messageId: "",
        contextId: this.#contextId,
        taskId: "",
        role: Role.ROLE_USER,
        parts: [],
        metadata: undefined,
        extensions: [],
        referenceTaskIds: [],
        ...message,
      },
    };
    const shown = await this.#read(this.#client.sendMessageStream(request), exchange, hearing);
    // The stream ends when the task pauses or ends.
    for await (const _ of shown.rest) throw new Error("after the rest of its task a stream goes on");
    return shown.heard();
  }

  async #subscribe(id: string, exchange: Exchange, hearing: Hearing): Promise<Heard> {
    try {
      const items = this.#client.resubscribeTask({ tenant: "", id });
      const shown = await this.#read(items, exchange, hearing);
      await items.return(undefined);
      return shown.heard();
    } catch (error) {
      // The task has ended, so there is nothing to subscribe to.
      if (!(error instanceof UnsupportedOperationError)) throw error;
      const shown = new ShownTask();
      shown.take({ payload: { $case: "task", value: await this.#client.getTask({ tenant: "", id }) } });
      if (!shown.isAtRest) throw error;
      return shown.heard();
    }
  }

  async #read(items: AsyncGenerator<StreamResponse, void>, { key }: Exchange, hearing: Hearing) {
    const shown = new ShownTask();
    while (!shown.isAtRest) {
      const { done, value } = await items.next();
      if (done === true) throw new Error(`the stream ended, and its task is ${TaskState[shown.state ?? 0]}`);
      shown.take(value);
      if (shown.id !== undefined) {
        this.#tasks.set(key, shown.id);
        hearing.isOf(turnOf(shown.id));
      }
      hearing.show(shown.text);
    }
    return { rest: items, heard: () => shown.heard() };
  }
}

/** The client's view of a task after some items of its stream. */
class ShownTask {
  id: string | undefined;
  text = "";
  state: TaskState | undefined;
  #prompts: Message | undefined;

  get isAtRest(): boolean {
    return isEnded(this.state) || isWaiting(this.state);
  }

  take({ payload }: StreamResponse): void {
    if (payload?.$case === "task") {
      this.id = payload.value.id;
      this.text = answerIn(payload.value);
    }
    if (payload?.$case === "task" || payload?.$case === "statusUpdate") {
      this.state = payload.value.status?.state;
      this.#prompts = payload.value.status?.message;
    }
    if (payload?.$case !== "artifactUpdate" || payload.value.artifact?.artifactId !== "answer") return;
    const content = payload.value.artifact.parts[0]?.content;
    const piece = content?.$case === "text" ? content.value : "";
    this.text = payload.value.append ? this.text + piece : piece;
  }

  heard(): Heard {
    const asked = isWaiting(this.state) ? (this.#prompts?.parts ?? []).map(({ metadata }) => askedOf(metadata)) : [];
    return { state: stateOf(this.state), text: this.text, asked };
  }
}

function askedOf(metadata: Readonly<Record<string, unknown>> = {}): Asked {
  const { requestId, kind, argumentsHash } = metadata;
  return {
    id: String(requestId),
    kind: kind as Asked["kind"],
    proof: typeof argumentsHash === "string" ? argumentsHash : undefined,
  };
}

function decisionPart({ id: requestId, kind, proof }: Asked, { answer }: Exchange) {
  const value =
    kind === "approval"
      ? { requestId, verdict: "approved", argumentsHash: proof }
      : { requestId, verdict: "answered", result: answer };
  return { content: { $case: "data", value }, metadata: undefined, filename: "", mediaType: "" } as const;
}

function textPart(value: string) {
  return { content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "" } as const;
}

function answerIn({ artifacts }: Task): string {
  const content = artifacts.find(({ artifactId }) => artifactId === "answer")?.parts[0]?.content;
  return content?.$case === "text" ? content.value : "";
}

/** A task's id is the turn's id with a point instead of `#`. */
function turnOf(taskId: string): string {
  return taskId.replace(/\.(\d+)$/, "#$1");
}

function isWaiting(state: TaskState | undefined): boolean {
  return state === TaskState.TASK_STATE_AUTH_REQUIRED || state === TaskState.TASK_STATE_INPUT_REQUIRED;
}

function isEnded(state: TaskState | undefined): boolean {
  return (
    state === TaskState.TASK_STATE_COMPLETED ||
    state === TaskState.TASK_STATE_CANCELED ||
    state === TaskState.TASK_STATE_REJECTED ||
    state === TaskState.TASK_STATE_FAILED
  );
}

function stateOf(state: TaskState | undefined): Heard["state"] {
  if (isWaiting(state)) return "waiting";
  if (state === TaskState.TASK_STATE_COMPLETED) return "completed";
  return state === TaskState.TASK_STATE_CANCELED ? "canceled" : "failed";
}
