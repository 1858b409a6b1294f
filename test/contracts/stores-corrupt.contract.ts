import { describe, expect, test } from "vitest";
import { CorruptRecordError } from "../../src/errors/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { storedDefinition } from "./definition-fixtures.ts";
import { messageOf, note } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT } from "./names.ts";
import { approved, opening, requestOf } from "./request-fixtures.ts";
import { agentKey, Owner, openAgent } from "./stores-fixtures.ts";

const artifact = {
  artifactId: "a1",
  name: "a",
  contentType: "text/plain",
  size: 1,
  createdAt: NOW,
  turnId: null,
  callId: null,
  content: "x",
};
export const clerk = storedDefinition();
const requestId = `${ROOT}#1:1:0:1`;

const readings = {
  record: (stores) => stores.readAgent(agentKey()),
  list: (stores) => stores.listAgents({ tenant: TENANT }),
  acquire: (stores) => stores.acquire(agentKey(), "here", 1000, NOW),
  openTurn: (stores) => stores.openTurn(agentKey(), { input: null, actorId: null, limits: null, ifBusy: "queue" }, NOW),
  journal: (stores) => stores.readJournal(agentKey(), 1),
  tree: (stores) => stores.readTree(TENANT, ROOT, 0, 10),
  messages: (stores) => stores.messages(agentKey()),
  message: (stores) => stores.messagesById(agentKey(), ["m1"]),
  artifacts: (stores) => stores.artifacts(agentKey()),
  artifact: (stores) => stores.artifact(agentKey(), "a1"),
  inbox: (stores) => stores.inbox(agentKey()),
  accounts: (stores) => stores.accounts(TENANT, ROOT),
  requests: (stores) => stores.requests({ tenant: TENANT }),
  request: (stores) => stores.request(agentKey(), requestId),
  decide: (stores) => stores.decide(agentKey(), requestId, approved, NOW),
  exportTree: (stores) => stores.exportTree(TENANT, ROOT),
  treeActivity: (stores) => stores.treeActivity(TENANT, ROOT),
  treeHead: (stores) => stores.treeHead(TENANT, ROOT),
  definition: (stores) => stores.definition(TENANT, ROOT, clerk.hash),
} satisfies Record<string, (stores: Stores) => Promise<unknown>>;

export type Reading = keyof typeof readings;

/** A storage that tests can modify without the stores. */
export interface StoredTree {
  /** Opens new stores on it, with empty caches. */
  open(): Stores;
  /** All stored data. */
  contents(): Promise<unknown>;
}

/** A modification, and the reads that must fail after it. */
export type Tampering<P extends StoredTree> = readonly [
  what: string,
  tamper: (stored: P) => Promise<unknown>,
  refused: readonly Reading[],
];

export interface Tamperings<P extends StoredTree> {
  readonly list: readonly Tampering<P>[];
  /** Replaces the turn's account by `{}`. */
  readonly breakAccount: (stored: P) => Promise<unknown>;
  /** The name of the broken account in the error. */
  readonly accountName: RegExp;
  /** Puts this in place of the record's `"metadata":{}`. */
  readonly replaceMetadata: (stored: P, text: string) => Promise<unknown>;
}

/** Stores one agent with every kind of record. */
async function fill(stores: Stores): Promise<void> {
  const owner = await openAgent(stores, { turnBudget: { deadline: NOW + 9 } });
  await owner.commit({ entries: [note("one")], messages: [messageOf("m1")], artifacts: [artifact], definition: clerk });
  await owner.commit(opening(requestOf(owner, 0)));
  await stores.openTurn(agentKey(), { input: "go", actorId: null, limits: null, ifBusy: "refuse" }, NOW);
  await stores.close();
}

/** Row S10. */
export function corruptContract<P extends StoredTree>(title: string, make: () => P, tamperings: Tamperings<P>): void {
  const filled = async (): Promise<P> => {
    const stored = make();
    await fill(stored.open());
    return stored;
  };

  describe(`a stored record of ${title} that was tampered with (row S10)`, () => {
    test.each(tamperings.list)("is refused and left unchanged: %s", async (_what, tamper, refused) => {
      const stored = await filled();
      const untouched = await stored.contents();
      await tamper(stored);
      const before = await stored.contents();
      expect(before).not.toEqual(untouched);
      const stores = stored.open();
      for (const name of refused) {
        const failure = await readings[name](stores).catch((error: unknown) => error);
        expect(failure, name).toBeInstanceOf(CorruptRecordError);
      }
      await stores.close();
      expect(await stored.contents()).toEqual(before);
    });

    test("is named in the error, and does not block operations that do not need it", async () => {
      const stored = await filled();
      await tamperings.breakAccount(stored);
      const stores = stored.open();
      const owner = await new Owner(stores, agentKey()).acquire();
      const moves = [{ type: "activity", accountId: `turn:${ROOT}#1`, isActive: true } as const];
      const failed = owner.commit({ entries: [note("x")], moves });
      await expect(failed).rejects.toThrow(tamperings.accountName);
      expect((await owner.commit({ entries: [note("fine")] })).entries).toHaveLength(1);
      await stores.close();
    });

    test("is read as plain data even if it holds markers of classes and prototypes", async () => {
      const stored = await filled();
      const marked = '"metadata":{"__proto__":{"isAdmin":true},"constructor":{"name":"Agent"},"$class":"Agent"}';
      await tamperings.replaceMetadata(stored, marked);
      const stores = stored.open();
      const record = await stores.readAgent(agentKey());
      await stores.close();
      expect(Object.getPrototypeOf(record?.metadata)).toBe(Object.prototype);
      expect(record?.metadata["isAdmin"]).toBeUndefined();
      expect(record?.metadata).toEqual({ constructor: { name: "Agent" }, $class: "Agent" });
      expect(({} as Record<string, unknown>)["isAdmin"]).toBeUndefined();
    });
  });
}
