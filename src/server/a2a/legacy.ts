import type { AgentCard } from "@a2a-js/sdk";
import type { A2ARequestHandler } from "@a2a-js/sdk/server";
import { z } from "zod";
import type { Call } from "../core/route.ts";
import { type BindingContext, type RpcId, streamOf } from "./bindings.ts";
import type { A2aMethods } from "./methods.ts";
import { protocolError } from "./protocol-errors.ts";
import type { Sdk } from "./sdk.ts";

interface LegacyRequest {
  readonly jsonrpc: "2.0";
  readonly id: RpcId;
  readonly method: string;
  readonly params?: unknown;
}

/** Answers a request of version 0.3: the official package translates it, and the same methods answer it. */
export async function answerLegacy(
  call: Call,
  { sdk, agent }: BindingContext,
  { params, ...envelope }: LegacyRequest,
): Promise<Response> {
  const { LegacyJsonRpcTransportHandler, ServerCallContext } = await sdk.legacy();
  if (envelope.method.startsWith("message/")) assertFits(sdk, messageParams, params);
  if (envelope.method.startsWith("tasks/pushNotificationConfig/")) {
    assertFits(sdk, envelope.method.endsWith("/set") ? setParams : idParams, params);
  }
  const handler = new LegacyHandler(sdk, agent, call.signal);
  const context = new ServerCallContext({ requestedVersion: "0.3" });
  const answer = await new LegacyJsonRpcTransportHandler(handler).handle({ ...envelope, params }, context);
  if (handler.fault !== undefined) throw handler.fault;
  if (!(Symbol.asyncIterator in answer)) return Response.json(answer, { headers: agent.headers });
  return await streamOf(sdk, call, {
    agent,
    open: () => answer,
    form: {
      item: (item) => ({ data: JSON.stringify(item) }),
      error: (thrown) => {
        const error = LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError(protocolError(sdk, thrown));
        return { data: JSON.stringify({ jsonrpc: "2.0", id: envelope.id, error }) };
      },
    },
  });
}

const part = z.looseObject({ kind: z.enum(["text", "file", "data"]) });
const pushNotificationConfig = z.looseObject({
  url: z.string(),
  id: z.string().optional(),
  token: z.string().optional(),
  authentication: z.looseObject({ schemes: z.array(z.string()), credentials: z.string().optional() }).optional(),
});
const messageParams = z.looseObject({
  configuration: z.looseObject({ pushNotificationConfig: pushNotificationConfig.optional() }).optional(),
  message: z
    .looseObject({
      messageId: z.string(),
      role: z.enum(["user", "agent"]),
      parts: z.array(
        z.union([
          part.extend({ kind: z.literal("text"), text: z.string() }),
          part.extend({ kind: z.literal("data"), data: z.unknown() }),
          part.extend({
            kind: z.literal("file"),
            file: z.union([z.looseObject({ bytes: z.string() }), z.looseObject({ uri: z.string() })]),
          }),
        ]),
      ),
    })
    .optional(),
});

const idParams = z.looseObject({ id: z.string() });
const setParams = z.looseObject({ taskId: z.string(), pushNotificationConfig });

/** Checks the parameters, because the translation does not. */
function assertFits({ errors }: Sdk, schema: z.ZodObject, params: unknown): void {
  if (params === undefined && schema === messageParams) return;
  const { error } = schema.safeParse(params);
  const [issue] = error?.issues ?? [];
  if (issue) throw new errors.RequestMalformedError(`${["params", ...issue.path].join(".")}: ${issue.message}`);
}

/** The methods behind the interface that the translation calls. */
class LegacyHandler implements A2ARequestHandler {
  readonly #sdk: Sdk;
  readonly #agent: A2aMethods;
  readonly #signal: AbortSignal;
  /** The last error without a protocol equivalent; its message is not for clients. */
  fault: unknown;

  constructor(sdk: Sdk, agent: A2aMethods, signal: AbortSignal) {
    this.#sdk = sdk;
    this.#agent = agent;
    this.#signal = signal;
  }

  async getAgentCard(): Promise<AgentCard> {
    return await Promise.resolve(this.#sdk.codecs.AgentCard.fromJSON(this.#agent.card()));
  }

  getAuthenticatedExtendedAgentCard: A2ARequestHandler["getAuthenticatedExtendedAgentCard"] = async () =>
    await Promise.resolve(this.#sdk.codecs.AgentCard.fromJSON(this.#agent.extendedCard()));

  sendMessage: A2ARequestHandler["sendMessage"] = async (params) =>
    this.#sdk.codecs.Task.fromJSON((await this.#named(this.#agent.sendMessage(params))).task);

  sendMessageStream: A2ARequestHandler["sendMessageStream"] = (params) =>
    this.#decoded(this.#agent.sendStreamingMessage(params, this.#signal));

  getTask: A2ARequestHandler["getTask"] = async (params) =>
    this.#sdk.codecs.Task.fromJSON(await this.#named(this.#agent.getTask(params)));

  cancelTask: A2ARequestHandler["cancelTask"] = async (params) =>
    this.#sdk.codecs.Task.fromJSON(await this.#named(this.#agent.cancelTask(params)));

  resubscribe: A2ARequestHandler["resubscribe"] = (params) =>
    this.#decoded(this.#agent.subscribeToTask(params, this.#signal));

  listTasks: A2ARequestHandler["listTasks"] = async (params) =>
    this.#sdk.codecs.ListTasksResponse.fromJSON(await this.#named(this.#agent.listTasks(params)));

  createTaskPushNotificationConfig: A2ARequestHandler["createTaskPushNotificationConfig"] = async (params) =>
    this.#sdk.codecs.TaskPushNotificationConfig.fromJSON(await this.#named(this.#agent.push.create(params)));

  getTaskPushNotificationConfig: A2ARequestHandler["getTaskPushNotificationConfig"] = async (params) =>
    this.#sdk.codecs.TaskPushNotificationConfig.fromJSON(await this.#named(this.#agent.push.get(params)));

  listTaskPushNotificationConfigs: A2ARequestHandler["listTaskPushNotificationConfigs"] = async (params) =>
    this.#sdk.codecs.ListTaskPushNotificationConfigsResponse.fromJSON(await this.#named(this.#agent.push.list(params)));

  deleteTaskPushNotificationConfig: A2ARequestHandler["deleteTaskPushNotificationConfig"] = async (params) => {
    await this.#named(this.#agent.push.delete(params));
  };

  async #named<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (thrown) {
      const error = protocolError(this.#sdk, thrown);
      if (error === undefined) this.fault = thrown;
      throw error ?? thrown;
    }
  }

  async *#decoded(items: AsyncIterable<object>): ReturnType<A2ARequestHandler["resubscribe"]> {
    for await (const item of items) yield this.#sdk.codecs.StreamResponse.fromJSON(item);
  }
}
