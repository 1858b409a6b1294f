import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { InvalidInputError, UnsupportedError } from "../../errors/index.ts";
import type { JsonObject } from "../../state/index.ts";

const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts a receiver's secrets with keys of the deployment (AES-256-GCM). The first key encrypts; the others still
 * decrypt what they encrypted. A sealed text names its key by the start of the key's SHA-256, and is bound to one
 * context: in another it cannot be opened.
 */
export class Sealing {
  readonly #keys: ReadonlyMap<string, Buffer>;
  readonly #first: readonly [string, Buffer];

  /**
   * `texts`: each 32 random bytes in base64 or base64url. Throws `InvalidInputError`, whose message contains none of
   * them.
   */
  constructor(texts: readonly string[]) {
    const keys = texts.map((text, index) => parseSealingKey(text, index));
    const [first] = keys;
    if (first === undefined) throw new InvalidInputError("webhooks.keys is empty; give at least one key");
    this.#first = first;
    this.#keys = new Map(keys);
  }

  seal(secrets: JsonObject, place: readonly string[]): string {
    const [id, key] = this.#first;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, key, nonce).setAAD(boundTo(place));
    const text = Buffer.concat([cipher.update(JSON.stringify(secrets), "utf8"), cipher.final(), cipher.getAuthTag()]);
    return [id, nonce.toString("base64url"), text.toString("base64url")].join(".");
  }

  /** Throws `UnsupportedError` if the key is missing or the text belongs to another context. */
  open(sealed: string, place: readonly string[]): JsonObject {
    const [id = "", nonce = "", text = ""] = sealed.split(".");
    const key = this.#keys.get(id);
    if (key === undefined)
      throw new UnsupportedError(`its secrets were sealed with the key ${id}, which is missing in webhooks.keys`);
    const bytes = Buffer.from(text, "base64url");
    try {
      const decipher = createDecipheriv(CIPHER, key, Buffer.from(nonce, "base64url"), { authTagLength: TAG_BYTES });
      decipher.setAAD(boundTo(place)).setAuthTag(bytes.subarray(-TAG_BYTES));
      const opened = Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]);
      return JSON.parse(opened.toString("utf8")) as JsonObject;
    } catch {
      throw new UnsupportedError("its secrets were changed in the store, or belong to another webhook");
    }
  }
}

function parseSealingKey(text: string, index: number): readonly [string, Buffer] {
  const key = /^[\w+/-]{43}=?$/.test(text) ? Buffer.from(text, "base64") : Buffer.alloc(0);
  if (key.length !== KEY_BYTES) {
    throw new InvalidInputError(
      `webhooks.keys[${index}] is not a valid key; give 32 random bytes in base64, such as the output of "openssl rand -base64 32"`,
    );
  }
  return [createHash("sha256").update(key).digest("hex").slice(0, 8), key];
}

function boundTo(place: readonly string[]): Buffer {
  return Buffer.from(JSON.stringify(place), "utf8");
}
