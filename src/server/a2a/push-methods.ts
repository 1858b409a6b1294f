import type {
  DeleteTaskPushNotificationConfigRequest,
  GetTaskPushNotificationConfigRequest,
  ListTaskPushNotificationConfigsRequest,
  SendMessageRequest,
  TaskPushNotificationConfig,
} from "@a2a-js/sdk";
import type { Webhook } from "../../state/index.ts";
import { openedId, sealedId } from "../core/url-ids.ts";
import type { WebhookRegistry } from "../core/webhooks.ts";
import { newWebhook, placeOfTask, type ReadConfig, readConfig, type WireConfig, wireConfigOf } from "./push-config.ts";
import { type Sending, taskOfId } from "./send-message.ts";
import type { TaskTurn } from "./task.ts";
import { stateOf } from "./task-status.ts";
import { isEndState } from "./wire.ts";

const MOST_OF_A_PAGE = 100;

/** The push notification methods on one agent, for one caller. They throw errors of the protocol and of the core. */
export class PushMethods {
  readonly #sending: Sending;
  readonly #desk: WebhookRegistry | undefined;

  constructor(sending: Sending, desk: WebhookRegistry | undefined) {
    this.#sending = sending;
    this.#desk = desk;
  }

  async create(config: TaskPushNotificationConfig): Promise<WireConfig> {
    const { desk, task } = await this.#at(config.taskId);
    const read = readConfig(this.#sending.sdk, config);
    if (isEndState(stateOf(await task.turn.current()))) {
      throw new this.#sending.sdk.errors.UnsupportedOperationError(
        "the task has ended: it sends no more notifications",
      );
    }
    return wireConfigOf(await desk.put(this.#sending.caller, newWebhook(read, task)));
  }

  /** In 0.3 the id may be absent if there is only one. */
  async get({ taskId, id }: Pick<GetTaskPushNotificationConfigRequest, "taskId" | "id">): Promise<WireConfig> {
    const known = await this.#known(taskId);
    const found = id === "" && known.length === 1 ? known[0] : known.find(({ name }) => name === id);
    if (found) return wireConfigOf(found);
    throw this.#notFound();
  }

  async list({
    taskId,
    pageSize,
    pageToken,
  }: Pick<ListTaskPushNotificationConfigsRequest, "taskId" | "pageSize" | "pageToken">): Promise<{
    readonly configs: readonly WireConfig[];
    readonly nextPageToken: string;
  }> {
    const { RequestMalformedError } = this.#sending.sdk.errors;
    const known = await this.#known(taskId);
    if (!Number.isSafeInteger(pageSize) || pageSize < 0 || pageSize > MOST_OF_A_PAGE) {
      throw new RequestMalformedError(`pageSize must be a whole number from 1 to ${MOST_OF_A_PAGE}`);
    }
    const after = pageToken === "" ? "" : openedId(PAGE, pageToken);
    if (after === undefined) throw new RequestMalformedError("pageToken must be the nextPageToken of an earlier page");
    const left = known.filter(({ name }) => name > after);
    const page = pageSize === 0 ? left : left.slice(0, pageSize);
    const last = page.length < left.length ? page.at(-1) : undefined;
    return { configs: page.map(wireConfigOf), nextPageToken: last === undefined ? "" : sealedId(PAGE, last.name) };
  }

  async delete({ taskId, id }: Pick<DeleteTaskPushNotificationConfigRequest, "taskId" | "id">): Promise<null> {
    const { desk, task } = await this.#at(taskId);
    if (await desk.remove(this.#sending.caller, placeOfTask(task), id)) return null;
    throw this.#notFound();
  }

  /** The configuration inside a message, validated before the message takes effect; `undefined` without one. */
  async planned({ configuration, message }: SendMessageRequest): Promise<ReadConfig | undefined> {
    const config = configuration?.taskPushNotificationConfig;
    if (config === undefined) return undefined;
    const { sdk, caller } = this.#sending;
    const desk = this.#desk ?? this.#refused();
    const { messageId = "", taskId = "" } = message ?? {};
    if (config.taskId !== "" && config.taskId !== taskId) {
      throw new sdk.errors.RequestMalformedError("configuration.taskPushNotificationConfig.taskId names another task");
    }
    // A repeated message has the same default id, so that it adds no second configuration.
    const read = readConfig(sdk, config, messageId.slice(0, 255).toWellFormed());
    await desk.assertUrl(read.url);
    if (taskId !== "") await desk.assertRoom(caller, placeOfTask(await taskOfId(this.#sending, taskId)), read.name);
    return read;
  }

  async begin(task: TaskTurn, config: ReadConfig): Promise<void> {
    const desk = this.#desk ?? this.#refused();
    await desk.put(this.#sending.caller, newWebhook(config, task));
  }

  async #known(taskId: string): Promise<readonly Webhook[]> {
    const { desk, task } = await this.#at(taskId);
    return await desk.list(this.#sending.caller, placeOfTask(task));
  }

  async #at(taskId: string): Promise<{ readonly desk: WebhookRegistry; readonly task: TaskTurn }> {
    const task = await taskOfId(this.#sending, taskId);
    return { task, desk: this.#desk ?? this.#refused() };
  }

  #refused(): never {
    throw new this.#sending.sdk.errors.PushNotificationNotSupportedError(
      "this agent sends no push notifications: subscribe to the task",
    );
  }

  /** The protocol has no error for a missing configuration. */
  #notFound(): Error {
    return new this.#sending.sdk.errors.TaskNotFoundError("the task has no such push notification config");
  }
}

const PAGE = "configs";
