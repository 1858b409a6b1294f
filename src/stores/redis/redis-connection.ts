import { isMissingScript, type RedisClient, RedisLink } from "../../redis/index.ts";
import { checkDurability } from "./redis-boot-check.ts";
import type { CheckedOptions } from "./redis-options.ts";
import type { Script } from "./redis-script.ts";

/** The stores' way to Redis. Owns: how scripts are sent. Does not own: what they mean. */
export class RedisConnection extends RedisLink {
  constructor({ place, timeoutMs }: CheckedOptions) {
    super({ place, timeoutMs, name: "the stores", needing: "Redis stores need", check: checkDurability });
  }

  async script(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    return this.run((client) => evaluate(client, script, keys, args));
  }
}

/** Runs a script; one that the server does not know, or has forgotten, is sent as a whole. */
export async function evaluate(
  client: RedisClient,
  { sha, text }: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await client.evalsha(sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!isMissingScript(error)) throw error;
    return client.eval(text, keys.length, ...keys, ...args);
  }
}
