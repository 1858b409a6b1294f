import { expect, test } from "vitest";
import { InvalidInputError, InvariantError } from "../../src/errors/index.ts";
import type { AgentRequest } from "../../src/state/index.ts";
import type { RequestFilter, Stores } from "../../src/stores/index.ts";
import { note } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { approved, opening, requestOf } from "./request-fixtures.ts";
import { identityOf, agentKey, openAgent } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

const far = Number.MAX_SAFE_INTEGER;

export function requestsContract(subject: () => Stores): void {
  const ids = async (filter: Partial<RequestFilter> = {}): Promise<string[]> =>
    (await subject().requests({ tenant: TENANT, ...filter })).map((request) => request.requestId);
  const statusOf = async ({ agentId, tenant, requestId }: AgentRequest): Promise<string | undefined> =>
    (await subject().request({ tenant, agentId }, requestId))?.status;

  test("a committed request reads back as it was opened, and has no timer without an expiry", async () => {
    const owner = await openAgent(subject());
    const request = requestOf(owner, 0, {
      arguments: { text: "a\0b \ud800", list: [1, null] },
      sessionless: 1,
    } as object);
    const { timers } = await owner.commit(opening(request));
    expect(timers).toEqual([]);
    const { sessionless: _unknown, ...known } = request as AgentRequest & { sessionless?: number };
    expect(await subject().request(agentKey(), request.requestId)).toMatchObject(known);
    expect(await ids()).toEqual([request.requestId]);
    expect(await subject().nextTimerAt()).toBeUndefined();
  });

  test("active agents are returned with the open requests, and none for an idle tree", async () => {
    const owner = await openAgent(subject());
    const kid = await openChild(owner, "kid");
    expect(await subject().treeActivity(TENANT, ROOT)).toBeUndefined();
    const request = requestOf(kid, 0);
    await kid.commit(opening(request));
    await subject().openTurn(agentKey(), { input: "go", actorId: null, limits: null, ifBusy: "refuse" }, NOW);
    const activity = await subject().treeActivity(TENANT, ROOT);
    expect(activity?.openRequests).toEqual([request]);
    expect(activity?.agents).toEqual(await subject().listAgents({ tenant: TENANT, rootAgentId: ROOT }));
    expect(activity?.accounts).toEqual(await subject().accounts(TENANT, ROOT));
    expect(activity?.inboxes.get(ROOT)).toEqual(await subject().inbox(agentKey()));
    expect(await subject().treeActivity("another", ROOT)).toBeUndefined();
    await subject().decide(kid.key, request.requestId, approved, NOW);
    expect(await subject().treeActivity(TENANT, ROOT)).toBeUndefined();
  });

  test("the head of a tree contains its agents, accounts and open requests, and the cursor of its last row", async () => {
    expect(await subject().treeHead(TENANT, ROOT)).toBeUndefined();
    const owner = await openAgent(subject());
    const kid = await openChild(owner, "kid");
    await openAgent(subject(), { agentId: "other" });
    const lastCursor = async () => (await subject().readTree(TENANT, ROOT, 0, 100)).at(-1)?.cursor ?? 0;
    const request = requestOf(kid, 0);
    await kid.commit(opening(request, requestOf(kid, 1)));
    await subject().decide(kid.key, requestOf(kid, 1).requestId, approved, NOW);
    const head = await subject().treeHead(TENANT, ROOT);
    expect(head?.cursor).toBe(await lastCursor());
    expect(head?.openRequests).toEqual([request]);
    expect(head?.agents).toEqual(await subject().listAgents({ tenant: TENANT, rootAgentId: ROOT }));
    expect(head?.accounts).toEqual(await subject().accounts(TENANT, ROOT));
    expect(await subject().treeHead(TENANT, kid.key.agentId)).toBeUndefined();
    expect(await subject().treeHead("another", ROOT)).toBeUndefined();
    await owner.commit({ acknowledged: [] });
    expect((await subject().treeHead(TENANT, ROOT))?.cursor).toBe(head?.cursor);
    const { cursor } = await owner.commit({ entries: [note("more")] });
    expect((await subject().treeHead(TENANT, ROOT))?.cursor).toBe(cursor);
  });

  test("a tree without a row has a head with cursor 0", async () => {
    await subject().createAgent(identityOf(), null);
    expect(await subject().treeHead(TENANT, ROOT)).toMatchObject({ cursor: 0, accounts: [], openRequests: [] });
  });

  test("a request with an expiry sets its timer, which the commit returns", async () => {
    const owner = await openAgent(subject());
    const request = requestOf(owner, 0, { expiresAt: NOW + 500 });
    const timer = {
      kind: "request",
      tenant: TENANT,
      agentId: ROOT,
      id: `request:${request.requestId}`,
      dueAt: NOW + 500,
      requestId: request.requestId,
    };
    expect((await owner.commit(opening(request))).timers).toEqual([timer]);
    expect(await subject().nextTimerAt()).toBe(NOW + 500);
    expect(await subject().dueTimers(NOW + 500, 10)).toEqual([timer]);
  });

  test("opening a stored request changes nothing, also after it was decided", async () => {
    const owner = await openAgent(subject());
    const request = requestOf(owner, 0);
    await owner.commit(opening(request));
    const again = { ...request, prompt: "changed", expiresAt: NOW + 9 };
    expect((await owner.commit(opening(again))).timers).toEqual([]);
    expect(await subject().request(agentKey(), request.requestId)).toEqual(request);
    const decided = await subject().decide(agentKey(), request.requestId, approved, NOW);
    await owner.commit(opening(again));
    expect(decided).toMatchObject({ request: await subject().request(agentKey(), request.requestId) });
    expect(await subject().nextTimerAt()).toBeUndefined();
  });

  test("a commit closes requests that its turn no longer needs and removes the timer; decided ones stay decided", async () => {
    const owner = await openAgent(subject());
    const [first, second, third] = [0, 1, 2].map((index) => requestOf(owner, index, { expiresAt: NOW + 500 + index }));
    if (!first || !second || !third) throw new Error("three requests were made");
    await owner.commit(opening(first, second, third));
    await subject().decide(agentKey(), second.requestId, approved, NOW);
    const closedRequests = [first.requestId, second.requestId, "unknown"];
    await owner.commit({ entries: [note("goes on")], closedRequests });
    expect(await Promise.all([first, second, third].map(statusOf))).toEqual(["closed", "decided", "open"]);
    expect(await subject().request(agentKey(), first.requestId)).toMatchObject({ decision: null, decidedAt: null });
    expect(await subject().dueTimers(far, 10)).toMatchObject([{ requestId: third.requestId }]);
  });

  test("the end of a turn closes its open requests, and those of no other turn or agent; all stay readable", async () => {
    const owner = await openAgent(subject());
    const child = await openChild(owner, "kid");
    const command = { input: "go", actorId: null, limits: null, ifBusy: "queue" } as const;
    for (let count = 0; count < 2; count += 1) await subject().openTurn(agentKey(), command, NOW);
    const open = requestOf(owner, 0, { expiresAt: NOW + 5 });
    const decided = requestOf(owner, 1);
    const ofNext = requestOf(owner, 0, { turnId: `${ROOT}#2` });
    const ofChild = requestOf(child, 0);
    await owner.commit(opening(open, decided, ofNext));
    await child.commit(opening(ofChild));
    await subject().decide(agentKey(), decided.requestId, approved, NOW);
    await owner.commit({ entries: [note("ended")], closedTurnId: TURN });
    expect(await Promise.all([open, decided, ofNext, ofChild].map(statusOf))).toEqual([
      "closed",
      "decided",
      "open",
      "open",
    ]);
    expect(await subject().nextTimerAt()).toBeUndefined();
    await owner.commit({ entries: [note("ended")], closedTurnId: `${ROOT}#2` });
    expect(await statusOf(ofNext)).toBe("closed");
    expect(await ids({ turnId: TURN })).toEqual([open.requestId, decided.requestId]);
  });

  test("a batch that opens a request and ends its turn leaves it closed and without a timer", async () => {
    const owner = await openAgent(subject());
    const request = requestOf(owner, 0, { expiresAt: NOW + 5 });
    expect((await owner.commit({ ...opening(request), closedTurnId: TURN })).timers).toEqual([]);
    expect(await statusOf(request)).toBe("closed");
    expect(await subject().nextTimerAt()).toBeUndefined();
  });

  test("a batch that is rolled back opens and closes nothing", async () => {
    const owner = await openAgent(subject());
    const [open, fresh] = [requestOf(owner, 0), requestOf(owner, 1, { expiresAt: NOW + 5 })];
    await owner.commit(opening(open));
    const lost = { agentId: "nobody", item: { kind: "budget.freed", key: "k", at: NOW } } as const;
    const parts = { ...opening(fresh), closedRequests: [open.requestId], posts: [lost] };
    await expect(owner.commit(parts)).rejects.toThrow(/nobody/);
    expect(await statusOf(open)).toBe("open");
    expect(await statusOf(fresh)).toBeUndefined();
    expect(await subject().nextTimerAt()).toBeUndefined();
    await owner.commit({ entries: [note("ended")], closedTurnId: TURN });
    expect(await statusOf(open)).toBe("closed");
  });

  test("a batch can only open requests of its own agent", async () => {
    const owner = await openAgent(subject());
    await openAgent(subject(), { agentId: "other" });
    for (const changes of [{ agentId: "other" }, { tenant: "other" }, { status: "closed" }, { decision: approved }]) {
      const wrong = requestOf(owner, 0, changes as Partial<AgentRequest>);
      await expect(owner.commit(opening(wrong))).rejects.toThrow(InvariantError);
    }
    expect(await ids()).toEqual([]);
  });

  test("requests are listed by root, agent, turn and status, in the order of opening, in pages", async () => {
    const owner = await openAgent(subject());
    const child = await openChild(owner, "kid");
    const other = await openAgent(subject(), { agentId: "other" });
    const late = requestOf(owner, 0, { openedAt: NOW + 20 });
    const early = requestOf(owner, 1, { openedAt: NOW });
    const middle = requestOf(child, 0, { openedAt: NOW + 10 });
    const tied = requestOf(other, 0, { openedAt: NOW + 10 });
    await owner.commit(opening(late, early));
    await child.commit(opening(middle));
    await other.commit(opening(tied));
    const all = [early, middle, tied, late].map((request) => request.requestId);
    expect(await ids()).toEqual(all);
    expect(await ids({ limit: 2 })).toEqual(all.slice(0, 2));
    expect(await ids({ limit: 2, after: middle.requestId })).toEqual(all.slice(2));
    expect(await ids({ after: late.requestId })).toEqual([]);
    expect(await ids({ rootAgentId: ROOT })).toEqual([early, middle, late].map((request) => request.requestId));
    expect(await ids({ rootAgentId: ROOT, after: early.requestId, limit: 1 })).toEqual([middle.requestId]);
    expect(await ids({ agentId: child.key.agentId })).toEqual([middle.requestId]);
    expect(await ids({ turnId: "other#1" })).toEqual([tied.requestId]);
    expect(await ids({ agentId: "other", rootAgentId: ROOT })).toEqual([]);
    for (const none of [{ agentId: "nobody" }, { rootAgentId: "nobody" }, { tenant: "nobody" }, { turnId: "none" }]) {
      expect(await ids(none)).toEqual([]);
    }
    await subject().decide(agentKey(), early.requestId, approved, NOW);
    await other.commit({ entries: [note("goes on")], closedRequests: [tied.requestId] });
    expect(await ids({ status: "open" })).toEqual([middle.requestId, late.requestId]);
    expect(await ids({ status: "open", after: early.requestId, limit: 1 })).toEqual([middle.requestId]);
    expect(await ids({ status: "decided" })).toEqual([early.requestId]);
    expect(await ids({ status: "closed" })).toEqual([tied.requestId]);
  });

  test("requests are listed by owner, including those of subagents, in stable pages while some are decided", async () => {
    const [ann, bob] = [await openAgent(subject()), await openAgent(subject(), { agentId: "bobs" })];
    const kid = await openChild(ann, "kid");
    const nobody = await openAgent(subject(), { agentId: "nobodys" });
    const of = (owner: typeof ann, index: number, ownerId?: string): AgentRequest =>
      requestOf(owner, index, { openedAt: NOW + Math.floor(index / 3), ...(ownerId ? { ownerId } : {}) });
    const anns = Array.from({ length: 8 }, (_, index) => of(index % 2 ? kid : ann, index, "ann"));
    for (const request of anns) await (request.agentId === ROOT ? ann : kid).commit(opening(request));
    await bob.commit(opening(of(bob, 0, "bob")));
    await nobody.commit(opening(of(nobody, 0)));
    const all = await ids({ ownerId: "ann" });
    const byOpening = anns.toSorted((a, b) => a.openedAt - b.openedAt || (a.requestId < b.requestId ? -1 : 1));
    expect(all).toEqual(byOpening.map(({ requestId }) => requestId));
    expect(await ids({ ownerId: "bob" })).toEqual([requestOf(bob, 0).requestId]);
    expect(await ids({ ownerId: "eve" })).toEqual([]);
    expect(await ids({ ownerId: "ann", agentId: kid.key.agentId })).toHaveLength(4);
    expect(await ids({ ownerId: "bob", rootAgentId: ROOT })).toEqual([]);
    const page = await ids({ ownerId: "ann", status: "open", limit: 3 });
    expect(page).toEqual(all.slice(0, 3));
    for (const requestId of page.slice(1)) {
      await subject().decide(agentKey(requestId.split("#")[0]), requestId, approved, NOW);
    }
    expect(await ids({ ownerId: "ann", status: "open", limit: 3, after: page[2] })).toEqual(all.slice(3, 6));
    expect(await ids({ ownerId: "ann", status: "open" })).toEqual([all[0], ...all.slice(3)]);
    expect(await ids({ ownerId: "ann", status: "decided" })).toEqual(all.slice(1, 3));
    expect(await ids({ ownerId: "ann" })).toEqual(all);
  });

  test("a list has at most 100 requests by default; invalid queries are refused", async () => {
    const owner = await openAgent(subject());
    await owner.commit(opening(...Array.from({ length: 101 }, (_, index) => requestOf(owner, index))));
    expect(await ids()).toHaveLength(100);
    expect(await ids({ limit: 1000 })).toHaveLength(101);
    expect(await ids({ limit: 0 })).toEqual([]);
    await expect(ids({ limit: -1 })).rejects.toThrow(/limit is -1/);
    await expect(ids({ after: `${TURN}:1:999:1` })).rejects.toThrow(InvalidInputError);
    await expect(ids({ after: "nonsense" })).rejects.toThrow(/after is "nonsense"/);
  });

  test("a request is only found for its agent and tenant", async () => {
    const owner = await openAgent(subject());
    await openAgent(subject(), { agentId: "other" });
    await openAgent(subject(), { tenant: "blue" });
    const { requestId } = requestOf(owner, 0);
    await owner.commit(opening(requestOf(owner, 0)));
    for (const key of [agentKey("other"), agentKey(ROOT, "blue"), agentKey("nobody")]) {
      expect(await subject().request(key, requestId)).toBeUndefined();
      expect(await subject().decide(key, requestId, approved, NOW)).toEqual({ type: "notFound" });
    }
    expect(await ids({ tenant: "blue" })).toEqual([]);
    await expect(ids({ tenant: "blue", after: requestId })).rejects.toThrow(InvalidInputError);
    expect(await subject().request(agentKey(), requestId)).toMatchObject({ status: "open" });
  });
}
