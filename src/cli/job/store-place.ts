import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { InvalidInputError, StoreUnavailableError } from "../../errors/index.ts";
import type { SigningKey } from "../../queues/bullmq.ts";
import type { Queues } from "../../queues/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { RedisStoresOptions } from "../../stores/redis.ts";
import type { CliContext } from "../cli-context.ts";
import { defaultStorePath } from "../options.ts";

/** Where a command looks for its agents, as it was typed. */
export interface StoreOptions {
  readonly store?: string | undefined;
  readonly redis?: string | undefined;
  readonly prefix?: string | undefined;
}

/** A store that a person has named, or the one that is meant where nobody named any. */
export interface StorePlace {
  /** As people are told of it; never with a password. */
  readonly name: string;
  /** The words that name it on a command line: none for the default one. */
  readonly words: readonly string[];
  /** What has to be known before a command line with these words works. */
  readonly remarks: readonly string[];
  /** For work: what is absent is made. */
  readonly open: () => Promise<Stores>;
  /** For looking: whoever only looks makes nothing. Throws `InvalidInputError` when there is none. */
  readonly openExisting: () => Promise<Stores>;
  /**
   * The queues beside it, in which processes hand work to one another; undefined for a file. Throws `InvalidInputError` for
   * keys that are none.
   */
  readonly openQueues: (() => Promise<Queues>) | undefined;
}

/** Throws `InvalidInputError` where the options name two stores, or an address that is none. */
export function storePlace(context: Pick<CliContext, "environment">, options: StoreOptions): StorePlace {
  const { environment } = context;
  const { store, redis, prefix } = options;
  if (store !== undefined && redis !== undefined) {
    throw new InvalidInputError("--store and --redis name two stores; give one of them");
  }
  if (store !== undefined && prefix !== undefined) {
    throw new InvalidInputError("--prefix is for --redis; it does not go with --store, which names a file");
  }
  const fromEnvironment = environment["TROUPE_REDIS"]?.trim() ?? "";
  if (redis !== undefined) return redisPlace(context, redisAddress(redis, "--redis"), "flag", prefix);
  if (store === undefined && fromEnvironment !== "") {
    return redisPlace(context, redisAddress(fromEnvironment, "TROUPE_REDIS"), "environment", prefix);
  }
  if (prefix !== undefined) {
    throw new InvalidInputError("--prefix is for Redis; give --redis too, or set TROUPE_REDIS");
  }
  return filePlace(store ?? defaultStorePath, fromEnvironment !== "");
}

/** `isNeeded`: without the words another store would be meant. */
function filePlace(path: string, isNeeded: boolean): StorePlace {
  return {
    name: path,
    words: path === defaultStorePath && !isNeeded ? [] : ["--store", path],
    remarks: [],
    open: async () => sqliteAt(fileToWorkIn(path)),
    openExisting: async () => sqliteAt(existingFile(path)),
    openQueues: undefined,
  };
}

function redisPlace(
  { environment }: Pick<CliContext, "environment">,
  address: RedisAddress,
  from: "flag" | "environment",
  prefix: string | undefined,
): StorePlace {
  const { shown, hasPassword } = address;
  const ofPrefix = prefix === undefined ? [] : ["--prefix", prefix];
  const isSecret = hasPassword && from === "environment";
  const open = async (): Promise<Stores> => {
    const { redisStores } = await import("../../stores/redis.ts");
    return redisStores(redisOptions(address, prefix));
  };
  return {
    name: prefix === undefined ? shown : `${shown} (prefix ${prefix})`,
    // Where the variable holds a password, an address without it would take its place.
    words: isSecret ? ofPrefix : ["--redis", shown, ...ofPrefix],
    remarks: isSecret
      ? [`(These commands find ${shown} by TROUPE_REDIS, which holds its password.)`]
      : hasPassword
        ? ["(The password is left out of these commands: add it to the address, or set TROUPE_REDIS in its place.)"]
        : [],
    open,
    openExisting: open,
    async openQueues() {
      const { bullmqQueues } = await import("../../queues/bullmq.ts");
      const queuePrefix = prefix === undefined ? undefined : `${prefix}queue:`;
      return bullmqQueues({ ...redisOptions(address, queuePrefix), secrets: queueSecrets(environment) });
    },
  };
}

async function sqliteAt(path: string): Promise<Stores> {
  const { sqliteStores } = await import("../../stores/sqlite.ts");
  return sqliteStores(path);
}

/** Opens, works, closes, whatever comes of it. A store that is away is named. */
export async function withStore<T>(
  place: StorePlace,
  how: "open" | "openExisting",
  work: (stores: Stores) => Promise<T>,
): Promise<T> {
  const stores = await place[how]();
  try {
    return await work(stores);
  } catch (error) {
    throw stores.kind === "redis" ? named(place, error) : error;
  } finally {
    await stores.close();
  }
}

/** The same with the queues beside it. Throws `InvalidInputError` for a file, which has none. */
export async function withQueues<T>(place: StorePlace, work: (queues: Queues) => Promise<T>): Promise<T> {
  if (place.openQueues === undefined) {
    throw new InvalidInputError("queues that outlive a process are in Redis: give --redis URL, or set TROUPE_REDIS");
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

function named({ name }: StorePlace, error: unknown): unknown {
  if (!(error instanceof StoreUnavailableError)) return error;
  return new StoreUnavailableError(`${name}: ${error.message}`, { details: error.details, cause: error });
}

/** The same stores for a runtime that closes what it was given, while somebody goes on using them. */
export function keptOpen(stores: Stores): Stores {
  return { ...stores, close: async () => {} };
}

/** Makes the file's folder where it is absent. */
function fileToWorkIn(path: string): string {
  if (path !== ":memory:") mkdirSync(dirname(resolve(path)), { recursive: true });
  return path;
}

/** Throws `InvalidInputError` when there is no such file. */
function existingFile(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile() === true) return path;
  throw new InvalidInputError(
    stats === undefined
      ? `there is no store at ${path}; give the path of one with --store, or start a job first`
      : `${path} is no file; give the path of a store with --store`,
  );
}

const secretsVariable = "TROUPE_QUEUE_SECRETS";

/** As queues take them; of shorter secrets they say so without the variable's name. */
const shortest = 16;

/**
 * The keys with which jobs are signed, `id:secret` with commas between them, the first one signs; undefined where there are
 * none. Throws `InvalidInputError` in words that show no secret.
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
    `${secretsVariable}: key ${index + 1} ${what}; it takes ID:SECRET, several with commas between them, for instance from \`openssl rand -hex 32\``,
  );
}

const DEFAULT_PORT = 6379;

/** Where Redis is, as a person has written it: one server, or several nodes of a cluster. */
interface RedisAddress {
  readonly urls: readonly [URL, ...URL[]];
  /** The same without what is secret. */
  readonly shown: string;
  readonly hasPassword: boolean;
}

/**
 * `redis://[[user]:password@]host[:port][/database]`, `rediss://` for TLS; of a cluster two or more, with commas between
 * them. Throws `InvalidInputError` for anything else, in words that do not show what it holds. `source`: who gave it.
 */
export function redisAddress(text: string, source: string): RedisAddress {
  const [first, ...others] = text.split(",").map((part) => urlOf(part.trim(), source));
  if (first === undefined) throw noAddress(source);
  const urls = [first, ...others] as const;
  if (others.some(({ protocol }) => protocol !== first.protocol)) {
    throw new InvalidInputError(
      `${source} names nodes of a cluster with redis:// and with rediss://; all take the same`,
    );
  }
  if (others.length > 0 && urls.some(({ pathname }) => !["", "/", "/0"].includes(pathname))) {
    throw new InvalidInputError(
      `${source} names a database of a cluster, which has only one; leave out what follows the /`,
    );
  }
  return {
    urls,
    shown: urls.map(withoutSecrets).join(","),
    hasPassword: urls.some((url) => withoutSecrets(url) !== url.href),
  };
}

/** Of a cluster all nodes take the user and the password of the first. */
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
    `${source} is no address of Redis; it takes redis://[[user]:password@]host[:port][/database] or rediss://…, of a cluster two or more nodes with commas between them`,
  );
}

/** What ioredis takes behind the question mark may be a password too. */
function withoutSecrets(url: URL): string {
  const shown = new URL(url.href);
  shown.password = "";
  const names = Array.from(shown.searchParams.keys());
  for (const name of names) {
    if (/pass|secret|token|auth/i.test(name)) shown.searchParams.delete(name);
  }
  return shown.href;
}
