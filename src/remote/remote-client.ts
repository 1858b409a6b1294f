import type * as Core from "@a2a-js/sdk";
import type { Message, SendMessageRequest, StreamResponse, Task } from "@a2a-js/sdk";
import type * as ClientSide from "@a2a-js/sdk/client";
import type * as Errors from "@a2a-js/sdk/errors";
import { z } from "zod";
import { optionalPackage } from "../base/index.ts";
import { guardedFetch, jsonOf } from "./guarded-fetch.ts";
import { RemoteAgentError, remoteErrorOf } from "./remote-error.ts";

/** The used exports of the official package. */
export interface ClientSdk {
  readonly codecs: typeof Core;
  readonly client: typeof ClientSide;
  readonly errors: typeof Errors;
}

/** Loads the package once. Rejects with `UnsupportedError` if it is not installed. */
const loadSdk = optionalPackage(importSdk, 'Remote agents need the package "@a2a-js/sdk": npm install @a2a-js/sdk');

async function importSdk(): Promise<ClientSdk> {
  const [codecs, client, errors] = await Promise.all([
    import("@a2a-js/sdk"),
    import("@a2a-js/sdk/client"),
    import("@a2a-js/sdk/errors"),
  ]);
  return { codecs, client, errors };
}

/** The used fields of a card; a card may have others. */
const cardSchema = z.object({
  name: z.string().min(1).max(1_000),
  supportedInterfaces: z
    .array(
      z.object({
        url: z.url({ protocol: /^https?$/ }),
        protocolBinding: z.string(),
        protocolVersion: z.string(),
        tenant: z.string().optional(),
      }),
    )
    .min(1),
  capabilities: z
    .object({
      streaming: z.boolean().optional(),
      extensions: z.array(z.object({ uri: z.string() })).optional(),
    })
    .optional(),
});
type Card = z.output<typeof cardSchema>;

/** The address of a remote agent, and the limits of its answers. */
export interface RemoteEndpoint {
  /**
   * URL of the card, or of the agent; the card is then at the well-known path below it. `undefined` if `card` is given.
   */
  readonly url: string | undefined;
  readonly card: unknown;
  /** Further origins where the card may locate the agent. */
  readonly allowedOrigins: readonly string[];
  /** Maximum bytes of one answer, including streams. */
  readonly maxBytes: number;
}

const WELL_KNOWN = ".well-known/agent-card.json";
/** Supported bindings, the preferred one first. */
const bindings = ["JSONRPC", "HTTP+JSON"];
const spokenVersion = /^(?:1(?:\.\d+)*|0\.3(?:\.\d+)*)$/;
/** Timeout of an answer that is not streamed, in milliseconds. */
const ANSWER_MS = 60_000;

/** A remote agent, as used by one call. All methods reject with `RemoteAgentError`. */
export class RemoteClient {
  readonly card: Card;
  readonly isStreaming: boolean;
  readonly extensions: ReadonlySet<string>;
  readonly #sdk: ClientSdk;
  readonly #client: ClientSide.Client;

  /** `headers` is called before each request. Rejects with `UnsupportedError` if the package is not installed. */
  static async open(
    place: RemoteEndpoint,
    headers: () => Promise<Readonly<Record<string, string>>>,
    signal: AbortSignal,
  ): Promise<RemoteClient> {
    const sdk = await loadSdk();
    const cardUrl = place.url === undefined ? undefined : addressOfCard(place.url);
    const origins = new Set([...place.allowedOrigins, ...(cardUrl ? [cardUrl.origin] : [])]);
    const rules = { maxBytes: place.maxBytes, headers };
    const given = cardUrl ? await fetchedCard(guardedFetch({ ...rules, origins }), cardUrl, signal) : place.card;
    const card = cardOf(sdk, given);
    // A card from the program itself may name any address.
    if (!cardUrl) for (const { url } of card.supportedInterfaces) origins.add(new URL(url).origin);
    const usable = usableInterfaces(card, origins);
    const fetchImpl = guardedFetch({ ...rules, origins });
    const transport = { fetchImpl, legacyCompat: { enabled: true } };
    const factory = new sdk.client.ClientFactory({
      transports: [new sdk.client.JsonRpcTransportFactory(transport), new sdk.client.RestTransportFactory(transport)],
      preferredTransports: bindings,
      cardResolver: { resolve: () => Promise.reject(new Error("the card is known")) },
      clientConfig: { polling: true },
    });
    const whole = { ...(card as unknown as Core.AgentCard), supportedInterfaces: usable };
    return new RemoteClient(sdk, card, await factory.createFromAgentCard(whole as Core.AgentCard));
  }

  private constructor(sdk: ClientSdk, card: Card, client: ClientSide.Client) {
    this.#sdk = sdk;
    this.#client = client;
    this.card = card;
    this.isStreaming = card.capabilities?.streaming === true;
    this.extensions = new Set(card.capabilities?.extensions?.map(({ uri }) => uri));
  }

  /** Sends a message and yields its results: a stream if the agent streams, else the task in its current state. */
  async *send(message: Message, signal: AbortSignal): AsyncGenerator<StreamResponse, void, undefined> {
    const request: SendMessageRequest = { tenant: "", metadata: undefined, configuration: undefined, message };
    const options = optionsOf(signal, message.extensions);
    if (this.isStreaming) {
      yield* this.#stream("sending", signal, () => this.#client.sendMessageStream(request, options));
      return;
    }
    const result = await this.#answer("sending", signal, () => this.#client.sendMessage(request, options), null);
    yield { payload: "messageId" in result ? { $case: "message", value: result } : { $case: "task", value: result } };
  }

  /** The current task, then its changes. */
  async *subscribe(taskId: string, signal: AbortSignal): AsyncGenerator<StreamResponse, void, undefined> {
    yield* this.#stream("subscribing", signal, () =>
      this.#client.resubscribeTask({ tenant: "", id: taskId }, optionsOf(signal)),
    );
  }

  async task(taskId: string, signal: AbortSignal): Promise<Task> {
    const request = { tenant: "", id: taskId, historyLength: 1 };
    return await this.#answer("asking for the task", signal, (limited) =>
      this.#client.getTask(request, optionsOf(limited)),
    );
  }

  async cancel(taskId: string, signal: AbortSignal): Promise<Task> {
    const request = { tenant: "", id: taskId, metadata: undefined };
    return await this.#answer("cancelling", signal, (limited) => this.#client.cancelTask(request, optionsOf(limited)));
  }

  /** Builds a message of text or data in the protocol's form. */
  message(fields: Pick<Message, "messageId" | "contextId" | "taskId" | "parts" | "extensions">): Message {
    return { ...fields, role: this.#sdk.codecs.Role.ROLE_USER, metadata: undefined, referenceTaskIds: [] };
  }

  /** The protocol's name of a state. */
  stateOf(task: Pick<Task, "status">): string {
    return this.#sdk.codecs.TaskState[task.status?.state ?? 0] ?? "TASK_STATE_UNSPECIFIED";
  }

  async *#stream(
    what: string,
    signal: AbortSignal,
    open: () => AsyncGenerator<StreamResponse, void, undefined>,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    try {
      yield* open();
    } catch (error) {
      throw this.#failure(error, what, signal);
    }
  }

  async #answer<T>(
    what: string,
    signal: AbortSignal,
    ask: (signal: AbortSignal) => Promise<T>,
    limitMs: number | null = ANSWER_MS,
  ): Promise<T> {
    const late = limitMs === null ? new AbortController().signal : AbortSignal.timeout(limitMs);
    try {
      return await ask(AbortSignal.any([signal, late]));
    } catch (error) {
      if (late.aborted && !signal.aborted) {
        throw new RemoteAgentError("remote_unreachable", `${what}: no answer within ${ANSWER_MS / 1_000} s`, {
          cause: error,
        });
      }
      throw this.#failure(error, what, signal);
    }
  }

  #failure(error: unknown, what: string, signal: AbortSignal): unknown {
    if (signal.aborted) return signal.reason;
    return remoteErrorOf(error, what, (one) => this.#reasonOf(one));
  }

  /** The name of a protocol error; for an error of JSON-RPC itself, whether the request was at fault. */
  #reasonOf(error: unknown): string | undefined {
    if (!(error instanceof this.#sdk.errors.A2AError)) return undefined;
    const { code } = error as { readonly code?: unknown };
    const isRefusal = error.reason === "INTERNAL_ERROR" && typeof code === "number" && code !== -32603;
    return isRefusal ? `JSON-RPC ${code}` : error.reason;
  }
}

function optionsOf(signal: AbortSignal, extensions: readonly string[] = []): ClientSide.RequestOptions {
  return extensions.length === 0
    ? { signal }
    : { signal, serviceParameters: { "A2A-Extensions": extensions.join(",") } };
}

/** The URL of a card: the given one, or the well-known path below an agent's URL. */
function addressOfCard(url: string): URL {
  const given = new URL(url);
  if (given.pathname.endsWith(".json")) return given;
  return new URL(WELL_KNOWN, given.pathname.endsWith("/") ? given : new URL(`${given.pathname}/`, given));
}

async function fetchedCard(fetchImpl: typeof fetch, url: URL, signal: AbortSignal): Promise<unknown> {
  const headers = { accept: "application/json", "A2A-Version": "1.0" };
  const limited = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
  const response = await fetchImpl(url, { headers, signal: limited });
  if (response.ok) return await jsonOf(response, "its card");
  throw new RemoteAgentError("remote_card", `there is no card at ${url.origin}${url.pathname} (${response.status})`);
}

function cardOf({ client }: ClientSdk, given: unknown): Card {
  let normal: unknown;
  try {
    normal = new client.DefaultAgentCardResolver({ legacyCompat: { enabled: true } }).normalizeAgentCard(given);
  } catch (cause) {
    throw new RemoteAgentError("remote_card", "the card cannot be read", { cause });
  }
  const { data, error } = cardSchema.safeParse(normal);
  if (data) return data;
  const [issue] = error.issues;
  throw new RemoteAgentError(
    "remote_card",
    `the card is invalid: ${issue?.path.map(String).join(".")}: ${issue?.message}`,
  );
}

/** The permitted interfaces: a card from one host must not send messages and credentials to another. */
function usableInterfaces({ supportedInterfaces }: Card, origins: ReadonlySet<string>): Card["supportedInterfaces"] {
  const known = supportedInterfaces.filter(
    ({ protocolBinding, protocolVersion }) =>
      bindings.includes(protocolBinding.toUpperCase()) && spokenVersion.test(protocolVersion),
  );
  if (known.length === 0) {
    const told = supportedInterfaces.map(
      ({ protocolBinding, protocolVersion }) => `${protocolBinding} ${protocolVersion}`,
    );
    throw new RemoteAgentError(
      "remote_version",
      `the remote agent supports ${told.slice(0, 10).join(", ").slice(0, 500)}; troupe supports JSONRPC and HTTP+JSON, versions 1.0 and 0.3`,
    );
  }
  const allowed = known.filter(({ url }) => origins.has(new URL(url).origin));
  if (allowed.length > 0) return allowed;
  const elsewhere = known.map(({ url }) => new URL(url).origin).join(", ");
  throw new RemoteAgentError(
    "remote_card",
    `the card locates the agent at ${elsewhere}, not at ${[...origins].join(", ")}; allow that with allowedOrigins`,
  );
}
