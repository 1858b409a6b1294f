import { InvalidInputError, StoreUnavailableError } from "../../errors/index.ts";
import type { Queues } from "../../queues/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { CliContext } from "../cli-context.ts";
import { defaultStorePath } from "../options.ts";
import { existingFile, fileToWorkIn } from "./file-store.ts";
import { queueSecrets } from "./queue-secrets.ts";
import { type RedisAddress, redisAddress, redisOptions } from "./redis-address.ts";

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
