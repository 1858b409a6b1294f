import { StoreUnavailableError } from "../../errors/index.ts";
import type { AskListener, LiveChannel, LiveFollowing, LiveListener, LiveAddress } from "../rules/live-channel.ts";
import type { RedisConnection } from "./redis-connection.ts";
import type { RedisKeys, TreeKeys } from "./redis-keys.ts";
import type { RedisSubscriber } from "./redis-subscriber.ts";

/** Interval at which followers announce themselves, in milliseconds; a follower that is silent for three intervals no longer counts. */
const STAY_MS = 5_000;
/** Maximum number of messages in flight; further ones are dropped. */
const MOST_UNDERWAY = 16;
/** Number of trees at which silent followers are forgotten. */
const TREES_KEPT = 1_000;

interface RemoteFollower {
  /** Counts as a follower until this time (of `performance.now()`). */
  readonly until: number;
  readonly round: number;
}

interface Followed {
  readonly tree: TreeKeys;
  readonly followers: Set<{ readonly processId: string; readonly listener: LiveListener }>;
  /** Unsubscribes from its channel. */
  end(): void;
}

/**
 * Live messages by publish and subscribe: each tree has a channel, and followers announce themselves on a common one.
 * Owns: who follows which tree, in this process and, while they announce themselves, in others. Does not own: connections.
 *
 * On the common channel: `<process> ask <tree>` starts to follow a tree and asks for its open answers; `<process> stay <tree> …`
 * continues to follow; `<process> who` asks followers to announce themselves. Followers do not announce that they leave, because they may
 * soon return.
 */
export class RedisLive implements LiveChannel {
  readonly #connection: RedisConnection;
  readonly #subscriber: RedisSubscriber;
  readonly #keys: RedisKeys;
  readonly #followed = new Map<string, Followed>();
  /** Followers by tree and process. */
  readonly #elsewhere = new Map<string, Map<string, RemoteFollower>>();
  /** How often the common channel was subscribed; questions before the last subscription may have been missed. */
  #round = 0;
  readonly #owners = new Set<{ readonly processId: string; readonly listener: AskListener }>();
  #unsubscribe: (() => void) | undefined;
  #staying: NodeJS.Timeout | undefined;
  #underway = 0;

  constructor(connection: RedisConnection, subscriber: RedisSubscriber, keys: RedisKeys) {
    this.#connection = connection;
    this.#subscriber = subscriber;
    this.#keys = keys;
  }

  isFollowed({ tenant, rootAgentId, processId }: LiveAddress): boolean {
    const now = performance.now();
    const processes = this.#elsewhere.get(this.#keys.treeOf(tenant, rootAgentId).tag) ?? [];
    return [...processes].some(([id, { until }]) => id !== processId && until > now);
  }

  send({ tenant, rootAgentId, processId }: LiveAddress, message: string): void {
    this.#publish(this.#keys.liveChannel(this.#keys.treeOf(tenant, rootAgentId)), `${processId} ${message}`);
  }

  follow({ tenant, rootAgentId, processId }: LiveAddress, listener: LiveListener): LiveFollowing {
    const tree = this.#keys.treeOf(tenant, rootAgentId);
    const follower = { processId, listener };
    const known = this.#followed.get(tree.tag);
    const followed = known ?? this.#subscribe(tree);
    followed.followers.add(follower);
    const ask = (): void => this.#announce(`${processId} ask ${tree.tag}`);
    if (known) ask();
    const end = (): void => {
      followed.followers.delete(follower);
      if (followed.followers.size > 0 || this.#followed.get(tree.tag) !== followed) return;
      this.#followed.delete(tree.tag);
      followed.end();
      if (this.#followed.size === 0) clearInterval(this.#staying);
    };
    return { ask, end };
  }

  onAsked(processId: string, listener: AskListener): () => void {
    const owner = { processId, listener };
    this.#owners.add(owner);
    this.#unsubscribe ??= this.#subscriber.subscribe(this.#keys.liveChannel(), {
      onMessage: (text) => this.#noteFollower(text),
      // Followers that subscribed earlier become known with their next announcement, which this requests.
      onSubscribed: () => {
        this.#round += 1;
        this.#announce(`${processId} who`);
      },
    });
    return () => {
      this.#owners.delete(owner);
      if (this.#owners.size > 0) return;
      this.#unsubscribe?.();
      this.#unsubscribe = undefined;
    };
  }

  close(): void {
    clearInterval(this.#staying);
    this.#followed.clear();
    this.#owners.clear();
  }

  #subscribe(tree: TreeKeys): Followed {
    const followers: Followed["followers"] = new Set();
    const end = this.#subscriber.subscribe(this.#keys.liveChannel(tree), {
      onMessage: (text) => {
        const sender = text.slice(0, text.indexOf(" "));
        for (const { processId, listener } of followers) {
          if (processId !== sender) listener(text.slice(sender.length + 1));
        }
      },
      onSubscribed: () => {
        for (const processId of processesOf(followers)) this.#announce(`${processId} ask ${tree.tag}`);
      },
    });
    const followed = { tree, followers, end };
    if (this.#followed.size === 0) {
      this.#staying = setInterval(() => this.#stay(), STAY_MS);
      this.#staying.unref();
    }
    this.#followed.set(tree.tag, followed);
    return followed;
  }

  #stay(): void {
    const trees = new Map<string, string[]>();
    for (const { tree, followers } of this.#followed.values()) {
      for (const processId of processesOf(followers)) {
        trees.set(processId, [...(trees.get(processId) ?? []), tree.tag]);
      }
    }
    for (const [processId, tags] of trees) this.#announce(`${processId} stay ${tags.join(" ")}`);
  }

  #noteFollower(text: string): void {
    const [processId = "", word, ...tags] = text.split(" ");
    if (word === "who") this.#stay();
    for (const tag of tags) {
      // Any client that may publish can have sent the tag.
      if (!this.#keys.isTag(tag)) continue;
      const processes = this.#elsewhere.get(tag) ?? new Map<string, RemoteFollower>();
      const isNew = processes.get(processId)?.round !== this.#round;
      processes.set(processId, { until: performance.now() + 3 * STAY_MS, round: this.#round });
      this.#elsewhere.set(tag, processes);
      if (isNew || word === "ask") this.#notifyOwners(processId, tag);
    }
    if (this.#elsewhere.size > TREES_KEPT) this.#forgetSilent();
  }

  #forgetSilent(): void {
    const now = performance.now();
    for (const [tag, processes] of this.#elsewhere) {
      for (const [processId, { until }] of processes) if (until <= now) processes.delete(processId);
      if (processes.size === 0) this.#elsewhere.delete(tag);
    }
  }

  #notifyOwners(asking: string, tag: string): void {
    const { tenant, rootAgentId } = this.#keys.namesIn(tag);
    for (const { processId, listener } of this.#owners) if (processId !== asking) listener(tenant, rootAgentId);
  }

  #announce(text: string): void {
    this.#publish(this.#keys.liveChannel(), text);
  }

  #publish(channel: string, text: string): void {
    if (this.#underway >= MOST_UNDERWAY) return;
    this.#underway += 1;
    const send = async (): Promise<void> => {
      try {
        await this.#connection.run(async (client, repeat) => {
          // The first attempt may have arrived, and later messages may have overtaken it.
          if (repeat > 0) throw new StoreUnavailableError("a live message is not sent again");
          // A script with the channel as its key: in a cluster, one node sends all messages of a tree, so they stay in order.
          await client.eval("return redis.call('PUBLISH', KEYS[1], ARGV[1])", 1, channel, text);
        });
      } catch {
        // The next message shows the receivers that one is missing.
      } finally {
        this.#underway -= 1;
      }
    };
    void send();
  }
}

function processesOf(followers: Followed["followers"]): Set<string> {
  return new Set([...followers].map(({ processId }) => processId));
}
