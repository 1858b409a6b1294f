import { expect, test } from "vitest";
import { turnIdOf, type TreeWebhooks, type Webhook } from "../../src/state/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { memoryStores } from "../../src/stores/memory.ts";
import { NOW, ROOT, TENANT } from "./names.ts";
import { here, openAgent } from "./stores-fixtures.ts";
import { exported, openTeam } from "./team-fixtures.ts";

function webhookOf(name: string, changes: Partial<Webhook> = {}): Webhook {
  return {
    surface: "a2a",
    turnId: turnIdOf(ROOT, 1),
    name,
    ownerId: "ann",
    url: "https://example.com/",
    sealed: null,
    details: { scheme: "Bearer" },
    createdAt: NOW,
    cursor: 0,
    told: null,
    failures: 0,
    retryAt: null,
    ...changes,
  };
}

function ofTree(revision: string, changes: Partial<TreeWebhooks> = {}): TreeWebhooks {
  const fields = { tenant: TENANT, rootAgentId: ROOT, dueAt: NOW, claim: null };
  return { ...fields, revision, webhooks: [webhookOf("one")], ...changes };
}

/** Endpoints that are notified of a tree's turns. */
export function webhooksContract(subject: () => Stores): void {
  const stored = async (): Promise<TreeWebhooks | undefined> => await subject().webhooks(TENANT, ROOT);
  const due = async (now: number, limit = 10): Promise<string[]> =>
    (await subject().dueWebhooks(TENANT, now, limit)).map(({ rootAgentId }) => rootAgentId);

  test("a tree has no webhooks at first, then those that were stored, and none of another tree or tenant", async () => {
    await openAgent(subject());
    await openAgent(subject(), { agentId: "other" });
    expect(await stored()).toBeUndefined();
    const webhooks = ofTree("r1", {
      claim: { by: "here", until: NOW + 5 },
      webhooks: [webhookOf("\ud800"), webhookOf("b")],
    });
    expect(await subject().putWebhooks(webhooks, null)).toBe(true);
    expect(await stored()).toEqual(webhooks);
    expect(await subject().webhooks(TENANT, "other")).toBeUndefined();
    expect(await subject().webhooks("other", ROOT)).toBeUndefined();
    expect(await subject().webhooks(TENANT, `${ROOT}~kid`)).toBeUndefined();
  });

  test("webhooks can be replaced only with their current version", async () => {
    await openAgent(subject());
    expect(await subject().putWebhooks(ofTree("r1"), "r0")).toBe(false);
    expect(await subject().putWebhooks(ofTree("r1"), null)).toBe(true);
    expect(await subject().putWebhooks(ofTree("r2"), null)).toBe(false);
    expect(await subject().putWebhooks(ofTree("r2"), "r1")).toBe(true);
    expect(await subject().putWebhooks(ofTree("r3"), "r1")).toBe(false);
    expect(await stored()).toEqual(ofTree("r2"));
  });

  test("of many concurrent replacements one wins", async () => {
    await openAgent(subject());
    await subject().putWebhooks(ofTree("r"), null);
    const names = Array.from({ length: 10 }, (_, index) => `r${index}`);
    const done = await Promise.all(names.map((name) => subject().putWebhooks(ofTree(name), "r")));
    expect(done.filter((one) => one)).toHaveLength(1);
    expect((await stored())?.revision).toBe(names[done.indexOf(true)]);
  });

  test("webhooks can be removed and stored again", async () => {
    await openAgent(subject());
    expect(await subject().putWebhooks(ofTree("r0", { webhooks: [] }), null)).toBe(true);
    await subject().putWebhooks(ofTree("r1"), null);
    expect(await subject().putWebhooks(ofTree("r2", { webhooks: [] }), "r1")).toBe(true);
    expect([await stored(), await due(NOW)]).toEqual([undefined, []]);
    expect(await subject().putWebhooks(ofTree("r3"), "r2")).toBe(false);
    expect(await subject().putWebhooks(ofTree("r3"), null)).toBe(true);
    expect(await due(NOW)).toEqual([ROOT]);
  });

  test("webhooks of a tree that does not exist are refused", async () => {
    await openTeam(subject());
    expect(await subject().putWebhooks(ofTree("r1", { rootAgentId: "unknown" }), null)).toBe(false);
    expect(await subject().putWebhooks(ofTree("r1", { rootAgentId: `${ROOT}~kid` }), null)).toBe(false);
    expect(await due(NOW)).toEqual([]);
  });

  test("due webhooks are returned in order, up to a limit, and later if they were postponed", async () => {
    const times: Readonly<Record<string, number>> = { a: NOW + 30, b: NOW + 10, c: NOW + 20 };
    for (const [agentId, dueAt] of Object.entries(times)) {
      await openAgent(subject(), { agentId });
      await subject().putWebhooks(ofTree("r1", { rootAgentId: agentId, dueAt }), null);
    }
    expect(await due(NOW + 9)).toEqual([]);
    expect(await due(NOW + 20)).toEqual(["b", "c"]);
    expect(await due(NOW + 30)).toEqual(["b", "c", "a"]);
    expect(await due(NOW + 30, 2)).toEqual(["b", "c"]);
    expect(await subject().dueWebhooks("other", NOW + 30, 10)).toEqual([]);
    await subject().putWebhooks(ofTree("r2", { rootAgentId: "b", dueAt: NOW + 40 }), "r1");
    expect(await due(NOW + 30)).toEqual(["c", "a"]);
    expect(await due(NOW + 39)).toEqual(["c", "a"]);
    expect(await due(NOW + 40)).toEqual(["c", "a", "b"]);
    await subject().putWebhooks(ofTree("r3", { rootAgentId: "b", dueAt: NOW + 5 }), "r2");
    expect(await due(NOW + 5)).toEqual(["b"]);
  });

  test("webhooks are not exported, and are kept when their tree is replaced", async () => {
    const source = memoryStores();
    await openTeam(source);
    await source.putWebhooks(ofTree("theirs"), null);
    const tree = await exported(source);
    expect(JSON.stringify(tree)).not.toContain("example.com");
    await openTeam(subject());
    await subject().putWebhooks(ofTree("r1"), null);
    await subject().importTree(tree, here.processId);
    expect([await stored(), await due(NOW)]).toEqual([ofTree("r1"), [ROOT]]);
    expect(await subject().putWebhooks(ofTree("r2"), "r1")).toBe(true);
  });
}
