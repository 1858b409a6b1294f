import {
  type Clock,
  createId,
  createRedactor,
  type OptionsSchema,
  functionRule,
  listRule,
  nameRule,
  ruleOf,
} from "../../base/index.ts";
import { InvalidInputError, InvariantError, UnsupportedError } from "../../errors/index.ts";
import type { Runtime } from "../../runtime/index.ts";
import { agentOfTurn, type TreeWebhooks, type Webhook } from "../../state/index.ts";
import { Caller } from "../core/caller.ts";
import { ServerError } from "../core/failures.ts";
import { OpenCalls } from "../core/limits.ts";
import type { Surface } from "../core/surface.ts";
import type { NewWebhook, WebhookRegistry, WebhookSubject } from "../core/webhooks.ts";
import { Dispatcher } from "./dispatcher.ts";
import { type LookupAddresses, Receivers } from "./receiver.ts";
import { Sealing } from "./sealing.ts";
import type { Delivery } from "./tree-delivery.ts";

/** How webhooks are stored and sent. */
export interface WebhookOptions {
  /**
   * Keys that encrypt the receivers' credentials in the store: each 32 random bytes in base64. The first encrypts, the
   * others only decrypt. All servers of a store need the same keys: add a new key to all servers before you move it to
   * the front.
   */
  readonly keys: readonly string[];
  /**
   * Origins of receivers that may be without TLS and in private networks, such as `http://hooks.internal:8080`.
   * Default: none; only public addresses are called, over `https:`.
   */
  readonly origins?: readonly string[] | undefined;
  /** Resolves a name to all its addresses, each of which is checked. Default: the system's resolver. */
  readonly lookup?: LookupAddresses | undefined;
}

export const webhooksOptionsSchema: OptionsSchema<WebhookOptions> = {
  rules: {
    keys: listRule(
      "a list of keys",
      ruleOf("a text", (value) => typeof value === "string"),
    ),
    origins: listRule("a list of origins", nameRule),
    lookup: functionRule,
  },
  needed: ["keys"],
  instead: { key: "keys" },
};

const MOST_OF_A_TURN = 20;
/** Limits of open webhook requests: of one server, and for the turns of one owner. */
const MOST_POSTS = 200;
const MOST_POSTS_OF_AN_OWNER = 20;
const MOST_ATTEMPTS = 50;

interface WebhooksDependencies {
  readonly runtimes: readonly Runtime[];
  readonly surfaces: readonly Surface[];
  readonly clock: Clock;
  readonly onDelivery: (runtime: Runtime, delivery: Delivery) => void;
}

/** The webhooks of one server, over all its runtimes. */
export class Webhooks implements WebhookRegistry {
  readonly #sealing: Sealing;
  readonly #receivers: Receivers;
  readonly #dispatchers: ReadonlyMap<Runtime, Dispatcher>;
  readonly #clock: Clock;
  readonly #closing = new AbortController();

  /** Throws `InvalidInputError` for invalid keys and origins. */
  constructor(
    { keys, origins, lookup }: WebhookOptions,
    { runtimes, surfaces, clock, onDelivery }: WebhooksDependencies,
  ) {
    this.#sealing = new Sealing(keys);
    this.#receivers = new Receivers({ origins, lookup, clock });
    this.#clock = clock;
    const posts = new OpenCalls({ most: MOST_POSTS, mostPerCaller: MOST_POSTS_OF_AN_OWNER, what: "webhooks" });
    const forms = new Map(surfaces.flatMap(({ name, webhooks }) => (webhooks ? [[name, webhooks] as const] : [])));
    const redactor = createRedactor();
    const shared = {
      clock,
      posts,
      random: Math.random,
      id: createId(),
      closing: this.#closing.signal,
      formOf: (surface: string) => forms.get(surface),
      post: this.#receivers.post.bind(this.#receivers),
      words: (error: unknown) => redactor.message(error),
    };
    this.#dispatchers = new Map(
      runtimes.map((runtime) => {
        const { stores, tenant } = runtime;
        const dispatcher = new Dispatcher(runtime, {
          ...shared,
          stores,
          tenant,
          callerOf: (ownerId) => this.#reader(runtime, ownerId),
          secretsOf: (rootAgentId, webhook) =>
            webhook.sealed === null
              ? {}
              : this.#sealing.open(webhook.sealed, sealingContext(tenant, rootAgentId, webhook)),
          onDelivery: (delivery) => onDelivery(runtime, delivery),
        });
        return [runtime, dispatcher];
      }),
    );
  }

  start(): void {
    for (const dispatcher of this.#dispatchers.values()) dispatcher.start();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#dispatchers.values()].map((dispatcher) => dispatcher.close()));
  }

  async assertUrl(url: string): Promise<void> {
    await this.#receivers.assertUrl(url);
  }

  async put(caller: Caller, given: NewWebhook): Promise<Webhook> {
    await this.assertUrl(given.url);
    const { secrets, ...rest } = given;
    const rootAgentId = agentOfTurn(given.turnId);
    const sealed =
      Object.keys(secrets).length === 0
        ? null
        : this.#sealing.seal(secrets, sealingContext(caller.tenant, rootAgentId, given));
    const now = this.#clock.now();
    const begun = { createdAt: now, cursor: 0, told: null, failures: 0, retryAt: null };
    const webhook: Webhook = { ...rest, ...begun, ownerId: caller.ownerId, sealed };
    await this.#change(caller, given, (known) => {
      assertRoomIn(known, given, given.name);
      return [...known.filter((one) => !(isAt(one, given) && one.name === given.name)), webhook];
    });
    this.#dispatchers.get(caller.runtime)?.look(rootAgentId);
    return webhook;
  }

  async assertRoom(caller: Caller, place: WebhookSubject, name: string): Promise<void> {
    const known = await caller.runtime.stores.webhooks(caller.tenant, agentOfTurn(place.turnId));
    assertRoomIn(known?.webhooks ?? [], place, name);
  }

  async list(caller: Caller, place: WebhookSubject): Promise<readonly Webhook[]> {
    const { stores } = caller.runtime;
    const known = await stores.webhooks(caller.tenant, agentOfTurn(place.turnId));
    const own = (known?.webhooks ?? []).filter((one) => isAt(one, place) && one.ownerId === caller.ownerId);
    return own.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }

  async remove(caller: Caller, place: WebhookSubject, name: string): Promise<boolean> {
    let isFound = false;
    await this.#change(caller, place, (known) => {
      const left = known.filter((one) => !(isAt(one, place) && one.ownerId === caller.ownerId && one.name === name));
      isFound = left.length < known.length;
      return left;
    });
    return isFound;
  }

  /** Changes the stored webhooks of a tree; an unchanged list is not written. */
  async #change(
    { runtime: { stores }, tenant }: Caller,
    { turnId }: WebhookSubject,
    change: (known: readonly Webhook[]) => readonly Webhook[],
  ): Promise<void> {
    const rootAgentId = agentOfTurn(turnId);
    for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt += 1) {
      const known = await stores.webhooks(tenant, rootAgentId);
      const webhooks = [...change(known?.webhooks ?? [])];
      const isSame =
        webhooks.length === (known?.webhooks ?? []).length && webhooks.every((one, at) => one === known?.webhooks[at]);
      if (isSame) return;
      const now = this.#clock.now();
      const claim = known?.claim ?? null;
      const next: TreeWebhooks = {
        tenant,
        rootAgentId,
        revision: createId(),
        claim,
        dueAt: claim?.until ?? now,
        webhooks,
      };
      if (await stores.putWebhooks(next, known?.revision ?? null)) return;
      const root = await stores.readAgent({ tenant, agentId: rootAgentId });
      if (root === undefined)
        throw new UnsupportedError("the turn is not stored, so its webhooks could not be delivered");
    }
    throw new ServerError("unavailable", "the webhooks of this turn are being changed concurrently; try again");
  }

  /** The owner of a webhook as a caller who reads its notifications and starts no turns. */
  #reader(runtime: Runtime, ownerId: string): Caller {
    return new Caller(
      { userId: ownerId, scopes: [] },
      { runtime, clock: this.#clock, deniesStrangers: false, admitTurn },
    );
  }
}

function admitTurn(): Promise<never> {
  return Promise.reject(new InvariantError("a webhook must not start a turn"));
}

function assertRoomIn(known: readonly Webhook[], place: WebhookSubject, name: string): void {
  if (known.filter((one) => isAt(one, place) && one.name !== name).length < MOST_OF_A_TURN) return;
  throw new InvalidInputError(`a turn has at most ${MOST_OF_A_TURN} webhooks; delete one of them first`);
}

function isAt(webhook: WebhookSubject, { surface, turnId }: WebhookSubject): boolean {
  return webhook.surface === surface && webhook.turnId === turnId;
}

/** The context that secrets are bound to: in another webhook's record, or with another URL, they cannot be opened. */
function sealingContext(
  tenant: string,
  rootAgentId: string,
  { surface, turnId, name, url }: Pick<Webhook, "surface" | "turnId" | "name" | "url">,
): readonly string[] {
  return [tenant, rootAgentId, surface, turnId, name, url];
}
