import type { AskListener, LiveChannel, LiveFollowing, LiveListener, LivePlace } from "./live-channel.ts";

interface Follower {
  readonly processId: string;
  readonly listener: LiveListener;
}

/** Between those who share one stores object in this process; nobody elsewhere hears of it. */
export class LocalLive implements LiveChannel {
  readonly #followers = new Map<string, Set<Follower>>();
  readonly #owners = new Set<{ readonly processId: string; readonly listener: AskListener }>();

  isFollowed(place: LivePlace): boolean {
    return this.#others(place).length > 0;
  }

  send(place: LivePlace, message: string): void {
    for (const { listener } of this.#others(place)) listener(message);
  }

  follow(place: LivePlace, listener: LiveListener): LiveFollowing {
    const text = treeText(place);
    const { processId, tenant, rootAgentId } = place;
    const followers = this.#followers.get(text) ?? new Set();
    const follower: Follower = { processId, listener };
    this.#followers.set(text, followers.add(follower));
    const ask = (): void => {
      for (const owner of this.#owners) if (owner.processId !== processId) owner.listener(tenant, rootAgentId);
    };
    ask();
    const end = (): void => {
      followers.delete(follower);
      if (followers.size === 0 && this.#followers.get(text) === followers) this.#followers.delete(text);
    };
    return { ask, end };
  }

  onAsked(processId: string, listener: AskListener): () => void {
    const owner = { processId, listener };
    this.#owners.add(owner);
    return () => {
      this.#owners.delete(owner);
    };
  }

  #others(place: LivePlace): Follower[] {
    return [...(this.#followers.get(treeText(place)) ?? [])].filter(({ processId }) => processId !== place.processId);
  }
}

function treeText({ tenant, rootAgentId }: LivePlace): string {
  return JSON.stringify([tenant, rootAgentId]);
}
