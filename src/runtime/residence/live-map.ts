import { NotFoundError } from "../../errors/index.ts";
import { type AgentKey, keyText } from "../../state/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { Departures } from "./departures.ts";

/**
 * Which agents live in this process, are coming to life, or are about to leave it.
 *
 * Invariant: of an agent at most one activation lives here; whoever asks for one whose lease is just being given back waits
 * until that is decided.
 */
export class LiveMap {
  readonly #departures: Departures;
  readonly #live = new Map<string, Activation>();
  readonly #coming = new Map<string, Promise<Activation>>();

  constructor(departures: Departures) {
    this.#departures = departures;
  }

  get(key: AgentKey): Activation | undefined {
    return this.#live.get(keyText(key));
  }

  all(): Activation[] {
    return [...this.#live.values()];
  }

  put(activation: Activation): void {
    this.#live.set(keyText(activation.key), activation);
  }

  forget(activation: Activation): void {
    if (this.get(activation.key) === activation) this.#live.delete(keyText(activation.key));
  }

  isComing(key: AgentKey): boolean {
    return this.#coming.has(keyText(key));
  }

  /** The activation that lives here, or that `start` brings to life; one start at a time. */
  async come(key: AgentKey, start: () => Promise<Activation>): Promise<Activation> {
    const live = this.get(key);
    if (live && !this.#departures.undecided(live)) return live;
    const text = keyText(key);
    const coming = this.#coming.get(text);
    if (coming) {
      return await coming.catch(async (error: unknown) => {
        // It was begun before, and the agent may have been made since.
        if (error instanceof NotFoundError) return await this.come(key, start);
        throw error;
      });
    }
    const started = this.staying(key)
      .then(async (staying) => staying ?? (await start()))
      .finally(() => this.#coming.delete(text));
    this.#coming.set(text, started);
    return await started;
  }

  /** The activation, if the agent lives here or is just coming to life. */
  async present(key: AgentKey): Promise<Activation | undefined> {
    return (await this.staying(key)) ?? (await this.#coming.get(keyText(key))?.catch(() => undefined));
  }

  /** One whose lease is just being given back lives here only where that is refused. */
  async staying(key: AgentKey): Promise<Activation | undefined> {
    for (let live = this.get(key); ; live = this.get(key)) {
      const undecided = live && this.#departures.undecided(live);
      if (!undecided) return live;
      await undecided;
    }
  }

  /** Settles when nobody is coming to life any more. */
  async arrived(): Promise<void> {
    await Promise.allSettled(this.#coming.values());
  }
}
