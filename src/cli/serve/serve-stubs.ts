import type { StubOptions } from "../../server/index.ts";

/** The variable with the secret for stubs. It is not an option, because other programs see the words of a command. */
const stubsVariable = "TROUPE_STUBS_SECRET";

/** Whether the server accepts stubs: `undefined` without a secret in the environment. */
export function serveStubs(environment: Readonly<Record<string, string | undefined>>): StubOptions | undefined {
  const secret = environment[stubsVariable]?.trim() ?? "";
  return secret === "" ? undefined : { secret };
}
