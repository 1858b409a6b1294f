import type { Call } from "../core/route.ts";
import type { SseFrame } from "../core/sse.ts";
import type { A2aMethods } from "./methods.ts";
import { protocolError } from "./protocol-errors.ts";
import type { Sdk } from "./sdk.ts";

/** A method for both bindings: JSON parameters in, JSON result out. */
export type Method =
  | {
      readonly run: (methods: A2aMethods, params: object) => unknown;
      /** Status of the HTTP answer. Default 200; 204 has no body. */
      readonly status?: 201 | 204;
    }
  | { readonly stream: (methods: A2aMethods, params: object, signal: AbortSignal) => AsyncIterable<unknown> };

export type RpcId = string | number | null;

/** What a binding needs to answer a request. */
export interface BindingContext {
  readonly sdk: Sdk;
  readonly methods: Readonly<Record<string, Method>>;
  readonly agent: A2aMethods;
}

/** The twelve methods, keyed by their protocol names. */
export function methodsBy({ codecs, errors }: Sdk): Readonly<Record<string, Method>> {
  const decoded =
    <Request>(codec: { readonly fromJSON: (json: object) => Request }) =>
    (params: object): Request => {
      try {
        return codec.fromJSON(params);
      } catch (cause) {
        throw new errors.RequestMalformedError({ message: "the parameters are invalid", cause });
      }
    };
  const message = decoded(codecs.SendMessageRequest);
  const get = decoded(codecs.GetTaskRequest);
  const list = decoded(codecs.ListTasksRequest);
  const cancel = decoded(codecs.CancelTaskRequest);
  const subscribe = decoded(codecs.SubscribeToTaskRequest);
  const config = decoded(codecs.TaskPushNotificationConfig);
  const getConfig = decoded(codecs.GetTaskPushNotificationConfigRequest);
  const listConfigs = decoded(codecs.ListTaskPushNotificationConfigsRequest);
  const deleteConfig = decoded(codecs.DeleteTaskPushNotificationConfigRequest);
  return {
    SendMessage: { run: (methods, params) => methods.sendMessage(message(params)) },
    SendStreamingMessage: {
      stream: (methods, params, signal) => methods.sendStreamingMessage(message(params), signal),
    },
    GetTask: { run: (methods, params) => methods.getTask(get(params)) },
    ListTasks: { run: (methods, params) => methods.listTasks(list(params)) },
    CancelTask: { run: (methods, params) => methods.cancelTask(cancel(params)) },
    SubscribeToTask: { stream: (methods, params, signal) => methods.subscribeToTask(subscribe(params), signal) },
    CreateTaskPushNotificationConfig: {
      run: (methods, params) => methods.push.create(config(params)),
      status: 201,
    },
    GetTaskPushNotificationConfig: { run: (methods, params) => methods.push.get(getConfig(params)) },
    ListTaskPushNotificationConfigs: { run: (methods, params) => methods.push.list(listConfigs(params)) },
    DeleteTaskPushNotificationConfig: {
      run: (methods, params) => methods.push.delete(deleteConfig(params)),
      status: 204,
    },
    GetExtendedAgentCard: { run: (methods) => methods.extendedCard() },
  };
}

/** Encodes stream items and errors for one binding. */
export interface StreamForm {
  item(value: unknown): SseFrame;
  /** `error`: the thrown value. */
  error(error: unknown): SseFrame;
}

interface StreamSource {
  readonly agent: A2aMethods;
  readonly open: (signal: AbortSignal) => AsyncIterable<unknown>;
  readonly form: StreamForm;
}

/**
 * Streams the items of a method. An error before the first item rejects and so gets a response of its own; a later
 * error becomes the last frame. An error without a protocol equivalent cuts the stream, and the client subscribes
 * again.
 */
export async function streamOf(sdk: Sdk, call: Call, { agent, open, form }: StreamSource): Promise<Response> {
  const streaming = new AbortController();
  const items = open(AbortSignal.any([call.signal, streaming.signal]))[Symbol.asyncIterator]();
  const first = await items.next();
  const end = async (): Promise<void> => {
    streaming.abort();
    await items.return?.();
  };
  const frames = async function* (signal: AbortSignal): AsyncGenerator<SseFrame, void, undefined> {
    signal.addEventListener("abort", () => streaming.abort(), { once: true });
    try {
      for (let item = first; item.done !== true; item = await items.next()) yield form.item(item.value);
    } catch (error) {
      if (signal.aborted) return;
      if (protocolError(sdk, error) === undefined) throw error;
      yield form.error(error);
    } finally {
      await end();
    }
  };
  try {
    return await call.stream(frames, { headers: agent.headers });
  } catch (error) {
    await end();
    throw error;
  }
}
