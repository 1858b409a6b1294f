import type * as Bullmq from "bullmq";
import { InvalidInputError, UnsupportedError } from "../errors/index.ts";
import { checkServers, letGo, type RedisClient, RedisLink } from "../redis/index.ts";
import { QUEUES } from "./bullmq-errors.ts";
import type { CheckedOptions } from "./bullmq-options.ts";

/**
 * The queues' ways to Redis.
 * Owns: the connections. Does not own: what is sent.
 * 1. Workers have connections that wait for Redis, however long it is away, until all are closed.
 */
export class BullmqConnection extends RedisLink {
  #patient: Promise<RedisClient> | undefined;
  /** On which workers wait for their next job, each on one of its own. */
  readonly #waiting: RedisClient[] = [];

  constructor({ place, timeoutMs }: CheckedOptions) {
    super({ place, timeoutMs, name: QUEUES, needing: "BullMQ queues need", check: checkFitness });
  }

  /** The package `bullmq`, loaded when it is needed first. */
  async package(): Promise<typeof Bullmq> {
    try {
      return await import("bullmq");
    } catch (error) {
      throw new UnsupportedError('BullMQ queues need the package "bullmq": npm install bullmq ioredis', {
        cause: error,
      });
    }
  }

  /** For workers: commands wait in it until Redis is there. */
  async patient(): Promise<RedisClient> {
    this.assertOpen();
    this.#patient ??= this.#connectPatient();
    return this.#patient;
  }

  override async close(): Promise<void> {
    await super.close();
    const client = await this.#patient?.catch(() => undefined);
    for (const one of this.#waiting) one.disconnect();
    if (client) letGo(client);
  }

  async #connectPatient(): Promise<RedisClient> {
    const client = await this.another("patient");
    const duplicate: (...given: never[]) => RedisClient = client.duplicate.bind(client);
    // The package makes these itself, and could not let go of them while Redis is away: they would keep the process alive.
    const duplicateHeld = (...given: never[]): RedisClient => {
      const another = duplicate(...given);
      const disconnect = another.disconnect.bind(another);
      another.disconnect = (isTemporary) => {
        if (isTemporary) disconnect(isTemporary);
        else letGo(another, disconnect);
      };
      this.#waiting.push(another);
      return another;
    };
    return Object.assign(client, { duplicate: duplicateHeld });
  }
}

async function checkFitness(client: RedisClient): Promise<void> {
  const servers = await checkServers(client, { user: QUEUES, atStake: "jobs" });
  if (servers.every(({ facts }) => facts !== undefined)) return;
  throw new InvalidInputError(
    "the user of Redis may not call INFO, which the queues need to know what Redis can do; allow it (ACL SETUSER name +info)",
  );
}
