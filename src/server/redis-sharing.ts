import { hasMethods, nameRule, optionsOf, ruleOf } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import {
  checkedRedisLocation,
  checkServers,
  type RedisClient,
  RedisLink,
  redisLocationRules,
  type RedisLocationOptions,
  sharedLinkOf,
} from "../redis/index.ts";
import type { Stores } from "../stores/index.ts";
import type { IssuedTicket, TicketStore } from "./api/tickets.ts";
import type { RateRedis } from "./core/limits.ts";

/** Options of `redisSharing()`. */
export interface RedisSharingOptions extends RedisLocationOptions {
  /**
   * Stores of `redisStores()` whose connection and prefix are used, instead of `url`, `client` or `cluster`. Default:
   * none.
   */
  readonly stores?: Stores | undefined;
  /** Prefix of the keys. Default: the stores' prefix, or `troupe:`. */
  readonly prefix?: string | undefined;
}

/** State that the servers of one Redis share. As `limits.redis` it counts the rates for all servers together. */
export interface RedisSharing extends RateRedis {
  /** The given client, or the client created for `url`. */
  readonly client: RedisClient;
  /** Prefix of all keys. */
  readonly prefix: string;
  /** For `apiSurface({ tickets })`: a ticket from one server opens a stream on any server. */
  readonly tickets: TicketStore;
  /** Closes the connection, unless it belongs to the stores. */
  close(): Promise<void>;
}

const TIMEOUT_MS = 5_000;

/**
 * Connects several servers through a Redis 6.2 or later: that of their stores, or another one. Rejects with
 * `InvalidInputError` for an invalid location, and with `StoreUnavailableError` if Redis does not respond within 5
 * seconds.
 */
export async function redisSharing(given: RedisSharingOptions): Promise<RedisSharing> {
  const options = optionsOf<RedisSharingOptions>(given, "redisSharing()", {
    rules: { ...redisLocationRules, stores: storesRule, prefix: nameRule },
  });
  const { link, isOwn, prefix } = linkOf(options);
  const ticketKey = (hash: string): string => `${prefix}ticket:${hash}`;
  const client = await link.run(async (redis) => {
    await redis.exists(ticketKey(""));
    return redis;
  });
  return {
    client,
    prefix,
    tickets: {
      put: async (hash, issued, now) => {
        await link.run((redis) => redis.set(ticketKey(hash), JSON.stringify(issued), "PX", issued.expiresAt - now));
      },
      // A repeated command may find nothing; the client then requests another ticket.
      take: async (hash) => {
        const found = await link.run((redis) => redis.getdel(ticketKey(hash)));
        return found === null ? undefined : (JSON.parse(found) as IssuedTicket);
      },
    },
    async close() {
      if (isOwn) await link.close();
    },
  };
}

const storesRule = ruleOf("stores of redisStores()", (value) => hasMethods(value, ["commit", "close"]));

function linkOf({ stores, prefix, ...place }: RedisSharingOptions): {
  readonly link: RedisLink;
  readonly isOwn: boolean;
  readonly prefix: string;
} {
  if (stores !== undefined) {
    if (Object.values(place).some((one) => one !== undefined)) {
      throw new InvalidInputError("redisSharing(): give either stores or a location of Redis");
    }
    const shared = sharedLinkOf(stores);
    if (shared === undefined) throw new InvalidInputError("redisSharing(): these stores are not in Redis; give a url");
    return { link: shared.link, isOwn: false, prefix: prefix ?? shared.prefix };
  }
  const name = "servers that share a Redis";
  const link = new RedisLink({
    place: checkedRedisLocation("redisSharing()", place),
    timeoutMs: TIMEOUT_MS,
    name,
    needing: "Servers that share a Redis need",
    check: async (client) => void (await checkServers(client, { user: name, atStake: "tickets and counts" })),
  });
  return { link, isOwn: true, prefix: prefix ?? "troupe:" };
}
