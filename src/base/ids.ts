import { createHash, type Hash, hash, randomUUID } from "node:crypto";
import { InvalidInputError } from "../errors/index.ts";

/** A random UUID; with a prefix, `<prefix>_<UUID>`. */
export function createId(prefix?: string): string {
  return prefix === undefined ? randomUUID() : `${prefix}_${randomUUID()}`;
}

/** The first 16 hexadecimal digits (64 bits) of the text's SHA-256: short enough for an id, and the same in every process. */
export function shortHash(text: string): string {
  return hash("sha256", text, "hex").slice(0, 16);
}

/** The short hash of a text that arrives in chunks. */
export class ShortHash {
  readonly #hash: Hash;

  constructor(hash: Hash = createHash("sha256")) {
    this.#hash = hash;
  }

  /** The hash of the text so far followed by this chunk. */
  with(piece: string): ShortHash {
    return new ShortHash(this.#hash.copy().update(piece));
  }

  get text(): string {
    return this.#hash.copy().digest("hex").slice(0, 16);
  }
}

const idPattern = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,127}$/;
/** Ids are used as object keys, where these two would access the prototype. */
const reservedIds: ReadonlySet<string> = new Set(["constructor", "prototype"]);

/**
 * Checks an id that a user chose: 1 to 128 characters out of letters, digits and `. _ @ -`, starting with a letter or a digit.
 * Such an id is safe in keys, paths and URLs.
 * @param kind The name of the id in the message: "agentId".
 * @throws InvalidInputError
 */
export function assertId(kind: string, value: unknown): asserts value is string {
  if (typeof value !== "string") {
    throw new InvalidInputError(`${kind} must be a string, not ${value === null ? "null" : typeof value}`);
  }
  if (idPattern.test(value) && !reservedIds.has(value)) return;
  const shown = JSON.stringify(value.length > 64 ? `${value.slice(0, 64)}…` : value);
  throw new InvalidInputError(
    `${kind} ${shown} (length ${value.length}) is not a valid id: use 1 to 128 characters of A-Z a-z 0-9 . _ @ -, ` +
      `starting with a letter or a digit, but not "constructor" or "prototype"`,
    { details: { kind } },
  );
}
