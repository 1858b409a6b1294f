import { backoffDelay, type Clock, createId, faultPoint } from "../../base/index.ts";
import { NotFoundError, TroupeError } from "../../errors/index.ts";
import type { Json, JsonObject, TreeWebhooks, Webhook } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { Caller } from "../core/caller.ts";
import type { OpenCalls } from "../core/limits.ts";
import type { Notification, TellingStep, WebhookForm } from "../core/webhooks.ts";
import type { Post } from "./receiver.ts";

/** Lifetime of a server's claim on a tree's deliveries, in milliseconds from its renewal. */
export const CLAIM_MS = 30_000;
/** Interval at which a server checks a tree without news, in milliseconds. */
export const IDLE_MS = 60_000;
/** Consecutive failures after which a webhook is given up. */
export const MOST_FAILURES = 12;
const BACKOFF = { baseMs: 2_000, capMs: 900_000 } as const;
/** Delay of a webhook when this server has too many open requests, in milliseconds. */
const CROWDED_MS = 1_000;

/** The outcome of one request to a receiver. It contains no secret, and only the host of the URL. */
export interface Delivery {
  readonly webhook: Pick<Webhook, "surface" | "turnId" | "ownerId">;
  readonly host: string;
  readonly outcome: "delivered" | "failed" | "given_up";
  /** HTTP status; 0 without an answer. */
  readonly status: number;
  readonly durationMs: number;
  /** Reason of the failure, or `null`. */
  readonly reason: string | null;
}

export interface DeliveryDependencies {
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: () => number;
  /** Id of this server in claims. */
  readonly id: string;
  /** Open requests of this server. */
  readonly posts: OpenCalls;
  readonly closing: AbortSignal;
  formOf(surface: string): WebhookForm | undefined;
  callerOf(ownerId: string): Caller;
  secretsOf(rootAgentId: string, webhook: Webhook): JsonObject;
  post(post: Post): Promise<number>;
  words(error: unknown): string;
  onDelivery(delivery: Delivery): void;
}

/** Thrown if another server has taken over the tree, or its webhooks were removed. */
class ClaimLost extends Error {}

type Change = (webhooks: readonly Webhook[]) => readonly Webhook[];

/**
 * Delivers the pending notifications of one tree.
 * Owns: the tree's claim in the store while it works. Does not own: detecting news.
 *
 * Invariants
 * 1. Requests are sent only under a claim, and a claim lasts longer than a request: only one server at a time delivers
 *    for a tree.
 * 2. A webhook advances only after its receiver has answered with success, so no notification is lost; one whose
 *    success was not stored is sent again with the same id.
 * 3. Webhooks are independent: a failing or slow receiver does not delay others.
 * 4. No request to a removed webhook starts after its removal.
 */
export class TreeDelivery {
  readonly #rootAgentId: string;
  readonly #at: DeliveryDependencies;
  #latest: TreeWebhooks | undefined;
  /** Serializes the changes of the stored webhooks. */
  #changing: Promise<void> = Promise.resolve();
  /** Webhooks with a running delivery; `#again`: those that must be checked again afterwards. */
  readonly #telling = new Set<string>();
  readonly #again = new Set<string>();
  #nudged: PromiseWithResolvers<boolean> = Promise.withResolvers();
  /**
   * Rows that were read without a notification, by webhook: they are not read again, and stored with the next change.
   */
  readonly #read = new Map<string, { readonly after: number; readonly cursor: number; readonly told: Json }>();

  constructor(rootAgentId: string, dependencies: DeliveryDependencies) {
    this.#rootAgentId = rootAgentId;
    this.#at = dependencies;
  }

  /**
   * Delivers all current notifications. Resolves with the time of the next check, or with `undefined` if the tree has
   * no webhooks left.
   */
  async run(): Promise<number | undefined> {
    const { clock, id } = this.#at;
    const latest = await this.#look();
    if (latest === undefined) return undefined;
    const now = clock.now();
    const { claim, dueAt, webhooks } = latest;
    if (claim !== null && claim.by !== id && claim.until > now) return claim.until;
    const news = await Promise.allSettled(readyOf(webhooks, now).map((webhook) => this.#next(webhook)));
    const hasNews = news.some((one) => one.status === "rejected" || one.value !== undefined);
    if (!hasNews && claim === null && dueAt > now) return dueAt;
    try {
      // Stores only that this server has checked the tree.
      if (!hasNews) return await this.#release();
      await this.#change((known) => known);
      await this.#tellAll();
      return await this.#release();
    } catch (error) {
      if (!(error instanceof ClaimLost)) throw error;
      return this.#latest === undefined ? undefined : clock.now() + CLAIM_MS;
    }
  }

  /** Checks for new rows: webhooks that are up to date are notified at once, however long others take. */
  nudge(): void {
    for (const key of this.#telling) this.#again.add(key);
    this.#nudged.resolve(true);
  }

  async #tellAll(): Promise<void> {
    const works = new Set<Promise<void>>();
    const failures: unknown[] = [];
    for (let isNew = true; isNew || works.size > 0; ) {
      if (isNew) {
        this.#nudged = Promise.withResolvers();
        await this.#inTurn(async () => void (await this.#look()));
        for (const webhook of readyOf(this.#latest?.webhooks ?? [], this.#at.clock.now())) {
          if (this.#telling.has(deliveryKey(webhook))) continue;
          const work = this.#tell(webhook)
            .catch((error: unknown) => void failures.push(error))
            .then(() => void works.delete(work));
          works.add(work);
        }
      }
      if (works.size === 0) break;
      const ended = [...works].map((work) => work.then(() => false));
      const cancel = this.#nudgeAtRetry();
      isNew = (await Promise.race([this.#nudged.promise, ...ended])) && failures.length === 0;
      cancel();
    }
    if (failures.length > 0) throw failures[0];
  }

  /** Schedules the next retry of idle webhooks while others are working. Returns a function that cancels it. */
  #nudgeAtRetry(): () => void {
    const others = (this.#latest?.webhooks ?? []).filter((webhook) => !this.#telling.has(deliveryKey(webhook)));
    const times = others.flatMap(({ retryAt }) => retryAt ?? []);
    return times.length === 0
      ? () => undefined
      : this.#at.clock.setTimer(Math.min(...times), () => this.#nudged.resolve(true));
  }

  async #look(): Promise<TreeWebhooks | undefined> {
    const { stores, tenant } = this.#at;
    this.#latest = await stores.webhooks(tenant, this.#rootAgentId);
    return this.#latest;
  }

  /** The next notifications of a webhook; `undefined` if there are none, `gone` if its turn was deleted. */
  async #next(webhook: Webhook): Promise<TellingStep | "gone" | undefined> {
    const form = this.#at.formOf(webhook.surface);
    if (form === undefined) return undefined;
    try {
      for (;;) {
        const from = this.#asRead(webhook);
        const step = await form.next(this.#at.callerOf(webhook.ownerId), from);
        if (step === undefined || step.isOver || step.notifications.length > 0) return step;
        const { cursor, told } = step;
        this.#read.set(deliveryKey(webhook), { after: webhook.cursor, cursor, told });
      }
    } catch (error) {
      if (error instanceof NotFoundError) return "gone";
      throw error;
    }
  }

  #asRead(webhook: Webhook): Webhook {
    const read = this.#read.get(deliveryKey(webhook));
    return read?.after === webhook.cursor ? { ...webhook, cursor: read.cursor, told: read.told } : webhook;
  }

  async #tell(first: Webhook): Promise<void> {
    const key = deliveryKey(first);
    this.#telling.add(key);
    try {
      for (let webhook: Webhook | undefined = first; webhook !== undefined && !this.#at.closing.aborted; ) {
        webhook = await this.#tellNext(webhook);
      }
    } finally {
      this.#telling.delete(key);
      this.#again.delete(key);
    }
  }

  /** Delivers one step. Resolves with the updated webhook, or with `undefined` if nothing is pending. */
  async #tellNext(webhook: Webhook): Promise<Webhook | undefined> {
    try {
      const step = await this.#next(webhook);
      if (step === undefined) return this.#again.delete(deliveryKey(webhook)) ? webhook : undefined;
      if (step === "gone") {
        await this.#move(webhook, undefined);
        return undefined;
      }
      for (const notification of step.notifications) {
        if (!(await this.#send(webhook, notification))) return undefined;
      }
      const { cursor, told, isOver } = step;
      const moved = { ...webhook, cursor, told, failures: 0, retryAt: null };
      await this.#move(webhook, isOver ? undefined : moved);
      return isOver ? undefined : moved;
    } catch (error) {
      if (error instanceof ClaimLost || (error instanceof TroupeError && error.retryable)) throw error;
      await this.#failed(webhook, { status: 0, durationMs: 0, reason: this.#at.words(error) });
      return undefined;
    }
  }

  /** Returns whether it was delivered; if not, its webhook waits for a retry or was removed. */
  async #send(webhook: Webhook, { id, body }: Notification): Promise<boolean> {
    const { clock, closing, posts } = this.#at;
    await this.#holdClaim();
    const form = this.#at.formOf(webhook.surface);
    if (form === undefined || !this.#isStored(webhook) || closing.aborted) return false;
    const release = posts.tryOpen(webhook.ownerId);
    if (release === undefined) {
      await this.#move(webhook, { ...webhook, retryAt: clock.now() + CROWDED_MS });
      return false;
    }
    const begun = clock.elapsed();
    const since = (): number => clock.elapsed() - begun;
    try {
      const secrets = this.#at.secretsOf(this.#rootAgentId, webhook);
      const headers = { ...form.headers(secrets), "content-type": form.contentType, "idempotency-key": id };
      const status = await this.#at.post({ url: webhook.url, headers, body: JSON.stringify(body), signal: closing });
      faultPoint("webhook.sent");
      if (status >= 200 && status < 300) {
        this.#report(webhook, { outcome: "delivered", status, durationMs: since(), reason: null });
        return true;
      }
      await this.#failed(webhook, { status, durationMs: since(), reason: `it answered with the status ${status}` });
    } catch (error) {
      if (error instanceof ClaimLost) throw error;
      if (!closing.aborted) {
        await this.#failed(webhook, { status: 0, durationMs: since(), reason: this.#at.words(error) });
      }
    } finally {
      release();
    }
    return false;
  }

  async #failed(webhook: Webhook, what: Pick<Delivery, "status" | "durationMs" | "reason">): Promise<void> {
    const { clock, random } = this.#at;
    const failures = webhook.failures + 1;
    const isGivenUp = failures >= MOST_FAILURES;
    // At least half of the delay, to give a failed receiver time to recover.
    const delayMs = backoffDelay(failures, 0.5 + random() / 2, BACKOFF);
    await this.#move(webhook, isGivenUp ? undefined : { ...webhook, failures, retryAt: clock.now() + delayMs });
    this.#report(webhook, { ...what, outcome: isGivenUp ? "given_up" : "failed" });
  }

  #report(webhook: Webhook, what: Omit<Delivery, "webhook" | "host">): void {
    this.#at.onDelivery({ webhook, host: new URL(webhook.url).host, ...what });
  }

  /** Reads the stored webhooks, and renews the claim so that it outlasts the next request. */
  async #holdClaim(): Promise<void> {
    await this.#inTurn(async () => {
      const latest = await this.#look();
      const { clock, id } = this.#at;
      if (latest?.claim?.by !== id) throw new ClaimLost();
      if (latest.claim.until - clock.now() < CLAIM_MS / 2) await this.#put((known) => known, "claim");
    });
  }

  /** Replaces a stored webhook; `undefined` removes it. No effect if it was removed or replaced meanwhile. */
  async #move(webhook: Webhook, moved: Webhook | undefined): Promise<void> {
    const key = deliveryKey(webhook);
    await this.#change((known) => known.flatMap((one) => (deliveryKey(one) === key ? (moved ?? []) : one)));
  }

  #isStored(webhook: Webhook): boolean {
    const key = deliveryKey(webhook);
    return this.#latest?.webhooks.some((one) => deliveryKey(one) === key) === true;
  }

  async #change(change: Change): Promise<void> {
    await this.#inTurn(() => this.#put(change, "claim"));
  }

  /** Releases the claim; resolves with the time of the next check. */
  async #release(): Promise<number | undefined> {
    if (this.#latest === undefined) return undefined;
    await this.#inTurn(() => this.#put((known) => known.map((one) => this.#asRead(one)), "release"));
    this.#read.clear();
    return this.#latest.dueAt;
  }

  async #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#changing.then(work);
    this.#changing = done.catch(() => undefined);
    await done;
  }

  /** While this server shuts down, the tree is due at once for other servers. */
  #dueAt(webhooks: readonly Webhook[], now: number): number {
    if (this.#at.closing.aborted) return now;
    return Math.min(now + IDLE_MS, ...webhooks.flatMap(({ retryAt }) => retryAt ?? []));
  }

  async #put(change: Change, as: "claim" | "release"): Promise<void> {
    const { stores, clock, id } = this.#at;
    for (;;) {
      const known = this.#latest;
      if (known === undefined) throw new ClaimLost();
      const now = clock.now();
      const { claim } = known;
      if (claim !== null && claim.by !== id && claim.until > now) throw new ClaimLost();
      const webhooks = [...change(known.webhooks)];
      const until = now + CLAIM_MS;
      const held =
        as === "claim"
          ? { claim: { by: id, until }, dueAt: until }
          : { claim: null, dueAt: this.#dueAt(webhooks, now) };
      const next = { ...known, ...held, webhooks, revision: createId() };
      if (await stores.putWebhooks(next, known.revision)) {
        this.#latest = webhooks.length === 0 ? undefined : next;
        return;
      }
      await this.#look();
    }
  }
}

function readyOf(webhooks: readonly Webhook[], now: number): readonly Webhook[] {
  return webhooks.filter(({ retryAt }) => retryAt === null || retryAt <= now);
}

/** Identifies a delivery; differs for a webhook that was added again under the same name. */
function deliveryKey({ surface, turnId, name, createdAt }: Webhook): string {
  return JSON.stringify([surface, turnId, name, createdAt]);
}
