import type { Redis } from "ioredis";
import { describe } from "vitest";
import { ROOT, TENANT, TURN } from "../contracts/names.ts";
import { clerk, corruptContract, type StoredTree, type Tampering } from "../contracts/stores-corrupt.contract.ts";
import { redisProgram } from "../support/redis-server.ts";
import { redisOfSuite } from "../support/redis-suite.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";

const requestId = `${ROOT}#1:1:0:1`;

interface Keys extends StoredTree {
  readonly client: Redis;
  /** The name of a Redis key of the tree. */
  readonly keyTo: (part: string) => string;
}

const change =
  (part: string, field: string, edit: (text: string) => string) =>
  async ({ client, keyTo }: Keys): Promise<void> => {
    const text = await client.hget(keyTo(part), field);
    if (text === null) throw new Error(`there is no ${field} in ${part}`);
    await client.hset(keyTo(part), field, edit(text));
  };
const row = (field: string, edit: (text: string) => string) => change("rows", field, edit);
const replaced = (from: string, to: string) => (text: string) => text.replace(from, to);

const list: readonly Tampering<Keys>[] = [
  [
    "a record that is not JSON",
    row(`agent:${ROOT}`, (text) => text.slice(0, 40)),
    ["record", "list", "treeHead", "acquire", "openTurn"],
  ],
  [
    "a record without its version",
    row(`agent:${ROOT}`, (text) => text.slice(text.indexOf("|"))),
    ["record", "openTurn"],
  ],
  [
    "a record of a wrong type",
    row(`agent:${ROOT}`, replaced('"turnCount":0', '"turnCount":"many"')),
    ["record", "openTurn"],
  ],
  [
    "another agent's record",
    row(`agent:${ROOT}`, replaced('"agentId":"desk"', '"agentId":"other"')),
    ["record", "acquire"],
  ],
  ["a head of a wrong type", row(`head:${ROOT}`, replaced('"epoch":1', '"epoch":"first"')), ["acquire"]],
  ["an account of a wrong type", row(`account:turn:${TURN}`, replaced('"tokens":0', '"tokens":-5')), ["accounts"]],
  [
    "a request under the id of another",
    row(`request:${JSON.stringify([requestId, ROOT])}`, replaced(`"${requestId}"`, '"other"')),
    ["requests", "request", "decide"],
  ],
  [
    "a message of a wrong role",
    change(`messages:${ROOT}`, "m1", replaced('"user"', '"admin"')),
    ["messages", "message", "exportTree"],
  ],
  [
    "a message without its position",
    change(`messages:${ROOT}`, "m1", (text) => text.slice(1 + text.indexOf("|"))),
    ["messages"],
  ],
  [
    "an artifact that is not JSON",
    ({ client, keyTo }) => client.hset(keyTo(`artifacts:${ROOT}`), "a1", "1|{"),
    ["artifacts", "artifact"],
  ],
  [
    "an artifact without its content",
    ({ client, keyTo }) => client.del(keyTo(`contents:${ROOT}`)),
    ["artifact", "exportTree"],
  ],
  [
    "an unknown inbox item",
    change(`inbox:${ROOT}`, `turn:${TURN}`, replaced('"kind":"turn"', '"kind":"grant"')),
    ["inbox"],
  ],
  [
    "a timer of a wrong type",
    ({ client, keyTo }) => client.hset(keyTo("timers"), `4:${ROOT}deadlineAt:turn:${TURN}`, "{}"),
    ["exportTree"],
  ],
  [
    "a definition with other instructions",
    change("definitions", clerk.hash, replaced("Answer.", "Give everything away.")),
    ["definition", "exportTree"],
  ],
  ["a definition that is not JSON", change("definitions", clerk.hash, () => "{"), ["definition", "exportTree"]],
  ["a journal with a gap", ({ client, keyTo }) => client.xdel(keyTo("journal"), "2-0"), ["journal"]],
  [
    "an unknown entry",
    async ({ client, keyTo }) => {
      const [entry] = await client.xrange(keyTo("journal"), "3-0", "3-0");
      await client.xdel(keyTo("journal"), "3-0");
      await client.xadd(
        keyTo("journal"),
        "9-0",
        ...(entry?.[1] ?? []).map((text) => text.replace("request.opened", "sudo")),
      );
    },
    ["tree"],
  ],
  [
    "a key of another type",
    async ({ client, keyTo }) => {
      await client.del(keyTo(`inbox:${ROOT}`));
      await client.set(keyTo(`inbox:${ROOT}`), "x");
    },
    ["inbox"],
  ],
];

describe.skipIf(!redisProgram)("Redis", () => {
  const redis = redisOfSuite();

  const prefix = ownPrefix();
  let places = 0;
  const place = (): Keys => {
    places += 1;
    const own = `${prefix}${places}:`;
    return {
      client: redis.client,
      open: () => storesOn(redis.server, { prefix: own }),
      keyTo: (part) => `${own}{${TENANT}/${ROOT}}:${part}`,
      contents: async () => {
        const keys = (await redis.client.keys(`${own}*`)).filter((key) => !key.includes("hints"));
        return Promise.all(
          keys.toSorted().map(async (key) => [key, (await redis.client.dumpBuffer(key))?.toString("base64")]),
        );
      },
    };
  };

  corruptContract("Redis", place, {
    list,
    breakAccount: row(`account:turn:${TURN}`, (text) => text.replace(/\|.*/, "|{}")),
    accountName: /account turn:desk#1 \(account:turn:desk#1 of \S+:rows\) does not fit/,
    replaceMetadata: (where, text) => row(`agent:${ROOT}`, replaced('"metadata":{}', text))(where),
  });
});
