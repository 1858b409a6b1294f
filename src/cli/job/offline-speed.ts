import { InvalidInputError } from "../../errors/index.ts";
import type { CliContext } from "../cli-context.ts";

/** The speed of the offline engine from the environment. Throws `InvalidInputError` unless it is a positive number. */
export function offlineSpeedOf(environment: CliContext["environment"]): number | undefined {
  const speed = environment["TROUPE_OFFLINE_SPEED"] ?? "";
  if (speed === "") return undefined;
  const tokensPerSecond = Number(speed);
  if (tokensPerSecond > 0) return tokensPerSecond;
  throw new InvalidInputError(
    `TROUPE_OFFLINE_SPEED is ${JSON.stringify(speed)}; expected a number of tokens per second above 0`,
  );
}
