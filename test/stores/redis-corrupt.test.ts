import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { CorruptRecordError } from "../../src/errors/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { messageOf, note } from "../contracts/entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "../contracts/names.ts";
import { approved, opening, requestOf } from "../contracts/request-fixtures.ts";
import { keyOf, Owner, openAgent } from "../contracts/stores-fixtures.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";

const artifact = { artifactId: "a1", name: "a", contentType: "text/plain", size: 1, createdAt: NOW, content: "x" };
const requestId = `${ROOT}#1:1:0:1`;

const readings: Record<string, (stores: Stores) => Promise<unknown>> = {
  record: (stores) => stores.readAgent(keyOf()),
  list: (stores) => stores.listAgents({ tenant: TENANT }),
  acquire: (stores) => stores.acquire(keyOf(), "here", 1000, NOW),
  openTurn: (stores) => stores.openTurn(keyOf(), { input: null, actorId: null, limits: null, ifBusy: "queue" }, NOW),
  journal: (stores) => stores.readJournal(keyOf(), 1),
  tree: (stores) => stores.readTree(TENANT, ROOT, 0, 10),
  messages: (stores) => stores.messages(keyOf()),
  message: (stores) => stores.messagesById(keyOf(), ["m1"]),
  artifacts: (stores) => stores.artifacts(keyOf()),
  artifact: (stores) => stores.artifact(keyOf(), "a1"),
  inbox: (stores) => stores.inbox(keyOf()),
  accounts: (stores) => stores.accounts(TENANT, ROOT),
  requests: (stores) => stores.requests({ tenant: TENANT }),
  request: (stores) => stores.request(keyOf(), requestId),
  decide: (stores) => stores.decide(keyOf(), requestId, approved, NOW),
  exportTree: (stores) => stores.exportTree(TENANT, ROOT),
  timers: (stores) => stores.dueTimers(NOW + 99, 10),
};

const replaced = (from: string, to: string) => (text: string) => text.replace(from, to);

describe.skipIf(!redisProgram)("a stored record that was tampered with (row S10)", () => {
  let server: RedisServer;
  let client: Redis;
  let prefix: string;
  let stores: Stores;
  beforeAll(async () => {
    server = await RedisServer.start();
    client = server.client();
  });
  afterAll(async () => {
    client.disconnect();
    await server.stop();
  });
  /** One agent that has a bit of everything. */
  beforeEach(async () => {
    prefix = ownPrefix();
    const before = storesOn(server, { prefix });
    const owner = await openAgent(before, { turnBudget: { deadline: NOW + 9 } });
    await owner.commit({ entries: [note("one")], messages: [messageOf("m1")], artifacts: [artifact] });
    await owner.commit(opening(requestOf(owner, 0)));
    await before.openTurn(keyOf(), { input: "go", actorId: null, limits: null, ifBusy: "refuse" }, NOW);
    await before.close();
    stores = storesOn(server, { prefix });
  });
  afterEach(() => stores.close());

  const keyTo = (part: string): string => `${prefix}{${TENANT}/${ROOT}}:${part}`;
  const change = async (part: string, field: string, edit: (text: string) => string): Promise<void> => {
    const text = await client.hget(keyTo(part), field);
    if (text === null) throw new Error(`there is no ${field} in ${part}`);
    expect(edit(text)).not.toBe(text);
    await client.hset(keyTo(part), field, edit(text));
  };
  const contents = async (): Promise<unknown> => {
    const keys = (await client.keys(`${prefix}*`)).filter((key) => !key.includes("hints") && !key.includes("receipt"));
    return Promise.all(keys.toSorted().map(async (key) => [key, (await client.dump(key))?.length]));
  };
  const row = (field: string, edit: (text: string) => string) => () => change("rows", field, edit);

  test.each<[string, () => Promise<unknown>, readonly string[]]>([
    [
      "a record that is no JSON",
      row(`a:${ROOT}`, (text) => text.slice(0, 40)),
      ["record", "list", "acquire", "openTurn"],
    ],
    ["a record without its version", row(`a:${ROOT}`, (text) => text.slice(text.indexOf("|"))), ["record", "openTurn"]],
    [
      "a record of a wrong type",
      row(`a:${ROOT}`, replaced('"turnCount":0', '"turnCount":"many"')),
      ["record", "openTurn"],
    ],
    [
      "another agent's record",
      row(`a:${ROOT}`, replaced('"agentId":"desk"', '"agentId":"other"')),
      ["record", "acquire"],
    ],
    ["a head of a wrong type", row(`h:${ROOT}`, replaced('"epoch":1', '"epoch":"first"')), ["acquire"]],
    ["an account of a wrong type", row(`$:turn:${TURN}`, replaced('"tokens":0', '"tokens":-5')), ["accounts"]],
    [
      "another request in the place of one",
      row(`r:4:${ROOT}${requestId}`, replaced(`"${requestId}"`, '"other"')),
      ["requests", "request", "decide"],
    ],
    [
      "a message of a wrong role",
      () => change(`messages:${ROOT}`, "m1", replaced('"user"', '"admin"')),
      ["messages", "message", "exportTree"],
    ],
    [
      "a message without its place",
      () => change(`messages:${ROOT}`, "m1", (text) => text.slice(1 + text.indexOf("|"))),
      ["messages"],
    ],
    [
      "an artifact that is no JSON",
      () => client.hset(keyTo(`artifacts:${ROOT}`), "a1", "1|{"),
      ["artifacts", "artifact"],
    ],
    ["an artifact without its content", () => client.del(keyTo(`contents:${ROOT}`)), ["artifact", "exportTree"]],
    [
      "an unknown inbox item",
      () => change(`inbox:${ROOT}`, `turn:${TURN}`, replaced('"kind":"turn"', '"kind":"grant"')),
      ["inbox"],
    ],
    [
      "a timer of a wrong type",
      () => client.hset(keyTo("timers"), `4:${ROOT}deadlineAt:turn:${TURN}`, "{}"),
      ["timers", "exportTree"],
    ],
    ["a journal with a gap", () => client.xdel(keyTo("journal"), "2-0"), ["journal"]],
    [
      "an unknown entry",
      async () => {
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
      async () => {
        await client.del(keyTo(`inbox:${ROOT}`));
        await client.set(keyTo(`inbox:${ROOT}`), "x");
      },
      ["inbox"],
    ],
  ])("is refused and left as it is: %s", async (_what, tamper, refused) => {
    await tamper();
    const before = await contents();
    for (const name of refused) {
      const failure = await readings[name]?.(stores).catch((error: unknown) => error);
      expect(failure, name).toBeInstanceOf(CorruptRecordError);
    }
    expect(await contents()).toEqual(before);
  });

  test("is named by its key, and does not hold up what does not need it", async () => {
    await row(`$:turn:${TURN}`, (text) => text.replace(/\|.*/, "|{}"))();
    const owner = await new Owner(stores, keyOf()).acquire();
    const moves = [{ type: "activity", accountId: `turn:${TURN}`, isActive: true } as const];
    const failed = owner.commit({ entries: [note("x")], moves });
    await expect(failed).rejects.toThrow(`account turn:${TURN} ($:turn:${TURN} of ${keyTo("rows")}) does not fit`);
    expect((await owner.commit({ entries: [note("fine")] })).entries).toHaveLength(1);
  });

  test("becomes nothing but data where it holds markers of classes and prototypes", async () => {
    const marked = '"metadata":{"__proto__":{"isAdmin":true},"constructor":{"name":"Agent"},"$class":"Agent"}';
    await row(`a:${ROOT}`, replaced('"metadata":{}', marked))();
    const record = await stores.readAgent(keyOf());
    expect(Object.getPrototypeOf(record?.metadata)).toBe(Object.prototype);
    expect(record?.metadata["isAdmin"]).toBeUndefined();
    expect(record?.metadata).toEqual({ constructor: { name: "Agent" }, $class: "Agent" });
    expect(({} as Record<string, unknown>)["isAdmin"]).toBeUndefined();
  });
});
