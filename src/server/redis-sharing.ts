import { nameRule, optionsOf } from "../base/index.ts";
import {
  checkedPlace,
  checkServers,
  letGo,
  type RedisClient,
  RedisLink,
  redisPlaceRules,
  type RedisPlaceOptions,
} from "../redis/index.ts";
import type { IssuedTicket, TicketStore } from "./api/tickets.ts";

export interface RedisSharingOptions extends RedisPlaceOptions {
  /** Prefix of the keys of tickets. Default `troupe:`. */
  readonly prefix?: string | undefined;
}

/** What the servers of one Redis share. */
export interface RedisSharing {
  /** For `limits.redis`: rates are counted for all servers together. */
  readonly client: RedisClient;
  /** For `apiSurface({ tickets })`: a ticket that one server gave opens a stream at any. */
  readonly tickets: TicketStore;
  close(): Promise<void>;
}

const TIMEOUT_MS = 5_000;

/**
 * Connects several servers by a Redis, which must be 6.2 or later. Rejects with `InvalidInputError` for a wrong place,
 * and with `StoreUnavailableError` when it does not answer within 5 seconds.
 */
export async function redisSharing(given: RedisSharingOptions): Promise<RedisSharing> {
  const { prefix = "troupe:", ...place } = optionsOf<RedisSharingOptions>(given, "redisSharing()", {
    rules: { ...redisPlaceRules, prefix: nameRule },
  });
  const name = "servers that share a Redis";
  const link = new RedisLink({
    place: checkedPlace("redisSharing()", place),
    timeoutMs: TIMEOUT_MS,
    name,
    needing: "Servers that share a Redis need",
    check: async (client) => void (await checkServers(client, { user: name, atStake: "tickets and counts" })),
  });
  const keyOf = (hash: string): string => `${prefix}ticket:${hash}`;
  await link.run((client) => client.exists(keyOf("")));
  const client = await link.another();
  // Counting goes on in memory while Redis is away, so its errors are nobody's.
  client.on("error", () => undefined);
  return {
    client,
    tickets: {
      put: async (hash, issued, now) => {
        await link.run((redis) => redis.set(keyOf(hash), JSON.stringify(issued), "PX", issued.expiresAt - now));
      },
      // Sent twice it may find nothing; then the client asks for another ticket.
      take: async (hash) => {
        const found = await link.run((redis) => redis.getdel(keyOf(hash)));
        return found === null ? undefined : (JSON.parse(found) as IssuedTicket);
      },
    },
    async close() {
      letGo(client);
      await link.close();
    },
  };
}
