// BullMQ and ioredis are used only as documented: a release of either may change everything else.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));
const folders = ["src/queues", "src/redis", "src/stores/redis", "src/server", "src/runtime/work"];

function sources(folder: string): { readonly file: string; readonly text: string }[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => ({ file: `${folder}/${name}`, text: readFileSync(join(root, folder, name), "utf8") }));
}

/** Members that the declarations of ioredis mark as internal. */
function internalMembers(): string[] {
  const declarations = ["Redis.d.ts", "cluster/index.d.ts", "utils/Commander.d.ts"].map((name) =>
    readFileSync(join(root, "node_modules/ioredis/built", name), "utf8"),
  );
  return declarations.flatMap((text) =>
    [...text.matchAll(/@ignore\s*\*\/\s*(?:static |readonly )?(\w+)/g)].map(([, name = ""]) => name),
  );
}

describe("the packages of Redis", () => {
  test("no member of ioredis is used that it marks as internal", () => {
    const members = internalMembers().filter((name) => name !== "constructor");
    expect(members).toContain("stream");
    const used = new RegExp(
      `\\b(?:client|server|connection|redis)\\.(?:${members.join("|")})\\b|"(?:${members.join("|")})" in `,
    );
    const found = folders
      .flatMap(sources)
      .flatMap(({ file, text }) => (used.test(text) ? `${file}: ${used.exec(text)?.[0]}` : []));
    expect(found).toEqual([]);
  });

  test("commands that the queues send themselves use their own keys", () => {
    const sent = sources("src/queues").flatMap(({ file, text }) =>
      [...text.matchAll(/\bclient\s*\.(\w+)\(([^;]*?)[,)]/g)].map(([, name, key]) => `${file} ${name} ${key}`),
    );
    const connecting = new Set(["duplicate"]);
    expect(sent.filter((one) => !connecting.has(one.split(" ")[1] ?? "")).toSorted()).toEqual([
      // Their keys follow the script: `#ownKey`.
      "src/queues/bullmq-redis.ts eval COUNT",
      "src/queues/bullmq-redis.ts eval ENTER",
      "src/queues/bullmq-redis.ts mget keys",
      "src/queues/bullmq-redis.ts sadd this.#namesKey",
      "src/queues/bullmq-redis.ts set this.#stopKey(queue",
      "src/queues/bullmq-redis.ts smembers this.#namesKey",
      "src/queues/bullmq-redis.ts zadd this.#canaries",
      "src/queues/bullmq-redis.ts zrangebyscore this.#canaries",
      "src/queues/bullmq-redis.ts zrem this.#canaries",
      "src/queues/bullmq-redis.ts zrem this.#ownKey(queue",
    ]);
  });

  test("no key of the queues is one that BullMQ creates", () => {
    // BullMQ's keys are PREFIX:QUEUE:…, and the prefix of a queue is in braces.
    const [definition = ""] = /#ownKey\(queue: string[\s\S]*?\n {2}\}/.exec(
      readFileSync(join(root, "src/queues/bullmq-redis.ts"), "utf8"),
    ) ?? [""];
    expect(definition).toContain("return `${this.#prefixOf(queue)}-troupe:${part}`;");
  });
});
