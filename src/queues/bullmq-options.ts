import {
  anyRule,
  type Clock,
  clockRule,
  type OptionsSchema,
  functionRule,
  listRule,
  optionsOf,
  optionsRule,
  systemClock,
  textRule,
  wholeNumberRule,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import {
  checkedPostgresLocation,
  type ClientSettings,
  insteadOfPostgresLocation,
  type PostgresLocationOptions,
  postgresLocationRules,
} from "../postgres/index.ts";
import {
  checkedRedisLocation,
  type RedisLocation,
  type RedisLocationOptions,
  redisLocationRules,
} from "../redis/index.ts";
import { BullmqPostgres } from "./bullmq-postgres.ts";
import { BullmqRedis } from "./bullmq-redis.ts";
import type { BullmqServer } from "./bullmq-server.ts";
import { checkWhole, DEFAULT_DEAD_LETTERS_KEPT, DEFAULT_GRACE_MS, redactKnown } from "./checks.ts";
import { createSigner, type Signer, type SigningKey, signingKeyRule } from "./jobs.ts";

/** The queues' Postgres, and how many connections they use. */
export interface PostgresQueuesOptions extends PostgresLocationOptions {
  /** Most connections for adding and counting, from 1 to 1,000; each queue that is worked on has up to 3 more. Default 5. */
  readonly maxConnections?: number | undefined;
}

/** Redis (one of `url`, `client` and `cluster`) or `postgres`, those of the stores or others, and how to use it. */
export interface BullmqQueuesOptions extends RedisLocationOptions {
  /**
   * Postgres 13 or later instead of Redis: BullMQ's tables are in its schema `bullmq`, created if it is missing. Default: none; one of
   * `url`, `client`, `cluster` and `postgres` is required.
   */
  readonly postgres?: PostgresQueuesOptions | undefined;
  /**
   * Redis: prefix of all keys, after a brace: any text without braces; default `"troupe:queue:"`. Postgres: prefix of the names of all
   * queues: any text without colons; default `"troupe."`.
   */
  readonly prefix?: string | undefined;
  /** Time limit for adding, cancelling or counting, including retries, in milliseconds. Default 5,000. */
  readonly timeoutMs?: number | undefined;
  /**
   * Signs jobs with the first key and accepts any of the keys, so jobs that another writer added to the server are refused. All processes
   * need the same keys. Default: jobs are not signed, and each client that can write to the server can add jobs.
   */
  readonly secrets?: readonly SigningKey[] | undefined;
  /**
   * How long a silent worker still counts as running its jobs, in milliseconds. Default 6,000. If the server is unreachable for longer,
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

/** Where the queues are. */
type QueuesPlace =
  | { readonly redis: RedisLocation; readonly prefix: string }
  | { readonly postgres: ClientSettings; readonly maxConnections: number; readonly prefix: string };

export interface CheckedOptions {
  readonly place: QueuesPlace;
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
const MOST_CONNECTIONS = 1_000;
const DEFAULT_CONNECTIONS = 5;

/** Numbers are checked in `checkedOptions`, which has their defaults. */
const bullmqOptionsSchema: OptionsSchema<BullmqQueuesOptions> = {
  rules: {
    ...redisLocationRules,
    postgres: optionsRule<PostgresQueuesOptions>({
      rules: { ...postgresLocationRules, maxConnections: wholeNumberRule(1, MOST_CONNECTIONS) },
      instead: insteadOfPostgresLocation,
    }),
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
  const { secrets, clock = systemClock } = options;
  return {
    place: placeOf(options),
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

function placeOf(options: BullmqQueuesOptions): QueuesPlace {
  const { postgres, url, client, cluster } = options;
  if (postgres === undefined) {
    const { prefix = "troupe:queue:" } = options;
    const redis = checkedRedisLocation("bullmqQueues", options);
    if (!/[{}]/.test(prefix)) return { redis, prefix };
    throw new InvalidInputError(`prefix is ${JSON.stringify(prefix)}; expected any text without braces`);
  }
  if (url !== undefined || client !== undefined || cluster !== undefined) {
    throw new InvalidInputError("bullmqQueues takes one of url, client, cluster and postgres; several are given");
  }
  const { prefix = "troupe." } = options;
  if (/[:\0]/.test(prefix) || !prefix.isWellFormed()) {
    throw new InvalidInputError(`prefix is ${JSON.stringify(prefix)}; with Postgres, expected any text without colons`);
  }
  const { maxConnections = DEFAULT_CONNECTIONS } = postgres;
  return { postgres: checkedPostgresLocation("bullmqQueues: postgres", postgres), maxConnections, prefix };
}

/** The server of the queues; it connects on first use. */
export function serverOf({ place, timeoutMs }: Pick<CheckedOptions, "place" | "timeoutMs">): BullmqServer {
  const { prefix } = place;
  if ("redis" in place) return new BullmqRedis({ place: place.redis, timeoutMs, prefix });
  return new BullmqPostgres({ client: place.postgres, maxConnections: place.maxConnections, timeoutMs, prefix });
}

function whole(name: string, given: number | undefined, byDefault: number, least: number): number {
  const value = given ?? byDefault;
  checkWhole(name, value, least, LONGEST_MS);
  return value;
}
