import { createHmac, timingSafeEqual } from "node:crypto";
import { anyRule, assertId, optionsRule, stableStringify } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";

/** A secret that all processes of a deployment share. */
export interface SigningKey {
  /** Names the key within signed jobs, so that it can be replaced: 1 to 128 characters, as ids. */
  readonly id: string;
  /** At least 16 characters; 32 random ones are better. */
  readonly secret: string;
}

export interface Signature {
  readonly keyId: string;
  /** HMAC-SHA256 in hexadecimal digits. */
  readonly mac: string;
}

/** Signs with the first key, believes any of them. */
export interface Signer {
  sign(value: unknown): Signature;
  /** Why the signature is not to be trusted; undefined when it is good. */
  fault(value: unknown, signature: Signature | undefined): string | undefined;
}

/** What a key says is looked at where it is used; it is never shown. */
export const signingKeyRule = optionsRule<SigningKey>({
  rules: { id: anyRule, secret: anyRule },
  needed: ["id", "secret"],
});

const SHORTEST_SECRET = 16;
const MAC_BYTES = 32;

/**
 * To replace a key, first give every process the new one after the old one, then put it first, then take the old one away.
 * Throws `InvalidInputError` for no keys, a short secret and two keys of one id.
 */
export function createSigner(keys: readonly SigningKey[]): Signer {
  const [first] = keys;
  if (!first) throw new InvalidInputError("secrets is empty; it takes at least one { id, secret }, or leave it out");
  const secrets = new Map<string, string>();
  for (const [place, { id, secret }] of keys.entries()) {
    assertId(`secrets[${place}].id`, id);
    if (typeof secret !== "string" || secret.length < SHORTEST_SECRET) {
      throw new InvalidInputError(`secrets[${place}].secret must be a text of at least ${SHORTEST_SECRET} characters`);
    }
    if (secrets.has(id)) throw new InvalidInputError(`secrets[${place}].id is ${JSON.stringify(id)} a second time`);
    secrets.set(id, secret);
  }
  return {
    sign: (value) => ({ keyId: first.id, mac: macOf(first.secret, value).toString("hex") }),
    fault(value, signature) {
      if (!signature) return "it is not signed";
      const secret = secrets.get(signature.keyId);
      if (secret === undefined) return "it is signed with a key that is not known here";
      const given = Buffer.from(signature.mac, "hex");
      const isGood = given.length === MAC_BYTES && timingSafeEqual(given, macOf(secret, value));
      return isGood ? undefined : "its signature does not fit what it says";
    },
  };
}

function macOf(secret: string, value: unknown): Buffer {
  return createHmac("sha256", secret).update(stableStringify(value)).digest();
}
