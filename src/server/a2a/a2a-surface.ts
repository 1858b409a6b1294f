import { z } from "zod";
import { type OptionsSchema, listRule, nameRule, optionsOf, ruleOf } from "../../base/index.ts";
import { InvalidInputError, NotFoundError } from "../../errors/index.ts";
import { type Call, type Route, type RouteShape, route } from "../core/route.ts";
import type { Surface } from "../core/surface.ts";
import { type BindingContext, methodsBy } from "./bindings.ts";
import { type A2aServed, cardOf, cardResponse } from "./card.ts";
import { answerRpc } from "./json-rpc.ts";
import { A2aMethods } from "./methods.ts";
import { restFailure, rpcFailure } from "./protocol-errors.ts";
import { A2A } from "./push-config.ts";
import { pushForm } from "./push-form.ts";
import { answerRest } from "./rest.ts";
import { loadSdk, type Sdk } from "./sdk.ts";

/** Options of `a2aSurface()`. */
export interface A2aSurfaceOptions {
  /**
   * The agents to serve; their cards are public. Default: every definition of the runtime, with cards that only callers
   * may read.
   */
  readonly agents?: readonly A2aServed[] | undefined;
  /** Base path of the routes. Default `/a2a`: the agent `desk` is at `/a2a/desk`. */
  readonly path?: string | undefined;
  /**
   * The server's address for its clients, as `https://agents.example.com`. Set it behind a proxy that ends TLS, where
   * requests name another address. Default: the address of the request.
   */
  readonly publicUrl?: string | undefined;
}

const CARD = "/.well-known/agent-card.json";

/**
 * A2A version 1.0 over JSON-RPC and HTTP, and version 0.3 over JSON-RPC. A context is a conversation, a task one of its
 * turns. Rejects with `UnsupportedError` if the package `@a2a-js/sdk` is not installed, and with `InvalidInputError`
 * for invalid options.
 */
export async function a2aSurface(given: A2aSurfaceOptions = {}): Promise<Surface> {
  const options = optionsOf<A2aSurfaceOptions>(given, "a2aSurface()", a2aOptionsSchema);
  const { agents, path = "/a2a" } = options;
  const names = agents?.map(({ definition }) => definition.name) ?? [];
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new InvalidInputError(`a2aSurface(): two agents are named ${twice}`);
  const at = new A2aEndpoints(await loadSdk(), { ...options, path });
  const isRpc = new RegExp(`${path.replaceAll(/[.*+?^$()|[\]\\{}]/g, "\\$&")}/[^/]+/?$`);
  return {
    name: A2A,
    webhooks: pushForm,
    paths: [path, CARD],
    headers: ["a2a-version", "a2a-extensions", "x-a2a-extensions"],
    routes: [...cardRoutes(at), ...methodRoutes(at)],
    failure: (failure, request) => {
      const isOfRpc = request.method === "POST" && isRpc.test(new URL(request.url).pathname);
      return isOfRpc ? rpcFailure(failure) : restFailure(failure);
    },
  };
}

const servedRule = ruleOf("an agent { definition, … }", (value) => {
  const { definition } = (typeof value === "object" && value !== null ? value : {}) as Partial<A2aServed>;
  return typeof definition === "object" && definition !== null && typeof definition.name === "string";
});

const pathRule = ruleOf(
  'a path like "/a2a", without a trailing slash',
  (value) => typeof value === "string" && /^(?:\/[\w.~-]+)+$/.test(value),
);

const a2aOptionsSchema: OptionsSchema<A2aSurfaceOptions> = {
  rules: { agents: listRule("a list of agents", servedRule), path: pathRule, publicUrl: nameRule },
};

/** The agents of a surface and their addresses. */
class A2aEndpoints {
  readonly agents: readonly A2aServed[] | undefined;
  readonly path: string;
  readonly #sdk: Sdk;
  readonly #methods: BindingContext["methods"];
  readonly #publicUrl: string | undefined;

  constructor(sdk: Sdk, { agents, path, publicUrl }: A2aSurfaceOptions & { readonly path: string }) {
    this.agents = agents;
    this.path = path;
    this.#sdk = sdk;
    this.#methods = methodsBy(sdk);
    this.#publicUrl = publicUrl?.replace(/\/+$/, "");
  }

  /** The agent of that name, or the only agent if `name` is absent. Throws `NotFoundError`. */
  served(name: string | undefined, call: Call): A2aServed {
    const served = this.agents ?? [...call.caller.runtime.definitions.values()].map((definition) => ({ definition }));
    const found = name === undefined ? only(served) : served.find(({ definition }) => definition.name === name);
    if (found) return found;
    const cards = served.map(({ definition }) => this.#urlOf(definition.name, call) + CARD);
    throw new NotFoundError(
      name === undefined ? `there are several agents, each with a card: ${cards.join(" ")}` : "there is no such agent",
    );
  }

  cardOf(name: string | undefined, call: Call): object {
    const served = this.served(name, call);
    return cardOf(served, {
      url: this.#urlOf(served.definition.name, call),
      pushNotifications: call.webhooks !== undefined,
    });
  }

  bindingOf(name: string, call: Call): BindingContext {
    const served = this.served(name, call);
    const agent = new A2aMethods(call, served, { sdk: this.#sdk, url: this.#urlOf(name, call) });
    return { sdk: this.#sdk, methods: this.#methods, agent };
  }

  #urlOf(name: string, { origin }: Call): string {
    return `${this.#publicUrl ?? origin}${this.path}/${name}`;
  }
}

function only<T>(list: readonly T[]): T | undefined {
  return list.length === 1 ? list[0] : undefined;
}

/**
 * Routes of the agents' cards. With a single agent, its card is also at the two addresses above: a client that was
 * configured with `/a2a/desk`, without a trailing slash, looks for the card at `/a2a`.
 */
function cardRoutes(at: A2aEndpoints): readonly Route[] {
  const isPublic = at.agents !== undefined;
  const shape = {
    method: "GET",
    access: isPublic ? "public" : "caller",
    responses: { 200: { description: "The card." } },
  } as const;
  const summary = "The card of an agent: its skills and addresses";
  const above = [...new Set([CARD, `${at.path}${CARD}`])].map((path) =>
    route({
      ...shape,
      id: path,
      path,
      summary,
      handle: (call) => cardResponse(at.cardOf(undefined, call), call.request, isPublic),
    }),
  );
  return [
    ...above,
    route({
      ...shape,
      id: "card",
      path: `${at.path}/{agent}${CARD}`,
      summary,
      params: z.object({ agent: z.string() }),
      handle: (call) => cardResponse(at.cardOf(call.params.agent, call), call.request, isPublic),
    }),
  ];
}

const agentParams = z.object({ agent: z.string() });
const taskParams = agentParams.extend({ task: z.string() });
const configParams = taskParams.extend({ config: z.string() });
const answers: RouteShape["responses"] = { 200: { description: "The result of the method." } };

function methodRoutes(at: A2aEndpoints): readonly Route[] {
  const shape = { access: "caller", responses: answers } as const;
  const agent = `${at.path}/{agent}`;
  const task = `${agent}/tasks/{task}`;
  const configs = `${task}/pushNotificationConfigs`;
  const rest = async (call: Call<{ agent: string }>, method: string | undefined, params: object): Promise<Response> => {
    if (method === undefined) throw new NotFoundError("there is no such operation");
    return await answerRest(call, at.bindingOf(call.params.agent, call), { method, params });
  };
  const post = { ...shape, method: "POST", body: z.unknown() } as const;
  const get = { ...shape, method: "GET", query: queryObject } as const;
  return [
    route({
      ...post,
      id: "rpc",
      path: agent,
      summary: "Calls a method over JSON-RPC",
      params: agentParams,
      handle: async (call) => await answerRpc(call, at.bindingOf(call.params.agent, call)),
    }),
    route({
      ...post,
      id: "message",
      path: `${agent}/{operation}`,
      summary: "`message:send` and `message:stream`",
      params: agentParams.extend({ operation: z.string() }),
      body: bodyObject,
      handle: async (call) => await rest(call, messageMethods.get(call.params.operation), call.body ?? {}),
    }),
    route({
      ...get,
      id: "listTasks",
      path: `${agent}/tasks`,
      summary: "The caller's tasks, the newest status first",
      params: agentParams,
      handle: async (call) => await rest(call, "ListTasks", call.query),
    }),
    route({
      ...get,
      id: "getTask",
      path: task,
      summary: "A task, or its changes with `:subscribe`",
      params: taskParams,
      handle: async (call) => {
        const { id, verb } = taskVerb(call.params.task);
        const method = verb === undefined ? "GetTask" : verb === "subscribe" ? "SubscribeToTask" : undefined;
        return await rest(call, method, { ...call.query, id });
      },
    }),
    route({
      ...post,
      id: "changeTask",
      path: task,
      summary: "`:cancel` ends a task, `:subscribe` follows it",
      params: taskParams,
      body: bodyObject,
      handle: async (call) => {
        const { id, verb } = taskVerb(call.params.task);
        const method = verb === "cancel" ? "CancelTask" : verb === "subscribe" ? "SubscribeToTask" : undefined;
        return await rest(call, method, { ...call.body, id });
      },
    }),
    route({
      ...post,
      id: "createConfig",
      path: configs,
      summary: "Adds a receiver for the changes of a task",
      params: taskParams,
      body: bodyObject,
      responses: { 201: { description: "The configuration, without its secrets." } },
      handle: async (call) => {
        return await rest(call, "CreateTaskPushNotificationConfig", { ...call.body, taskId: call.params.task });
      },
    }),
    route({
      ...get,
      id: "listConfigs",
      path: configs,
      summary: "The receivers of a task",
      params: taskParams,
      handle: async (call) => {
        return await rest(call, "ListTaskPushNotificationConfigs", { ...call.query, taskId: call.params.task });
      },
    }),
    ...(["GET", "DELETE"] as const).map((method) =>
      route({
        ...shape,
        method,
        id: `${method}Config`,
        path: `${configs}/{config}`,
        summary: method === "GET" ? "A receiver of a task" : "Removes a receiver",
        params: configParams,
        responses: method === "GET" ? answers : { 204: { description: "The receiver is removed." } },
        handle: async (call) => {
          const name = `${method === "GET" ? "Get" : "Delete"}TaskPushNotificationConfig`;
          return await rest(call, name, { taskId: call.params.task, id: call.params.config });
        },
      }),
    ),
    route({
      ...get,
      id: "extendedCard",
      path: `${agent}/extendedAgentCard`,
      summary: "The card that only callers see",
      params: agentParams,
      handle: async (call) => await rest(call, "GetExtendedAgentCard", {}),
    }),
  ];
}

const messageMethods = new Map([
  ["message:send", "SendMessage"],
  ["message:stream", "SendStreamingMessage"],
]);

const queryObject = z.looseObject({});
const bodyObject = z.record(z.string(), z.unknown()).optional();

/** Splits `desk-7.3:cancel`; the id of a task contains no colon. */
function taskVerb(text: string): { readonly id: string; readonly verb?: string } {
  const colon = text.lastIndexOf(":");
  return colon < 0 ? { id: text } : { id: text.slice(0, colon), verb: text.slice(colon + 1) };
}
