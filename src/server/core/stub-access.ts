import { createHash, timingSafeEqual } from "node:crypto";
import { describeValue, type OptionRule, type OptionsSchema, optionsRule } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { ServerError } from "./failures.ts";

/** Lets callers create agents whose tools are replaced by stubs, for end-to-end tests. */
export interface StubOptions {
  /** The secret that such a request has in the header `troupe-stubs-secret`: at least 16 characters without spaces. */
  readonly secret: string;
}

/** The header of a request that creates an agent with stubs. */
export const stubsHeader = "troupe-stubs-secret";

const SHORTEST_SECRET = 16;

/** Its message does not show the secret. */
const secretRule: OptionRule = (value, where) => {
  if (typeof value === "string" && value.length >= SHORTEST_SECRET && /^[\x21-\x7e]+$/.test(value)) return value;
  const found = typeof value === "string" ? `a text of ${value.length} characters` : describeValue(value);
  throw new InvalidInputError(
    `${where} is ${found}; expected at least ${SHORTEST_SECRET} visible ASCII characters, for instance of: openssl rand -base64 32`,
  );
};

const stubOptionsSchema: OptionsSchema<StubOptions> = {
  rules: { secret: secretRule },
  needed: ["secret"],
  instead: { token: "secret", key: "secret", password: "secret" },
};
export const stubOptionsRule: OptionRule = optionsRule<StubOptions>(stubOptionsSchema);

/** Throws `ServerError` (`forbidden`) unless the server accepts stubs, and the secret is the right one. Compares in constant time. */
export function assertMayStub(options: StubOptions | undefined, given: string | undefined): void {
  if (options && given !== undefined && timingSafeEqual(digestOf(options.secret), digestOf(given))) return;
  throw new ServerError(
    "forbidden",
    `stubs are not accepted: the server needs the option stubs: { secret }, and the request the secret in the header ${stubsHeader}`,
  );
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
