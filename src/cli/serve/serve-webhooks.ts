import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { InvalidInputError } from "../../errors/index.ts";
import type { ServeOptions } from "../../server/index.ts";

export interface WebhookWords {
  /** A file with keys, one per line. */
  readonly webhookKeys?: string | undefined;
  /** Origins of receivers that may be without TLS and in private networks. */
  readonly webhookOrigin?: readonly string[] | undefined;
}

interface KeySource {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly directory: string;
}

const keysVariable = "TROUPE_WEBHOOK_KEY";
const KEY_BYTES = 32;

/**
 * The keys and origins of the server's webhooks; `undefined` without a key. Rejects with `InvalidInputError` for an
 * unreadable file and for an invalid key, which the message does not contain.
 */
export async function serveWebhooks(
  { webhookKeys: file, webhookOrigin: origins }: WebhookWords,
  { environment, directory }: KeySource,
): Promise<ServeOptions["webhooks"]> {
  const text =
    file === undefined ? (environment[keysVariable] ?? "") : await readKeyFile(resolve(directory, file), file);
  const keys = text.split(/[\s,]+/).filter((word) => word !== "");
  const from = file === undefined ? keysVariable : `--webhook-keys ${file}`;
  const wrong = keys.findIndex(
    (key) => !/^[\w+/-]{43}=?$/.test(key) || Buffer.from(key, "base64").length !== KEY_BYTES,
  );
  if (wrong >= 0) {
    throw new InvalidInputError(
      `${from}: key ${wrong + 1} is invalid; give 32 random bytes in base64, such as the output of "openssl rand -base64 32"`,
    );
  }
  const other = origins?.find((text) => !isOrigin(text));
  if (other !== undefined) {
    throw new InvalidInputError(
      `--webhook-origin ${other.slice(0, 200)} is not an origin; expected for example http://hooks.internal:8080`,
    );
  }
  if (keys.length > 0) return { keys, origins };
  if (file !== undefined) throw new InvalidInputError(`${from} contains no key; give one per line`);
  if (origins !== undefined)
    throw new InvalidInputError(`--webhook-origin needs a key: give --webhook-keys or ${keysVariable}`);
  return undefined;
}

function isOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

async function readKeyFile(path: string, file: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new InvalidInputError(`--webhook-keys: ${file} cannot be read`, { cause });
  }
}
