import type { Json, JsonObject, Webhook } from "../../state/index.ts";
import type { Caller } from "./caller.ts";

export type { Webhook } from "../../state/index.ts";

/** One request to a receiver. */
export interface Notification {
  /** The same when it is sent again, so that receivers can drop it: visible ASCII. */
  readonly id: string;
  /** Sent as JSON. */
  readonly body: object;
}

/** What a receiver is to be told next, and where it is afterwards. */
export interface TellingStep {
  /** In order; they are sent again together, if one of them cannot be delivered. */
  readonly notifications: readonly Notification[];
  /** The row of the tree up to which it has then been told. */
  readonly cursor: number;
  /** Facts of the surface on what was told, kept for the next step. */
  readonly told: Json;
  /** Nothing will follow, and the webhook is removed. */
  readonly isOver: boolean;
}

/** How a surface tells the receivers that were named on it. */
export interface WebhookForm {
  /** Media type of the bodies. */
  readonly contentType: string;
  /** Headers by which a receiver knows the sender. */
  headers(secrets: JsonObject): Readonly<Record<string, string>>;
  /**
   * What comes after the cursor of a webhook, read from the store; `undefined` if nothing has come yet. The same cursor
   * gives notifications with the same ids. Rejects with `NotFoundError` when its turn is gone.
   */
  next(caller: Caller, webhook: Webhook): Promise<TellingStep | undefined>;
}

/** The turn that webhooks are about, on one surface. */
export interface WebhookSubject {
  /** Name of the surface. */
  readonly surface: string;
  /** The turn that the webhook is about. */
  readonly turnId: string;
}

/** A webhook that a client asks for. */
export interface NewWebhook extends WebhookSubject {
  /** Replaces the one of this name, and then begins anew. */
  readonly name: string;
  /** Address that is called. An address inside the operator's network is refused. */
  readonly url: string;
  /** Encrypted before anything is stored, and shown to the receiver alone. */
  readonly secrets: JsonObject;
  /** Facts of the surface, kept with the webhook. */
  readonly details: JsonObject;
}

/**
 * Tells receivers outside what happens in turns. The caller must have looked the turn up before: what belongs to others
 * is not found.
 */
export interface WebhookRegistry {
  /** Rejects with `InvalidInputError` for an address that is never called. */
  assertUrl(url: string): Promise<void>;
  /**
   * Stores a webhook. Rejects with `InvalidInputError` for a forbidden address and for more than 20 of one turn, and with
   * `UnsupportedError` when the turn is not stored.
   */
  put(caller: Caller, webhook: NewWebhook): Promise<Webhook>;
  /** Rejects with `InvalidInputError` when the turn has 20 others already. */
  assertRoom(caller: Caller, place: WebhookSubject, name: string): Promise<void>;
  /** Those of a turn, in the order of their names. */
  list(caller: Caller, place: WebhookSubject): Promise<readonly Webhook[]>;
  /** False if there was none. */
  remove(caller: Caller, place: WebhookSubject, name: string): Promise<boolean>;
}
