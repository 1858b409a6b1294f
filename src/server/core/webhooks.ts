import type { Json, JsonObject, Webhook } from "../../state/index.ts";
import type { Caller } from "./caller.ts";

export type { Webhook } from "../../state/index.ts";

/** One request to a receiver. */
export interface Notification {
  /** The same when the notification is sent again, so that receivers can drop duplicates. Visible ASCII. */
  readonly id: string;
  /** Sent as JSON. */
  readonly body: object;
}

/** The next notifications to a receiver, and the receiver's state afterwards. */
export interface TellingStep {
  /** In order; all are sent again if one of them cannot be delivered. */
  readonly notifications: readonly Notification[];
  /** The row of the tree up to which the notifications report. */
  readonly cursor: number;
  /** The surface's data about sent notifications, stored for the next step. */
  readonly told: Json;
  /** No notifications will follow, and the webhook is removed. */
  readonly isOver: boolean;
}

/** How a surface notifies its receivers. */
export interface WebhookForm {
  /** Media type of the bodies. */
  readonly contentType: string;
  /** Headers that authenticate the sender to the receiver. */
  headers(secrets: JsonObject): Readonly<Record<string, string>>;
  /**
   * Reads the notifications after the webhook's cursor from the store; `undefined` if there are none yet. The same
   * cursor returns notifications with the same ids. Rejects with `NotFoundError` if the turn was deleted.
   */
  next(caller: Caller, webhook: Webhook): Promise<TellingStep | undefined>;
}

/** The turn of webhooks, on one surface. */
export interface WebhookSubject {
  /** Name of the surface. */
  readonly surface: string;
  /** The turn that the webhook reports on. */
  readonly turnId: string;
}

/** A webhook to add. */
export interface NewWebhook extends WebhookSubject {
  /** Replaces the turn's webhook of the same name, which then starts again. */
  readonly name: string;
  /** The URL to call. Addresses inside the operator's network are refused. */
  readonly url: string;
  /** Encrypted before they are stored, and only sent to the receiver. */
  readonly secrets: JsonObject;
  /** The surface's data, stored with the webhook. */
  readonly details: JsonObject;
}

/**
 * Notifies external receivers of events in turns. The caller must have looked up the turn before, so that turns of
 * other callers are not found.
 */
export interface WebhookRegistry {
  /** Rejects with `InvalidInputError` for a forbidden address. */
  assertUrl(url: string): Promise<void>;
  /**
   * Stores a webhook. Rejects with `InvalidInputError` for a forbidden address and for more than 20 webhooks of one
   * turn, and with `UnsupportedError` if the turn is not stored.
   */
  put(caller: Caller, webhook: NewWebhook): Promise<Webhook>;
  /** Rejects with `InvalidInputError` if the turn already has 20 other webhooks. */
  assertRoom(caller: Caller, place: WebhookSubject, name: string): Promise<void>;
  /** The webhooks of a turn, ordered by name. */
  list(caller: Caller, place: WebhookSubject): Promise<readonly Webhook[]>;
  /** Returns whether the webhook existed. */
  remove(caller: Caller, place: WebhookSubject, name: string): Promise<boolean>;
}
