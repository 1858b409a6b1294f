import type {
  CancelTaskRequest,
  GetTaskRequest,
  ListTasksRequest,
  SendMessageRequest,
  SubscribeToTaskRequest,
} from "@a2a-js/sdk";
import type { Call } from "../core/route.ts";
import { type A2aServed, cardOf, type CardLocation, extendedCardOf } from "./card.ts";
import { listTasks, type TaskPage } from "./list-tasks.ts";
import { PushMethods } from "./push-methods.ts";
import { EXTENSION } from "./read-message.ts";
import type { Sdk } from "./sdk.ts";
import { assertCount, type Sending, sendMessage, type SentTask, taskOfId } from "./send-message.ts";
import { taskOf } from "./task.ts";
import { stateOf } from "./task-status.ts";
import { taskStream } from "./task-stream.ts";
import { isEndState, type StreamItem, type WireTask } from "./wire.ts";

/**
 * The protocol's methods on one agent, for one call of one caller. They throw errors of the protocol and of the core.
 */
export class A2aMethods {
  readonly #call: Call;
  readonly #served: A2aServed;
  readonly #sending: Sending;
  readonly url: string;
  readonly push: PushMethods;
  /** Headers of the answer, as far as they are known. */
  readonly headers: Record<string, string> = {};

  constructor(call: Call, served: A2aServed, { sdk, url }: { readonly sdk: Sdk; readonly url: string }) {
    this.#call = call;
    this.#served = served;
    this.url = url;
    this.#sending = { sdk, caller: call.caller, definition: served.definition.name };
    this.push = new PushMethods(this.#sending, call.webhooks);
  }

  get #sdk(): Sdk {
    return this.#sending.sdk;
  }

  async sendMessage(request: SendMessageRequest): Promise<{ readonly task: WireTask }> {
    const task = await this.#sent(request);
    const { historyLength, returnImmediately = false } = request.configuration ?? {};
    const rest = returnImmediately ? undefined : await this.#call.within(task.turn.settled);
    return { task: await taskOf(this.#call.caller, task, { historyLength, now: rest?.value }) };
  }

  async *sendStreamingMessage(
    request: SendMessageRequest,
    signal: AbortSignal,
  ): AsyncGenerator<StreamItem, void, undefined> {
    const task = await this.#sent(request);
    const { historyLength } = request.configuration ?? {};
    yield* taskStream(this.#call.caller, task, { until: "rest", historyLength, signal });
  }

  async getTask({ id, historyLength }: GetTaskRequest): Promise<WireTask> {
    assertCount(this.#sdk, "historyLength", historyLength);
    return await taskOf(this.#call.caller, await taskOfId(this.#sending, id), { historyLength });
  }

  async listTasks(request: ListTasksRequest): Promise<TaskPage> {
    return await listTasks(this.#sending, request);
  }

  async cancelTask({ id }: CancelTaskRequest): Promise<WireTask> {
    const task = await taskOfId(this.#sending, id);
    const ended = (): Error => new this.#sdk.errors.TaskNotCancelableError("the task has ended");
    if (isEndState(stateOf(await task.turn.current()))) throw ended();
    await task.turn.abort("canceled by its client");
    const result = await this.#call.within(task.turn.result);
    const canceled = await taskOf(this.#call.caller, task, { now: result?.value });
    const { state } = canceled.status;
    if (isEndState(state) && state !== "TASK_STATE_CANCELED") throw ended();
    return canceled;
  }

  async *subscribeToTask(
    { id }: SubscribeToTaskRequest,
    signal: AbortSignal,
  ): AsyncGenerator<StreamItem, void, undefined> {
    const task = await taskOfId(this.#sending, id);
    if (isEndState(stateOf(await task.turn.current()))) {
      throw new this.#sdk.errors.UnsupportedOperationError("the task has ended: get it instead");
    }
    yield* taskStream(this.#call.caller, task, { until: "end", signal });
  }

  async #sent(request: SendMessageRequest): Promise<SentTask> {
    const planned = await this.push.planned(request);
    const task = await sendMessage(this.#sending, request);
    if (planned !== undefined) await this.push.begin(task, planned);
    if (task.isReplayed) this.headers["idempotency-replayed"] = "true";
    if (request.message?.extensions.includes(EXTENSION) === true) this.headers["a2a-extensions"] = EXTENSION;
    return task;
  }

  card(): object {
    return cardOf(this.#served, this.#cardPlace);
  }

  extendedCard(): object {
    return extendedCardOf(this.#served, this.#cardPlace);
  }

  get #cardPlace(): CardLocation {
    return { url: this.url, pushNotifications: this.#call.webhooks !== undefined };
  }
}
