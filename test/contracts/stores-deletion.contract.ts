import { expect, test } from "vitest";
import { AgentDeletedError, InvalidInputError } from "../../src/errors/index.ts";
import { turnIdOf } from "../../src/state/index.ts";
import { deletedIdHash, type DeleteConditions, type PendingDeletion, type Stores } from "../../src/stores/index.ts";
import { storedDefinition } from "./definition-fixtures.ts";
import { note } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT } from "./names.ts";
import { accountOf, agentKey, here, identityOf, Owner, openAgent } from "./stores-fixtures.ts";
import { exported, openTeam } from "./team-fixtures.ts";

const counts = { agents: 1, turns: 0, entries: 0, messages: 0, artifacts: 0, requests: 0 };

export function deletionOf(agentId: string = ROOT, tenant: string = TENANT, deletedAt: number = NOW): PendingDeletion {
  return {
    tenant,
    idHash: deletedIdHash(tenant, agentId),
    deletedAt,
    by: "ann",
    reason: "request",
    counts,
    used: { tokens: 1, costMicros: 2, toolCalls: 3 },
    head: null,
    links: null,
    pending: { rootAgentId: agentId, agentIds: [agentId] },
  };
}

/** Trees that are deleted with everything that belongs to them. */
export function deletionContract(subject: () => Stores): void {
  const all = Number.MAX_SAFE_INTEGER;
  const times = async (more: { since?: number; limit?: number }): Promise<number[]> =>
    (await subject().deletions({ tenant: TENANT, ...more })).map(({ deletedAt }) => deletedAt);
  const deleted = async (conditions?: DeleteConditions) => await subject().deleteTree(deletionOf(), conditions);

  test("a deleted tree is in no list and no read, and another tree stays as it was", async () => {
    await openTeam(subject());
    await openAgent(subject(), { agentId: "other" });
    await subject().moveProjection(TENANT, "search", ROOT, 3);
    const other = await subject().exportTree(TENANT, "other");
    expect(await deleted()).toEqual({ type: "deleted" });
    expect(await subject().exportTree(TENANT, ROOT)).toBeUndefined();
    expect(await subject().readAgent(agentKey())).toBeUndefined();
    expect(await subject().readAgent(agentKey(`${ROOT}~kid`))).toBeUndefined();
    expect((await subject().listAgents({ tenant: TENANT })).map(({ agentId }) => agentId)).toEqual(["other"]);
    const newest = { tenant: TENANT, rootsOnly: true, order: "newest" } as const;
    expect((await subject().listAgents(newest)).map(({ agentId }) => agentId)).toEqual(["other"]);
    expect(await subject().turns({ tenant: TENANT, agentId: ROOT })).toEqual([]);
    expect(await subject().requests({ tenant: TENANT })).toEqual([]);
    expect(await subject().accounts(TENANT, ROOT)).toEqual([]);
    expect(await subject().readTree(TENANT, ROOT, 0, all)).toEqual([]);
    expect(await subject().messages(agentKey())).toEqual([]);
    expect(await subject().artifacts(agentKey())).toEqual([]);
    expect(await subject().inbox(agentKey())).toEqual([]);
    expect(await subject().dueTimers(all, 10)).toEqual([]);
    expect(await subject().definition(TENANT, ROOT, "h1")).toBeUndefined();
    expect(await subject().projectionCursor(TENANT, "search", ROOT)).toBe(0);
    expect(await subject().dueWebhooks(TENANT, all, 10)).toEqual([]);
    expect(await subject().exportTree(TENANT, "other")).toEqual(other);
  });

  test("an owner of a deleted tree cannot write, and nothing comes back", async () => {
    const { root } = await openTeam(subject());
    const before = await subject().lookAtTurn(agentKey(), turnIdOf(ROOT, 1));
    expect(before).toBeDefined();
    await deleted();
    const [outcome] = await subject().commit([root.batch({ entries: [note("late")] })], NOW);
    expect(outcome?.type).toBe("stale");
    expect(await subject().release(agentKey(), root.epoch)).toBe(false);
    expect(await subject().moveProjection(TENANT, "search", ROOT, 3)).toBe(false);
    expect(await subject().putWebhooks(webhooks, null)).toBe(false);
    expect(await subject().openTurn(agentKey(), turn, NOW)).toEqual({ type: "notFound" });
    expect(await subject().abort(agentKey(), { ...abort, turnId: null }, NOW)).toEqual({ type: "notFound" });
    await subject().wantLease(agentKey(), NOW);
    const child = identityOf(`${ROOT}~late`, { rootAgentId: ROOT, parentAgentId: ROOT });
    await expect(subject().createAgent(child, accountOf("agent:late"))).rejects.toThrow(AgentDeletedError);
    expect(await subject().listAgents({ tenant: TENANT })).toEqual([]);
    expect(await subject().accounts(TENANT, ROOT)).toEqual([]);
  });

  test("the id of a deleted tree can neither be created nor imported, in its tenant", async () => {
    await openTeam(subject());
    const tree = await exported(subject());
    await deleted();
    await expect(subject().createAgent(identityOf(), null)).rejects.toThrow(AgentDeletedError);
    await subject().finishDeletion(deletionOf());
    await expect(subject().createAgent(identityOf(), null)).rejects.toThrow(
      `agent "${ROOT}" was deleted at ${new Date(NOW).toISOString()}; its id cannot be used again, choose another`,
    );
    await expect(subject().importTree(tree, here.processId)).rejects.toThrow(AgentDeletedError);
    const { created } = await subject().createAgent(identityOf(ROOT, { tenant: "other" }), null);
    expect(created).toBe(true);
  });

  test("the deletion stays, as pending until it is finished, and without ids afterwards", async () => {
    await openTeam(subject());
    expect(await subject().deletion(TENANT, ROOT)).toBeUndefined();
    await deleted();
    expect(await subject().deletion(TENANT, ROOT)).toEqual(deletionOf());
    expect(await subject().deletions({ tenant: TENANT, isPending: true })).toEqual([deletionOf()]);
    await subject().finishDeletion(deletionOf());
    const { pending: _pending, ...finished } = deletionOf();
    expect(await subject().deletion(TENANT, ROOT)).toEqual(finished);
    expect(await subject().deletions({ tenant: TENANT, isPending: true })).toEqual([]);
    expect(await subject().deletion("other", ROOT)).toBeUndefined();
    await subject().finishDeletion(deletionOf());
    expect(await subject().deletions({ tenant: TENANT })).toEqual([finished]);
    expect(JSON.stringify(await subject().deletions({ tenant: TENANT }))).not.toContain(`"${ROOT}"`);
  });

  test("deletions are listed by time, from a time on", async () => {
    for (const [index, agentId] of ["a", "b", "c"].entries()) {
      await openAgent(subject(), { agentId });
      await subject().deleteTree(deletionOf(agentId, TENANT, NOW + 10 - index));
    }
    expect(await times({})).toEqual([NOW + 8, NOW + 9, NOW + 10]);
    expect(await times({ since: NOW + 9 })).toEqual([NOW + 9, NOW + 10]);
    expect(await times({ limit: 1 })).toEqual([NOW + 8]);
  });

  test("a condition that is not met changes nothing and leaves no deletion", async () => {
    await openTeam(subject());
    const tree = await exported(subject());
    const entries = tree.agents.reduce((sum, { seq }) => sum + seq, 0);
    await subject().openTurn(agentKey(), turn, NOW);
    const before = await exported(subject());
    expect(await deleted({ isAtRest: true })).toMatchObject({ type: "busy", agentId: ROOT });
    expect(await deleted({ entries: entries + 1 })).toEqual({ type: "changed" });
    expect(await deleted({ unusedSince: NOW })).toEqual({ type: "used" });
    expect(await exported(subject())).toEqual(before);
    expect(await subject().deletions({ tenant: TENANT })).toEqual([]);
    expect(await deleted({ entries })).toEqual({ type: "deleted" });
    expect(await deleted()).toEqual({ type: "absent" });
  });

  test("a tree with an open request is in use", async () => {
    await openTeam(subject());
    expect(await deleted({ unusedSince: all })).toEqual({ type: "used" });
    await openAgent(subject(), { agentId: "idle" });
    expect(await subject().deleteTree(deletionOf("idle"), { unusedSince: NOW + 1 })).toEqual({ type: "deleted" });
  });

  test("a definition stays as long as a tree of the tenant uses it", async () => {
    const stored = storedDefinition();
    for (const agentId of ["a", "b"]) await subject().createAgent(identityOf(agentId), null, { definition: stored });
    await subject().deleteTree(deletionOf("a"));
    expect(await subject().definition(TENANT, "b", stored.hash)).toEqual(stored);
    await subject().deleteTree(deletionOf("b"));
    await subject().createAgent(identityOf("c"), null, { definition: stored });
    expect(await subject().definition(TENANT, "c", stored.hash)).toEqual(stored);
  });

  test("a deletion of a subagent, or with another hash, is refused", async () => {
    await openTeam(subject());
    await expect(subject().deleteTree(deletionOf(`${ROOT}~kid`))).rejects.toThrow(InvalidInputError);
    await expect(subject().deleteTree({ ...deletionOf(), idHash: "abc" })).rejects.toThrow(InvalidInputError);
    expect(await new Owner(subject(), agentKey()).acquire()).toBeDefined();
  });
}

const webhooks = { tenant: TENANT, rootAgentId: ROOT, revision: "r1", dueAt: NOW, claim: null, webhooks: [] };
const turn = { input: "go", actorId: null, limits: null, ifBusy: "queue" } as const;
const abort = { by: "ann", reason: "over", stopReason: "user_requested" } as const;
