import { array, assert, asyncProperty, integer, record } from "fast-check";
import { expect, test } from "vitest";
import { InvalidInputError } from "../../src/errors/index.ts";
import type { AgentRequest } from "../../src/state/index.ts";
import { type AgentFilter, formatAgentCursor, type Stores } from "../../src/stores/index.ts";
import { NOW, ROOT, TENANT } from "./names.ts";
import { approved, opening, requestOf } from "./request-fixtures.ts";
import { identityOf, agentKey, openAgent } from "./stores-fixtures.ts";

/** Newest first, those of one moment by their ids. */
const byAge = { tenant: TENANT, rootsOnly: true, order: "newest" } as const;

export function pagesContract(subject: () => Stores): void {
  async function make(agentId: string, createdAt: number, more: object = {}): Promise<void> {
    await subject().createAgent(identityOf(agentId, { createdAt, ...more }), null);
  }

  async function list(filter: Partial<AgentFilter> = {}): Promise<string[]> {
    return (await subject().listAgents({ ...byAge, ...filter })).map(({ agentId }) => agentId);
  }

  test("roots are listed newest first, those of one moment by their ids, children never", async () => {
    await make("b", NOW);
    await make("old", NOW - 5, { sessionId: "s1", ownerId: "ann" });
    await make("a", NOW);
    await make("new", NOW + 7, { sessionId: "s1" });
    await make("new~1", NOW + 8, { rootAgentId: "new", parentAgentId: "new", parentTurnId: "new#1", depth: 1 });
    await make("before-all-times", -3);
    expect(await list()).toEqual(["new", "a", "b", "old", "before-all-times"]);
    expect(await list({ limit: 2 })).toEqual(["new", "a"]);
    expect(await list({ limit: 0 })).toEqual([]);
    expect(await list({ sessionId: "s1" })).toEqual(["new", "old"]);
    expect(await list({ sessionId: "s1", ownerId: "ann" })).toEqual(["old"]);
    expect(await list({ rootAgentId: "new" })).toEqual(["new"]);
    expect(await list({ tenant: "another" })).toEqual([]);
  });

  test("a page continues behind a place, also one whose agent is not there", async () => {
    for (const [index, agentId] of ["a", "b", "c", "d"].entries()) await make(agentId, NOW + Math.floor(index / 2));
    expect(await list()).toEqual(["c", "d", "a", "b"]);
    expect(await list({ after: after("c", NOW + 1) })).toEqual(["d", "a", "b"]);
    expect(await list({ after: after("cc", NOW + 1), limit: 2 })).toEqual(["d", "a"]);
    expect(await list({ after: after("gone", NOW + 9) })).toEqual(["c", "d", "a", "b"]);
    expect(await list({ after: after("b", NOW) })).toEqual([]);
    expect(await list({ after: after("a", NOW), rootAgentId: "b" })).toEqual(["b"]);
  });

  test.each([[""], ["a"], [":a"], ["1.5:a"], ["99999999999999999:a"], ["1:"]])(
    "%j is refused as a place to go on from",
    async (after) => {
      await expect(list({ after })).rejects.toThrow(InvalidInputError);
    },
  );

  test("the order by age is one of roots, and there are two orders", async () => {
    await expect(subject().listAgents({ tenant: TENANT, order: "newest" })).rejects.toThrow(/set rootsOnly: true/);
    await expect(list({ order: "oldest" as "newest" })).rejects.toThrow(/order is "oldest"; it takes "id" or "newest"/);
  });

  test("read page by page while others are made, none comes twice and none that was there all the time is left out", async () => {
    const age = integer({ min: -2, max: 2 });
    const pages = record({
      old: array(age, { maxLength: 12 }),
      limit: integer({ min: 1, max: 5 }),
      made: age,
    });
    let round = 0;
    await assert(
      asyncProperty(pages, async ({ old, limit, made }) => {
        round += 1;
        const tenant = `tenant-${round}`;
        const there = old.map((_, index) => `old-${(index * 7) % old.length}-${index}`);
        for (const [index, agentId] of there.entries()) await make(agentId, NOW + (old[index] ?? 0), { tenant });
        const seen: string[] = [];
        for (let after: string | undefined; ; ) {
          const page = await subject().listAgents({ ...byAge, tenant, limit, after });
          seen.push(...page.map(({ agentId }) => agentId));
          const last = page.at(-1);
          if (last === undefined || page.length < limit || seen.length > 60) break;
          after = formatAgentCursor(last);
          await make(`new-${seen.length}`, NOW + made, { tenant });
          await subject().openTurn(agentKey(last.agentId, tenant), command, NOW + 50);
        }
        expect(new Set(seen).size).toBe(seen.length);
        expect(seen.filter((agentId) => agentId.startsWith("old-")).toSorted()).toEqual(there.toSorted());
      }),
      { numRuns: 12 },
    );
  });

  test("open requests are read page by page while some are decided and others are opened", async () => {
    const owner = await openAgent(subject());
    const requests = Array.from({ length: 9 }, (_, index) => requestOf(owner, index, { openedAt: NOW + (index % 3) }));
    await owner.commit(opening(...requests.slice(0, 8)));
    const open = { tenant: TENANT, status: "open", limit: 3 } as const;
    const first = await subject().requests(open);
    const [, , last] = first;
    if (!last) throw new Error("a page of three was to come");
    // What the next page continues behind is not open any more.
    await subject().decide(agentKey(), last.requestId, approved, NOW + 9);
    await owner.commit(opening(...requests.slice(8)));
    const second = await subject().requests({ ...open, after: last.requestId });
    const third = await subject().requests({ ...open, after: second.at(-1)?.requestId });
    const expected = [0, 3, 6, 1, 4, 7, 2, 5, 8].map((index) => requests[index]?.requestId);
    expect(ids([...first, ...second, ...third])).toEqual(expected);
    expect(await subject().requests({ tenant: TENANT, rootAgentId: ROOT, status: "open" })).toHaveLength(8);
  });
}

function after(agentId: string, createdAt: number): string {
  return formatAgentCursor({ agentId, createdAt });
}

function ids(requests: readonly AgentRequest[]): string[] {
  return requests.map(({ requestId }) => requestId);
}

const command = { input: "more", actorId: null, limits: null, ifBusy: "refuse" } as const;
