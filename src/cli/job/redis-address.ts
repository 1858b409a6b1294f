import { InvalidInputError } from "../../errors/index.ts";
import type { RedisStoresOptions } from "../../stores/redis.ts";

const DEFAULT_PORT = 6379;

/** Where Redis is, as a person has written it: one server, or several nodes of a cluster. */
export interface RedisAddress {
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
