import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { InvalidInputError, StoreUnavailableError } from "../../errors/index.ts";
import type { SigningKey } from "../../queues/bullmq.ts";
import type { Queues } from "../../queues/index.ts";
import type { RedisSharing } from "../../server/index.ts";
import { databasePath, type Stores } from "../../stores/index.ts";
import type { PostgresStoresOptions } from "../../stores/postgres.ts";
import type { RedisStoresOptions } from "../../stores/redis.ts";
import type { CliContext } from "../cli-context.ts";
import { defaultStorePath } from "../options.ts";
import { isPostgresAddress, postgresAddress } from "./postgres-location.ts";

/** The options that name a store. */
export interface StoreOptions {
  readonly store?: string | undefined;
  readonly redis?: string | undefined;
  readonly prefix?: string | undefined;
}

/** The store of a command: the given one, or the default. */
export interface StoreLocation {
  /** Name for people, without a password. */
  readonly name: string;
  /** Options for a command line with this store; empty for the default store. */
  readonly words: readonly string[];
  /** Remarks on command lines with these options. */
  readonly remarks: readonly string[];
  /** Path of the SQLite file; `undefined` for servers and for a database in memory. */
  readonly file: string | undefined;
  /** Opens the store; creates it if it does not exist. */
  readonly open: () => Promise<Stores>;
  /** Opens an existing store. Throws `InvalidInputError` if it does not exist. */
  readonly openExisting: () => Promise<Stores>;
  /** Opens the queues of its server; `undefined` for a file. Throws `InvalidInputError` for invalid signing keys. */
  readonly openQueues: (() => Promise<Queues>) | undefined;
  /** Connects servers through its Redis, over these stores' connection if they are there; `undefined` without one. */
  readonly openSharing: ((stores: Stores) => Promise<RedisSharing>) | undefined;
}

/**
 * With a store in Postgres, Redis is only for the queues and what servers share; without it the queues are in Postgres too.
 * Throws `InvalidInputError` if the options name two stores, or an invalid address.
 */
export function storeLocation(context: Pick<CliContext, "environment">, options: StoreOptions): StoreLocation {
  const { environment } = context;
  const { store, redis, prefix } = options;
  if (store !== undefined && isPostgresAddress(store)) return postgresPlace(context, store, options);
  if (store !== undefined && redis !== undefined) {
    throw new InvalidInputError("--store and --redis name two stores; give one of them");
  }
  if (store !== undefined && prefix !== undefined) {
    throw new InvalidInputError("--prefix requires --redis; it cannot be combined with --store");
  }
  const fromEnvironment = environment["TROUPE_REDIS"]?.trim() ?? "";
  if (redis !== undefined) return redisPlace(context, redisAddress(redis, "--redis"), "flag", prefix);
  if (store === undefined && fromEnvironment !== "") {
    return redisPlace(context, redisAddress(fromEnvironment, "TROUPE_REDIS"), "environment", prefix);
  }
  if (prefix !== undefined) {
    throw new InvalidInputError("--prefix requires Redis; give --redis, or set TROUPE_REDIS");
  }
  return filePlace(store ?? defaultStorePath, fromEnvironment !== "");
}

/**
 * `isNeeded`: `TROUPE_REDIS` is set, so a command line without `--store` would use Redis.
 * Throws `InvalidInputError` for a text that is an invalid file path.
 */
function filePlace(given: string, isNeeded: boolean): StoreLocation {
  const path = databasePath(given);
  return {
    name: given,
    words: given === defaultStorePath && !isNeeded ? [] : ["--store", given],
    remarks: [],
    file: given === ":memory:" ? undefined : path,
    open: async () => sqliteAt(fileToWorkIn(path)),
    openExisting: async () => sqliteAt(existingFile(path, given)),
    openQueues: undefined,
    openSharing: undefined,
  };
}

function redisPlace(
  { environment }: Pick<CliContext, "environment">,
  address: RedisAddress,
  from: "flag" | "environment",
  prefix: string | undefined,
): StoreLocation {
  const { shown } = address;
  const open = async (): Promise<Stores> => {
    const { redisStores } = await import("../../stores/redis.ts");
    return redisStores(redisOptions(address, prefix));
  };
  return {
    name: prefix === undefined ? shown : `${shown} (prefix ${prefix})`,
    ...redisWords(address, from, prefix),
    file: undefined,
    open,
    openExisting: open,
    openQueues: () => queuesAt(environment, address, prefix),
    async openSharing(stores) {
      const { redisSharing } = await import("../../server/index.ts");
      return await redisSharing({ stores });
    },
  };
}

/** The words of a command line with this Redis, and remarks on them. */
function redisWords(
  { shown, hasPassword }: RedisAddress,
  from: "flag" | "environment",
  prefix: string | undefined,
): Pick<StoreLocation, "words" | "remarks"> {
  const ofPrefix = prefix === undefined ? [] : ["--prefix", prefix];
  const isSecret = hasPassword && from === "environment";
  return {
    // With --redis, the address without its password would override the variable that contains it.
    words: isSecret ? ofPrefix : ["--redis", shown, ...ofPrefix],
    remarks: isSecret
      ? [`(These commands find ${shown} through TROUPE_REDIS, which contains its password.)`]
      : hasPassword
        ? ["(The password is left out of these commands: add it to the address, or set TROUPE_REDIS instead.)"]
        : [],
  };
}

async function queuesAt(
  environment: CliContext["environment"],
  address: RedisAddress,
  prefix: string | undefined,
): Promise<Queues> {
  const { bullmqQueues } = await import("../../queues/bullmq.ts");
  const queuePrefix = prefix === undefined ? undefined : `${prefix}queue:`;
  return bullmqQueues({ ...redisOptions(address, queuePrefix), secrets: queueSecrets(environment) });
}

/** The queues in the Postgres of the stores; those of another schema are others. */
async function queuesBeside(
  environment: CliContext["environment"],
  { url, schema = "troupe" }: PostgresStoresOptions,
): Promise<Queues> {
  const { bullmqQueues } = await import("../../queues/bullmq.ts");
  return bullmqQueues({ postgres: { url }, prefix: `${schema}.`, secrets: queueSecrets(environment) });
}

function postgresPlace(
  { environment }: Pick<CliContext, "environment">,
  store: string,
  { redis, prefix }: StoreOptions,
): StoreLocation {
  const { options, shown, hasPassword } = postgresAddress(store);
  const fromEnvironment = environment["TROUPE_REDIS"]?.trim() ?? "";
  const address =
    redis !== undefined
      ? redisAddress(redis, "--redis")
      : fromEnvironment === ""
        ? undefined
        : redisAddress(fromEnvironment, "TROUPE_REDIS");
  if (address === undefined && prefix !== undefined) {
    throw new InvalidInputError(
      "--prefix is the prefix of keys in Redis; name the schema in Postgres with ?schema=NAME in --store",
    );
  }
  const ofRedis = address && redisWords(address, redis === undefined ? "environment" : "flag", prefix);
  const open = async (): Promise<Stores> => {
    const { postgresStores } = await import("../../stores/postgres.ts");
    return postgresStores(options);
  };
  return {
    name: shown,
    words: ["--store", shown, ...(ofRedis?.words ?? [])],
    remarks: [
      ...(hasPassword
        ? ["(The password is left out of these commands: add it to the address, or set PGPASSWORD instead.)"]
        : []),
      ...(ofRedis?.remarks ?? []),
    ],
    file: undefined,
    open,
    openExisting: open,
    openQueues: () => (address ? queuesAt(environment, address, prefix) : queuesBeside(environment, options)),
    openSharing:
      address &&
      (async () => {
        const { redisSharing } = await import("../../server/index.ts");
        const { cluster, url } = redisOptions(address, undefined);
        return await redisSharing({ cluster, url, prefix });
      }),
  };
}

async function sqliteAt(path: string): Promise<Stores> {
  const { sqliteStores } = await import("../../stores/sqlite.ts");
  return sqliteStores(path);
}

/** Opens the store for `work` and closes it. Adds the store's name to errors of servers. */
export async function withStore<T>(
  place: StoreLocation,
  how: "open" | "openExisting",
  work: (stores: Stores) => Promise<T>,
): Promise<T> {
  const stores = await place[how]();
  try {
    return await work(stores);
  } catch (error) {
    throw stores.kind === "sqlite" ? error : named(place, error);
  } finally {
    await stores.close();
  }
}

/** Like `withStore` for queues. Throws `InvalidInputError` for a file, which has none. */
export async function withQueues<T>(place: StoreLocation, work: (queues: Queues) => Promise<T>): Promise<T> {
  if (place.openQueues === undefined) {
    throw new InvalidInputError(
      "queues require Redis or Postgres: give --redis URL or --store postgres://…, or set TROUPE_REDIS",
    );
  }
  const queues = await place.openQueues();
  try {
    return await work(queues);
  } catch (error) {
    throw named(place, error);
  } finally {
    await queues.close();
  }
}

function named({ name }: StoreLocation, error: unknown): unknown {
  if (!(error instanceof StoreUnavailableError)) return error;
  return new StoreUnavailableError(`${name}: ${error.message}`, { details: error.details, cause: error });
}

/** The same stores with a `close` without effect, for a runtime that closes its stores while they are still needed. */
export function keptOpen(stores: Stores): Stores {
  return { ...stores, close: async () => {} };
}

/** Creates the file's folder, readable only by the process's owner. `path`: as returned by `databasePath`. */
function fileToWorkIn(path: string): string {
  if (path !== ":memory:") mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  return path;
}

/** Throws `InvalidInputError` if the file does not exist. `shown`: the path as given. */
function existingFile(path: string, shown: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile() === true) return path;
  throw new InvalidInputError(
    stats === undefined
      ? `there is no store at ${shown}; give the path of an existing store with --store, or start a job first`
      : `${shown} is not a file; give the path of a store with --store`,
  );
}

const secretsVariable = "TROUPE_QUEUE_SECRETS";

/** The queues' minimum, checked here so that the error can name the variable. */
const shortest = 16;

/**
 * The keys that sign jobs, from `id:secret,id:secret`: the first signs, all verify. `undefined` without the variable.
 * Throws `InvalidInputError`, whose message contains no secret.
 */
export function queueSecrets(environment: Readonly<Record<string, string | undefined>>): SigningKey[] | undefined {
  const text = environment[secretsVariable]?.trim() ?? "";
  if (text === "") return undefined;
  return text.split(",").map((part, index) => {
    const [, id, secret] = /^([\w.@-]{1,128}):(.+)$/.exec(part.trim()) ?? [];
    if (id === undefined || secret === undefined) throw fault(index, "is not of the form ID:SECRET");
    if (secret.length < shortest) throw fault(index, `has a secret of less than ${shortest} characters`);
    return { id, secret };
  });
}

function fault(index: number, what: string): InvalidInputError {
  return new InvalidInputError(
    `${secretsVariable}: key ${index + 1} ${what}; expected ID:SECRET, several separated by commas, for instance from \`openssl rand -hex 32\``,
  );
}

const DEFAULT_PORT = 6379;

/** The address of a Redis: one server, or several nodes of a cluster. */
interface RedisAddress {
  readonly urls: readonly [URL, ...URL[]];
  /** The address without secrets. */
  readonly shown: string;
  readonly hasPassword: boolean;
}

/**
 * Parses `redis://[[user]:password@]host[:port][/database]`, `rediss://` for TLS; for a cluster several, separated by
 * commas. `source`: the option or variable with the address. Throws `InvalidInputError`, whose message does not contain
 * the address, because it may contain a password.
 */
export function redisAddress(text: string, source: string): RedisAddress {
  const [first, ...others] = text.split(",").map((part) => urlOf(part.trim(), source));
  if (first === undefined) throw noAddress(source);
  const urls = [first, ...others] as const;
  if (others.some(({ protocol }) => protocol !== first.protocol)) {
    throw new InvalidInputError(
      `${source} names nodes of a cluster with redis:// and with rediss://; use the same for all`,
    );
  }
  if (others.length > 0 && urls.some(({ pathname }) => !["", "/", "/0"].includes(pathname))) {
    throw new InvalidInputError(
      `${source} names a database of a cluster, which has only one; leave out the text after the /`,
    );
  }
  return {
    urls,
    shown: urls.map(withoutSecrets).join(","),
    hasPassword: urls.some((url) => withoutSecrets(url) !== url.href),
  };
}

/** All nodes of a cluster use the first one's user and password. */
export function redisOptions({ urls }: RedisAddress, prefix: string | undefined): RedisStoresOptions {
  const [first, ...others] = urls;
  if (others.length === 0) return { url: first.href, prefix };
  const { username, password, protocol } = first;
  return {
    prefix,
    cluster: {
      nodes: urls.map(({ hostname, port }) => ({
        host: hostname.replace(/^\[(.*)\]$/, "$1"),
        port: port === "" ? DEFAULT_PORT : Number(port),
      })),
      options: {
        redisOptions: {
          ...(username === "" ? {} : { username: decodeURIComponent(username) }),
          ...(password === "" ? {} : { password: decodeURIComponent(password) }),
          ...(protocol === "rediss:" ? { tls: {} } : {}),
        },
      },
    },
  };
}

function urlOf(text: string, source: string): URL {
  if (!URL.canParse(text)) throw noAddress(source);
  const url = new URL(text);
  if (!["redis:", "rediss:"].includes(url.protocol) || url.hostname === "") throw noAddress(source);
  return url;
}

function noAddress(source: string): InvalidInputError {
  return new InvalidInputError(
    `${source}: invalid Redis URL; expected redis://[[user]:password@]host[:port][/database] or rediss://…, for a cluster two or more nodes with commas between them`,
  );
}

/** Removes passwords from the query too, because ioredis accepts them there. */
function withoutSecrets(url: URL): string {
  const shown = new URL(url.href);
  shown.password = "";
  const names = Array.from(shown.searchParams.keys());
  for (const name of names) {
    if (/pass|secret|token|auth/i.test(name)) shown.searchParams.delete(name);
  }
  return shown.href;
}
