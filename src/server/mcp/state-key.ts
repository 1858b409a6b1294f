import { randomBytes } from "node:crypto";
import { InvalidInputError } from "../../errors/index.ts";

const SHORTEST_KEY = 32;

/** How to make a key, for error messages. */
export const HOW_TO_MAKE_A_KEY = "openssl rand -base64 32";

/** The key that signs states. Without a given one, it is only valid in this process. */
export function stateKeyOf(given: string | undefined): string {
  if (given === undefined) return randomBytes(SHORTEST_KEY).toString("base64");
  if (Buffer.byteLength(given) >= SHORTEST_KEY) return given;
  throw new InvalidInputError(
    `stateKey has ${Buffer.byteLength(given)} bytes; expected at least ${SHORTEST_KEY}: make one with ${HOW_TO_MAKE_A_KEY}`,
  );
}
