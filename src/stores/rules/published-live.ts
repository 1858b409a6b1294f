import type { AskListener, LiveAddress, LiveChannel, LiveFollowing, LiveListener } from "./live-channel.ts";

export interface ChannelListener {
  onMessage(text: string): void;
  /** Called when the channel is subscribed, for the first time or after an interruption. */
  onSubscribed(): void;
}

/** Publishes and subscribes. A tree is named by its tag, a text without spaces; `undefined` names the channel of all trees. */
export interface LiveTransport {
  /** Returns a function that unsubscribes. */
  subscribe(tag: string | undefined, listener: ChannelListener): () => void;
  /** Messages of one tree arrive in the order of the calls; those that cannot be sent now are lost. */
  publish(tag: string | undefined, text: string): Promise<void>;
  tagOf(tenant: string, rootAgentId: string): string;
  isTag(text: string): boolean;
  namesIn(tag: string): Pick<LiveAddress, "tenant" | "rootAgentId">;
}

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
  readonly tag: string;
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
export class PublishedLive implements LiveChannel {
  readonly #transport: LiveTransport;
  readonly #followed = new Map<string, Followed>();
  /** Followers by tree and process. */
  readonly #elsewhere = new Map<string, Map<string, RemoteFollower>>();
  /** How often the common channel was subscribed; questions before the last subscription may have been missed. */
  #round = 0;
  readonly #owners = new Set<{ readonly processId: string; readonly listener: AskListener }>();
  #unsubscribe: (() => void) | undefined;
  #staying: NodeJS.Timeout | undefined;
  #underway = 0;

  constructor(transport: LiveTransport) {
    this.#transport = transport;
  }

  isFollowed({ tenant, rootAgentId, processId }: LiveAddress): boolean {
    const now = performance.now();
    const processes = this.#elsewhere.get(this.#transport.tagOf(tenant, rootAgentId)) ?? [];
    return [...processes].some(([id, { until }]) => id !== processId && until > now);
  }

  send({ tenant, rootAgentId, processId }: LiveAddress, message: string): void {
    this.#publish(this.#transport.tagOf(tenant, rootAgentId), `${processId} ${message}`);
  }

  follow({ tenant, rootAgentId, processId }: LiveAddress, listener: LiveListener): LiveFollowing {
    const tag = this.#transport.tagOf(tenant, rootAgentId);
    const follower = { processId, listener };
    const known = this.#followed.get(tag);
    const followed = known ?? this.#subscribe(tag);
    followed.followers.add(follower);
    const ask = (): void => this.#announce(`${processId} ask ${tag}`);
    if (known) ask();
    const end = (): void => {
      followed.followers.delete(follower);
      if (followed.followers.size > 0 || this.#followed.get(tag) !== followed) return;
      this.#followed.delete(tag);
      followed.end();
      if (this.#followed.size === 0) clearInterval(this.#staying);
    };
    return { ask, end };
  }

  onAsked(processId: string, listener: AskListener): () => void {
    const owner = { processId, listener };
    this.#owners.add(owner);
    this.#unsubscribe ??= this.#transport.subscribe(undefined, {
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

  #subscribe(tag: string): Followed {
    const followers: Followed["followers"] = new Set();
    const end = this.#transport.subscribe(tag, {
      onMessage: (text) => {
        const sender = text.slice(0, text.indexOf(" "));
        for (const { processId, listener } of followers) {
          if (processId !== sender) listener(text.slice(sender.length + 1));
        }
      },
      onSubscribed: () => {
        for (const processId of processesOf(followers)) this.#announce(`${processId} ask ${tag}`);
      },
    });
    const followed = { tag, followers, end };
    if (this.#followed.size === 0) {
      this.#staying = setInterval(() => this.#stay(), STAY_MS);
      this.#staying.unref();
    }
    this.#followed.set(tag, followed);
    return followed;
  }

  #stay(): void {
    const trees = new Map<string, string[]>();
    for (const { tag, followers } of this.#followed.values()) {
      for (const processId of processesOf(followers)) {
        trees.set(processId, [...(trees.get(processId) ?? []), tag]);
      }
    }
    for (const [processId, tags] of trees) this.#announce(`${processId} stay ${tags.join(" ")}`);
  }

  #noteFollower(text: string): void {
    const [processId = "", word, ...tags] = text.split(" ");
    if (word === "who") this.#stay();
    for (const tag of tags) {
      // Any client that may publish can have sent the tag.
      if (!this.#transport.isTag(tag)) continue;
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
    const { tenant, rootAgentId } = this.#transport.namesIn(tag);
    for (const { processId, listener } of this.#owners) if (processId !== asking) listener(tenant, rootAgentId);
  }

  #announce(text: string): void {
    this.#publish(undefined, text);
  }

  #publish(tag: string | undefined, text: string): void {
    if (this.#underway >= MOST_UNDERWAY) return;
    this.#underway += 1;
    const send = async (): Promise<void> => {
      try {
        await this.#transport.publish(tag, text);
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
