import {
  anyRule,
  type Clock,
  clockRule,
  type OptionsSchema,
  functionRule,
  listRule,
  optionsOf,
  systemClock,
  textRule,
} from "../base/index.ts";
import { InvalidInputError, InvariantError, LeaseLostError, TroupeError, UnsupportedError } from "../errors/index.ts";
import {
  checkedRedisLocation,
  type RedisLocation,
  type RedisLocationOptions,
  redisLocationRules,
  hasAnswered,
  networkCode,
  translated as translatedFor,
  checkServers,
  letGo,
  type RedisClient,
  RedisLink,
} from "../redis/index.ts";
import { checkWhole, DEFAULT_DEAD_LETTERS_KEPT, DEFAULT_GRACE_MS, redactKnown } from "./checks.ts";
import { createSigner, type Signer, type SigningKey, signingKeyRule } from "./jobs.ts";
import type * as Bullmq from "bullmq";

/**
 * The connections of the queues to Redis.
 * Owns: the connections. Does not own: the commands that are sent over them.
 * 1. Connections of workers wait for Redis, however long it is unreachable, until all connections are closed.
 */
export class BullmqConnection extends RedisLink {
  #patient: Promise<RedisClient> | undefined;
  /** Connections on which workers wait for their next job, one per worker. */
  readonly #waiting: RedisClient[] = [];

  constructor({ place, timeoutMs }: CheckedOptions) {
    super({ place, timeoutMs, name: QUEUES, needing: "BullMQ queues need", check: checkFitness });
  }

  /** Loads the package `bullmq` on first use. */
  async package(): Promise<typeof Bullmq> {
    try {
      return await import("bullmq");
    } catch (error) {
      throw new UnsupportedError('BullMQ queues need the package "bullmq": npm install bullmq ioredis', {
        cause: error,
      });
    }
  }

  /** A connection for workers: it keeps commands until Redis is reachable. */
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
    // bullmq creates these connections itself and cannot close them while Redis is unreachable; they would keep the process alive.
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
    "the Redis user may not call INFO, which the queues need to check the server; allow it (ACL SETUSER name +info)",
  );
}

/** The sender's name in error messages. */
export const QUEUES = "the queues";

/**
 * The codes with which bullmq refuses to record the end of a job that its worker lost: -1, the job is gone, because another worker ended
 * it; -2, its lock is gone; -3, it is not active; -6, another worker holds the lock.
 */
const lostJobCodes: readonly unknown[] = [-1, -2, -3, -6];
const LONGEST_TEXT = 500;

/** Converts an error of Redis, the connection or bullmq into an error of this package. */
export function translated(error: unknown): TroupeError {
  const known = translatedFor(error, QUEUES);
  if (known instanceof TroupeError) return known;
  return new InvariantError(`the queues failed: ${known instanceof Error ? known.name : typeof known}`);
}

/** Converts the error of a worker's error event. `redact` removes secrets from errors of unknown origin. */
export function faultOf(queue: string, error: unknown, redact: (text: string) => string): TroupeError {
  const jobId = lostJobOf(error);
  if (jobId !== undefined) return lostLockOf(queue, jobId);
  const isOfConnection = hasAnswered(error) || networkCode(error) !== undefined;
  if (isOfConnection || (error instanceof Error && /connection/i.test(error.message))) return translated(error);
  return new InvariantError(`a worker of queue "${queue}" failed: ${redact(errorText(error)).slice(0, LONGEST_TEXT)}`);
}

/** The fault of a worker that did not keep the lock of a job that it runs. */
export function lostLockOf(queue: string, jobId: string): LeaseLostError {
  return new LeaseLostError(
    `job "${jobId}" of queue "${queue}" has lost its lock while it ran, since its worker did not renew it in time; ` +
      "another worker may run it too, or has ended it",
    { details: { queue, jobId } },
  );
}

/** The id of the job that a worker lost; `undefined` for any other error. */
function lostJobOf(error: unknown): string | undefined {
  if (!(error instanceof Error && "code" in error && lostJobCodes.includes(error.code))) return undefined;
  return /\bjob (\S+?)\.?(?:\s|$)/i.exec(error.message)?.[1] ?? "?";
}

function errorText(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : `it threw ${typeof error}`;
}

/** Redis (one of `url`, `client` and `cluster`; the one of the stores or another one) and how to use it. */
export interface BullmqQueuesOptions extends RedisLocationOptions {
  /** Prefix of all keys, after a brace: any text without braces. Default `"troupe:queue:"`. */
  readonly prefix?: string | undefined;
  /** Time limit for adding, cancelling or counting, including retries, in milliseconds. Default 5,000. */
  readonly timeoutMs?: number | undefined;
  /**
   * Signs jobs with the first key and accepts any of the keys, so jobs that another writer added to Redis are refused. All processes need
   * the same keys. Default: jobs are not signed, and each client that can write to Redis can add jobs.
   */
  readonly secrets?: readonly SigningKey[] | undefined;
  /**
   * How long a silent worker still counts as running its jobs, in milliseconds. Default 6,000. If Redis is unreachable for longer,
   * running jobs run twice.
   */
  readonly lockMs?: number | undefined;
  /**
   * How often to look for dead workers, and for jobs whose agent was not informed, in milliseconds. Default 1,500. A death is found
   * within `lockMs` and two of these periods: by default within 9 s, which is less than a lease.
   */
  readonly deathCheckMs?: number | undefined;
  /** How often running jobs check whether they were cancelled, in milliseconds. Default 250. */
  readonly cancelCheckMs?: number | undefined;
  /** How long a processor may continue after its signal was aborted, in milliseconds. Default 5,000. */
  readonly graceMs?: number | undefined;
  /** How many of the newest dead letters are kept per queue, for a week. Default 1,000. */
  readonly deadLettersKept?: number | undefined;
  /** Removes secrets from the errors of processors. Default: known formats, and the values of environment variables with secret names. */
  readonly redact?: ((text: string) => string) | undefined;
  /** Clock for timeouts of jobs. Default: the system clock. */
  readonly clock?: Clock | undefined;
}

export interface CheckedOptions {
  readonly place: RedisLocation;
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly signer: Signer | undefined;
  readonly lockMs: number;
  readonly deathCheckMs: number;
  readonly cancelCheckMs: number;
  readonly graceMs: number;
  readonly deadLettersKept: number;
  readonly redact: (text: string) => string;
  readonly clock: Clock;
}

const LONGEST_MS = 2 ** 31 - 1;

/** Numbers are checked in `checkedOptions`, which has their defaults. */
const bullmqOptionsSchema: OptionsSchema<BullmqQueuesOptions> = {
  rules: {
    ...redisLocationRules,
    prefix: textRule,
    timeoutMs: anyRule,
    secrets: listRule("a list of keys { id, secret }", signingKeyRule),
    lockMs: anyRule,
    deathCheckMs: anyRule,
    cancelCheckMs: anyRule,
    graceMs: anyRule,
    deadLettersKept: anyRule,
    redact: functionRule,
    clock: clockRule,
  },
  instead: { connection: "client", redis: "client", nodes: "cluster: { nodes }" },
};

/** Throws `InvalidInputError` for invalid options; messages never contain a URL or a secret. */
export function checkedOptions(given: BullmqQueuesOptions): CheckedOptions {
  const options = optionsOf<BullmqQueuesOptions>(given, "bullmqQueues()", bullmqOptionsSchema);
  const { prefix = "troupe:queue:", secrets, clock = systemClock } = options;
  const place = checkedRedisLocation("bullmqQueues", options);
  if (/[{}]/.test(prefix)) {
    throw new InvalidInputError(`prefix is ${JSON.stringify(prefix)}; expected any text without braces`);
  }
  return {
    place,
    prefix,
    signer: secrets && createSigner(secrets),
    clock,
    redact: options.redact ?? redactKnown(),
    timeoutMs: whole("timeoutMs", options.timeoutMs, 5_000, 1),
    lockMs: whole("lockMs", options.lockMs, 6_000, 100),
    deathCheckMs: whole("deathCheckMs", options.deathCheckMs, 1_500, 50),
    cancelCheckMs: whole("cancelCheckMs", options.cancelCheckMs, 250, 10),
    graceMs: whole("graceMs", options.graceMs, DEFAULT_GRACE_MS, 0),
    deadLettersKept: whole("deadLettersKept", options.deadLettersKept, DEFAULT_DEAD_LETTERS_KEPT, 1),
  };
}

function whole(name: string, given: number | undefined, byDefault: number, least: number): number {
  const value = given ?? byDefault;
  checkWhole(name, value, least, LONGEST_MS);
  return value;
}
