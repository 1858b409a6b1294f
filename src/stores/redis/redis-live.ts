import { StoreUnavailableError } from "../../errors/index.ts";
import type { LiveTransport } from "../rules/published-live.ts";
import type { RedisConnection } from "./redis-connection.ts";
import type { RedisKeys } from "./redis-keys.ts";
import type { RedisSubscriber } from "./redis-subscriber.ts";

/** Live messages by publish and subscribe: each tree has a channel, and all trees have a common one. */
export function redisLiveTransport(
  connection: RedisConnection,
  subscriber: RedisSubscriber,
  keys: RedisKeys,
): LiveTransport {
  const channelOf = (tag: string | undefined): string =>
    keys.liveChannel(tag === undefined ? undefined : keys.ofTag(tag));
  return {
    subscribe: (tag, listener) => subscriber.subscribe(channelOf(tag), listener),
    publish: async (tag, text) => {
      await connection.run(async (client, repeat) => {
        // The first attempt may have arrived, and later messages may have overtaken it.
        if (repeat > 0) throw new StoreUnavailableError("a live message is not sent again");
        // A script with the channel as its key: in a cluster, one node sends all messages of a tree, so they stay in order.
        await client.eval("return redis.call('PUBLISH', KEYS[1], ARGV[1])", 1, channelOf(tag), text);
      });
    },
    tagOf: (tenant, rootAgentId) => keys.treeOf(tenant, rootAgentId).tag,
    isTag: (text) => keys.isTag(text),
    namesIn: (tag) => keys.namesIn(tag),
  };
}
