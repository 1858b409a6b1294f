import { InvalidInputError } from "../../errors/index.ts";
import type { CliContext } from "../cli-context.ts";

/** The pace of the offline engine that the environment asks for. Throws `InvalidInputError` unless it is a positive number. */
export function offlineSpeedOf(environment: CliContext["environment"]): number | undefined {
  const speed = environment["TROUPE_OFFLINE_SPEED"] ?? "";
  if (speed === "") return undefined;
  const tokensPerSecond = Number(speed);
  if (tokensPerSecond > 0) return tokensPerSecond;
  throw new InvalidInputError(`TROUPE_OFFLINE_SPEED is ${JSON.stringify(speed)}; it takes tokens per second, above 0`);
}
