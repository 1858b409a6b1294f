import type { TaskPushNotificationConfig } from "@a2a-js/sdk";
import { randomUUID } from "node:crypto";
import type { JsonObject, Webhook } from "../../state/index.ts";
import type { NewWebhook, WebhookSubject } from "../core/webhooks.ts";
import { urlIdOf } from "../core/url-ids.ts";
import type { Sdk } from "./sdk.ts";
import type { TaskTurn } from "./task.ts";

/** The name of this surface, which its webhooks carry. */
export const A2A = "a2a";

/** A configuration as clients see it: without what only the receiver may see. */
export interface WireConfig {
  readonly id: string;
  readonly taskId: string;
  readonly url: string;
  readonly authentication?: { readonly scheme: string };
}

/** What a client asks for, checked. */
export type ReadConfig = Pick<NewWebhook, "name" | "url" | "secrets"> & { readonly scheme: string | null };

const LONGEST_ID = 255;
const LONGEST_SECRET = 4_096;

/** Checks all but the address. `name`: its id, where the client gives none. Throws `RequestMalformedError`. */
export function readConfig(
  { errors }: Sdk,
  { id, url, token, authentication }: TaskPushNotificationConfig,
  name: string = randomUUID(),
): ReadConfig {
  const assert = (isRight: boolean, words: string): void => {
    if (!isRight) throw new errors.RequestMalformedError(words);
  };
  assert(id.length <= LONGEST_ID && id.isWellFormed(), `id takes at most ${LONGEST_ID} characters`);
  assert(url !== "", "url is missing");
  const { scheme = "", credentials = "" } = authentication ?? {};
  assert(isVisible(token), "token takes visible ASCII characters, without line ends");
  assert(isVisible(credentials), "authentication.credentials takes visible ASCII characters, without line ends");
  assert(/^[\w!#$%&'*+.^`|~-]*$/.test(scheme), "authentication.scheme takes the name of a scheme, as Bearer");
  assert(credentials === "" || scheme !== "", "authentication.scheme is missing");
  for (const [what, text] of Object.entries({ token, scheme, credentials })) {
    assert(text.length <= LONGEST_SECRET, `${what} takes at most ${LONGEST_SECRET} characters`);
  }
  const given = Object.entries({ token, credentials }).filter(([, text]) => text !== "");
  const secrets: JsonObject = Object.fromEntries(given);
  // The scheme is sealed too: the server sends it, so no other party may change it.
  return {
    name: id === "" ? name : id,
    url,
    scheme: scheme === "" ? null : scheme,
    secrets: credentials === "" ? secrets : { ...secrets, scheme },
  };
}

/** What a header may hold, without spaces at its ends. */
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
