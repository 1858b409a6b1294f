import type { TaskPushNotificationConfig } from "@a2a-js/sdk";
import { randomUUID } from "node:crypto";
import type { JsonObject, Webhook } from "../../state/index.ts";
import type { NewWebhook, WebhookSubject } from "../core/webhooks.ts";
import { urlIdOf } from "../core/url-ids.ts";
import type { Sdk } from "./sdk.ts";
import type { TaskTurn } from "./task.ts";

/** The name of this surface, also stored with its webhooks. */
export const A2A = "a2a";

/** A configuration for clients, without the receiver's secrets. */
export interface WireConfig {
  readonly id: string;
  readonly taskId: string;
  readonly url: string;
  readonly authentication?: { readonly scheme: string };
}

/** The client's configuration, validated. */
export type ReadConfig = Pick<NewWebhook, "name" | "url" | "secrets"> & { readonly scheme: string | null };

const LONGEST_ID = 255;
const LONGEST_SECRET = 4_096;

/** Validates all but the address. `name`: the default id. Throws `RequestMalformedError`. */
export function readConfig(
  { errors }: Sdk,
  { id, url, token, authentication }: TaskPushNotificationConfig,
  name: string = randomUUID(),
): ReadConfig {
  const assert = (isRight: boolean, words: string): void => {
    if (!isRight) throw new errors.RequestMalformedError(words);
  };
  assert(id.length <= LONGEST_ID && id.isWellFormed(), `id must have at most ${LONGEST_ID} characters`);
  assert(url !== "", "url is missing");
  const { scheme = "", credentials = "" } = authentication ?? {};
  assert(isVisible(token), "token must be visible ASCII characters without line breaks");
  assert(isVisible(credentials), "authentication.credentials must be visible ASCII characters without line breaks");
  assert(/^[\w!#$%&'*+.^`|~-]*$/.test(scheme), "authentication.scheme must be the name of a scheme, such as Bearer");
  assert(credentials === "" || scheme !== "", "authentication.scheme is missing");
  for (const [what, text] of Object.entries({ token, scheme, credentials })) {
    assert(text.length <= LONGEST_SECRET, `${what} must have at most ${LONGEST_SECRET} characters`);
  }
  const given = Object.entries({ token, credentials }).filter(([, text]) => text !== "");
  const secrets: JsonObject = Object.fromEntries(given);
  // The scheme is sealed too: the server sends it, so only the client may change it.
  return {
    name: id === "" ? name : id,
    url,
    scheme: scheme === "" ? null : scheme,
    secrets: credentials === "" ? secrets : { ...secrets, scheme },
  };
}

/** Whether a header may contain the text, without spaces at either end. */
function isVisible(text: string): boolean {
  return /^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/.test(text);
}

export function placeOfTask({ turnId }: Pick<TaskTurn, "turnId">): WebhookSubject {
  return { surface: A2A, turnId };
}

export function newWebhook({ scheme, ...config }: ReadConfig, task: TaskTurn): NewWebhook {
  return { ...placeOfTask(task), ...config, details: { contextId: task.ids.contextId, scheme } };
}

export function wireConfigOf({ name, turnId, url, details }: Webhook): WireConfig {
  const { scheme } = details;
  const config = { id: name, taskId: urlIdOf(turnId), url };
  return typeof scheme === "string" ? { ...config, authentication: { scheme } } : config;
}
