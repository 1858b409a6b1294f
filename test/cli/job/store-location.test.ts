import { describe, expect, test } from "vitest";
import { redisAddress, redisOptions, type StoreOptions, storeLocation } from "../../../src/cli/job/store-location.ts";

const url = "redis://127.0.0.1:6379/2";
const postgres = "postgres://troupe@db:5432/agents?schema=staff";
const secretUrl = "redis://app:hunter2@127.0.0.1:6379/2";

function place(options: StoreOptions, redis?: string) {
  return storeLocation({ environment: { TROUPE_REDIS: redis } }, options);
}

describe("the selected store, and its name in output", () => {
  test.each<[string, StoreOptions, string | undefined, string, readonly string[]]>([
    ["no option: the default file", {}, undefined, "./.troupe/ask.db", []],
    ["an empty variable counts as unset", {}, " ", "./.troupe/ask.db", []],
    ["a file", { store: "jobs.db" }, undefined, "jobs.db", ["--store", "jobs.db"]],
    ["a file overrides the variable", { store: "jobs.db" }, url, "jobs.db", ["--store", "jobs.db"]],
    [
      "the default file does too",
      { store: "./.troupe/ask.db" },
      url,
      "./.troupe/ask.db",
      ["--store", "./.troupe/ask.db"],
    ],
    ["a URL", { redis: url }, undefined, url, ["--redis", url]],
    ["a URL overrides the variable", { redis: "redis://b" }, url, "redis://b", ["--redis", "redis://b"]],
    ["the variable", {}, url, url, ["--redis", url]],
    ["a prefix", { redis: url, prefix: "t:" }, undefined, `${url} (prefix t:)`, ["--redis", url, "--prefix", "t:"]],
    ["Postgres", { store: postgres }, undefined, postgres, ["--store", postgres]],
    [
      "Postgres, with queues in Redis",
      { store: postgres, redis: url },
      undefined,
      postgres,
      ["--store", postgres, "--redis", url],
    ],
    [
      "Postgres, with queues in the variable's Redis",
      { store: postgres },
      url,
      postgres,
      ["--store", postgres, "--redis", url],
    ],
    ["a prefix next to the variable", { prefix: "t:" }, url, `${url} (prefix t:)`, ["--redis", url, "--prefix", "t:"]],
  ])("%s", (_what, options, variable, name, words) => {
    expect(place(options, variable)).toMatchObject({ name, words, remarks: [] });
  });

  test("a password is in no output and no name, and its omission is mentioned", () => {
    const typed = place({ redis: secretUrl });
    expect(typed).toMatchObject({
      name: "redis://app@127.0.0.1:6379/2",
      words: ["--redis", "redis://app@127.0.0.1:6379/2"],
    });
    expect(typed.remarks).toEqual([expect.stringContaining("The password is left out")]);
    // The URL without it would override the variable, which contains the password.
    const known = place({ prefix: "t:" }, secretUrl);
    expect(known).toMatchObject({ name: "redis://app@127.0.0.1:6379/2 (prefix t:)", words: ["--prefix", "t:"] });
    expect(known.remarks).toEqual([expect.stringContaining("TROUPE_REDIS, which contains its password")]);
    expect(JSON.stringify([typed, known])).not.toContain("hunter2");
    expect(JSON.stringify(place({ redis: "redis://h?password=hunter2&family=6" }))).not.toContain("hunter2");
    expect(place({ redis: "redis://h?password=hunter2&family=6" }).words[1]).toBe("redis://h?family=6");
  });

  test("what servers share needs a Redis beside Postgres; queues do not", () => {
    expect(place({ store: postgres })).toMatchObject({ openQueues: expect.any(Function), openSharing: undefined });
    const { openQueues, openSharing } = place({ store: postgres }, url);
    expect([openQueues, openSharing]).toEqual([expect.any(Function), expect.any(Function)]);
  });

  test("the password of Postgres is in no output", () => {
    const typed = place({ store: "postgres://app:hunter2@db/agents?sslpassword=hunter2&sslmode=verify-full" });
    expect(typed.words).toEqual(["--store", "postgres://app@db/agents?sslmode=verify-full"]);
    expect(typed.remarks).toEqual([expect.stringContaining("set PGPASSWORD instead")]);
    expect(JSON.stringify(typed)).not.toContain("hunter2");
  });

  test.each<[StoreOptions, string | undefined, RegExp]>([
    [
      { store: postgres, prefix: "b" },
      undefined,
      /--prefix is the prefix of keys in Redis; name the schema in Postgres with \?schema=NAME/,
    ],
    [{ store: "file:jobs.db?mode=ro" }, undefined, /is a URL; give the path of the file itself: jobs\.db$/],
    [{ store: " " }, undefined, /is not a path/],
    [{ store: "a", redis: url }, undefined, /--store and --redis/],
    [{ store: "a", prefix: "b" }, undefined, /--prefix requires --redis; it cannot be combined with --store/],
    [{ store: "a", prefix: "b" }, url, /--prefix requires --redis; it cannot be combined with --store/],
    [{ prefix: "b" }, undefined, /--prefix requires Redis; give --redis, or set TROUPE_REDIS/],
    [{ redis: "http://app:hunter2@h" }, undefined, /^--redis: invalid Redis URL; expected redis:/],
    [{ redis: "hunter2" }, undefined, /^--redis: invalid Redis URL/],
    [{ redis: `${secretUrl},` }, undefined, /^--redis: invalid Redis URL/],
    [{ redis: "redis://a,rediss://b" }, undefined, /redis:\/\/ and with rediss:/],
    [{ redis: "redis://a,redis://b/3" }, undefined, /database of a cluster/],
    [{}, "hunter2", /^TROUPE_REDIS: invalid Redis URL/],
  ])("%j with the variable %s is refused, and no password is shown", (options, variable, message) => {
    expect(() => place(options, variable)).toThrow(message);
    expect(() => place(options, variable)).not.toThrow(/hunter2/);
  });
});

test("several nodes are a cluster, with the user, password and TLS of the first", () => {
  const address = redisAddress("rediss://app:p%40ss@a:7000, rediss://[::1]", "--redis");
  expect(address.shown).toBe("rediss://app@a:7000,rediss://[::1]");
  expect(redisOptions(address, "t:")).toEqual({
    prefix: "t:",
    cluster: {
      nodes: [
        { host: "a", port: 7000 },
        { host: "::1", port: 6379 },
      ],
      options: { redisOptions: { username: "app", password: "p@ss", tls: {} } },
    },
  });
  expect(redisOptions(redisAddress(secretUrl, "--redis"), undefined)).toEqual({ url: secretUrl, prefix: undefined });
});
