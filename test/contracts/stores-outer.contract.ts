import { expect, test } from "vitest";
import { type Account, type OuterLimits, type Settlement } from "../../src/budget/index.ts";
import type { Committed, Stores } from "../../src/stores/index.ts";
import { type MakeEntry, modelRequested, note, reservationIn, settled, toolStarted } from "./entry-fixtures.ts";
import { NOW, TENANT } from "./names.ts";
import { agentKey, elsewhere, here, LEASE_MS, openAgent, Owner } from "./stores-fixtures.ts";

const DAY_MS = 86_400_000;
const today = { startsAt: NOW - 1_000, endsAt: NOW - 1_000 + DAY_MS };
const moment = { now: NOW, steady: NOW };
const later = { now: NOW + 60_000, steady: NOW + 60_000 };

function owners(limits: OuterLimits["limits"], changes: Partial<OuterLimits> = {}): OuterLimits {
  return { scope: "owner", name: "ada", window: "perDay", limits, revision: 0, ...today, ...changes };
}

function tenants(limits: OuterLimits["limits"]): OuterLimits {
  return { scope: "tenant", name: TENANT, window: "total", limits, revision: 0, startsAt: 0, endsAt: null };
}

/** A call of the agent's turn that reserves that many tokens. */
function call({ key: { agentId } }: Owner, tokens: number, key = "1"): MakeEntry {
  const turnId = `${agentId}#1`;
  const ask = { accountId: `turn:${turnId}`, agentId, key: `${turnId}:${key}`, outputTokens: tokens - 100 };
  return modelRequested({ ...ask, minimumOutputTokens: Math.min(256, tokens - 100) }, { turnId });
}

function toolCall({ key: { agentId } }: Owner): MakeEntry {
  return toolStarted({ turnId: `${agentId}#1`, callId: `${agentId}#1:1:0`, accountId: `turn:${agentId}#1` });
}

async function opened(stores: Stores, ...names: readonly string[]): Promise<Owner[]> {
  const agents: Owner[] = [];
  for (const agentId of names) agents.push(await openAgent(stores, { agentId }));
  return agents;
}

async function accountsOf(stores: Stores): Promise<Record<string, Account>> {
  return Object.fromEntries((await stores.outer.of(TENANT, "ada")).map((account) => [account.id, account]));
}

function refusalIn({ entries }: Committed) {
  return entries.find((entry) => entry.type === "intent.refused");
}

export function outerContract(subject: () => Stores): void {
  test("two trees of one owner share the owner's and the tenant's accounts", async () => {
    const [a, b] = (await opened(subject(), "a", "b")) as [Owner, Owner];
    const above = [owners({ maxTokens: 1_000 }), tenants({ maxTokens: 5_000 })];
    await a.commit({ entries: [call(a, 500)], above });
    const granted = reservationIn(await b.commit({ entries: [call(b, 400)], above }));
    const both = { reserved: { tokens: 900 }, used: { treeSteps: 2, tokens: 0 } };
    expect(await accountsOf(subject())).toMatchObject({ "owner:perDay:ada": both, "tenant:total": both });
    await b.commit({ ...settled(granted), above });
    const rest = { reserved: { tokens: 500 }, used: { treeSteps: 2, tokens: 120 } };
    expect(await accountsOf(subject())).toMatchObject({ "owner:perDay:ada": rest, "tenant:total": rest });
  });

  test("a call that does not fit is refused with the account and when it renews, and reserves nothing", async () => {
    const [a] = (await opened(subject(), "a")) as [Owner];
    const refused = refusalIn(await a.commit({ entries: [call(a, 900)], above: [owners({ maxTokens: 200 })] }));
    expect(refused).toMatchObject({
      reason: "budget",
      accountId: "owner:perDay:ada",
      limit: "maxTokens",
      used: 0,
      max: 200,
      needed: 356,
      renewsAt: today.endsAt,
    });
    expect(refused).not.toHaveProperty("holder");
    expect(await accountsOf(subject())).toMatchObject({ "owner:perDay:ada": { reserved: { tokens: 0 } } });
    const [inTree] = await subject().accounts(TENANT, "a");
    expect(inTree).toMatchObject({ reserved: { tokens: 0 }, used: { treeSteps: 0 } });
  });

  test("a refusal by the tenant's account does not show what others have spent", async () => {
    const [a] = (await opened(subject(), "a")) as [Owner];
    const refused = refusalIn(await a.commit({ entries: [call(a, 900)], above: [tenants({ maxTokens: 200 })] }));
    expect(refused).toMatchObject({ reason: "budget", accountId: "tenant:total" });
    expect(refused).not.toHaveProperty("used");
    expect(refused).not.toHaveProperty("max");
  });

  test("near a limit the output is bounded, and the tree and the accounts above reserve the same", async () => {
    const [a] = (await opened(subject(), "a")) as [Owner];
    const above = [owners({ maxTokens: 700 })];
    const granted = reservationIn(await a.commit({ entries: [call(a, 1_000)], above }));
    expect(granted).toMatchObject({ tokens: 700, outputTokens: 600, isBound: true });
    expect(await accountsOf(subject())).toMatchObject({ "owner:perDay:ada": { reserved: { tokens: 700 } } });
  });

  test("a call that its own tree refuses or bounds takes no more above", async () => {
    const small = await openAgent(subject(), { agentId: "small", turnBudget: { maxTokens: 600 } });
    const above = [owners({ maxTokens: 10_000 })];
    const granted = reservationIn(await small.commit({ entries: [call(small, 2_000)], above }));
    expect(granted.tokens).toBe(600);
    expect(await accountsOf(subject())).toMatchObject({ "owner:perDay:ada": { reserved: { tokens: 600 } } });
    await small.commit({ ...settled(granted, { tokens: 600 }), above });
    const refused = refusalIn(await small.commit({ entries: [call(small, 500, "2")], above }));
    expect(refused).toMatchObject({ reason: "budget", accountId: "turn:small#1" });
    expect(await accountsOf(subject())).toMatchObject({
      "owner:perDay:ada": { reserved: { tokens: 0 }, used: { tokens: 600, treeSteps: 1 } },
    });
  });

  test("a call waits for reservations of other trees, and is woken when they are settled", async () => {
    const [a, b] = (await opened(subject(), "a", "b")) as [Owner, Owner];
    const above = [owners({ maxTokens: 1_000 })];
    const taken = reservationIn(await a.commit({ entries: [call(a, 800)], above }));
    const waits = refusalIn(await b.commit({ entries: [call(b, 900)], above }));
    expect(waits).toMatchObject({ reason: "mustWait", accountId: "owner:perDay:ada" });
    const { posted } = await a.commit({ ...settled(taken, { tokens: 100 }), above });
    expect(posted).toContain("b");
    expect(await subject().inbox(agentKey("b"))).toMatchObject([{ kind: "budget.freed" }]);
    const granted = reservationIn(await b.commit({ entries: [call(b, 900)], above }));
    expect(granted.tokens).toBe(900);
  });

  test("tool calls of all trees count on a limit above", async () => {
    const [a, b] = (await opened(subject(), "a", "b")) as [Owner, Owner];
    const above = [owners({ maxTreeToolCalls: 1 })];
    expect((await a.commit({ entries: [toolCall(a)], above })).entries).toMatchObject([{ type: "tool.started" }]);
    const refused = refusalIn(await b.commit({ entries: [toolCall(b)], above }));
    expect(refused).toMatchObject({ accountId: "owner:perDay:ada", limit: "maxTreeToolCalls", used: 1, max: 1 });
  });

  test("a batch that is sent again, and one of an old epoch, change nothing above", async () => {
    const [a] = (await opened(subject(), "a")) as [Owner];
    const above = [owners({ maxTokens: 10_000 })];
    const batch = a.batch({ entries: [call(a, 500)], above });
    const [first] = await subject().commit([batch], NOW);
    const [again] = await subject().commit([batch], NOW);
    expect(again).toMatchObject({ type: "committed", entries: first?.type === "committed" ? first.entries : [] });
    const once = { "owner:perDay:ada": { reserved: { tokens: 500 }, used: { treeSteps: 1 } } };
    expect(await accountsOf(subject())).toMatchObject(once);
    const old = { ...a.batch({ entries: [call(a, 500, "2")], above }), epoch: 99 };
    expect(await subject().commit([old], NOW)).toMatchObject([{ type: "stale" }]);
    expect(await accountsOf(subject())).toMatchObject(once);
  });

  test("a settlement of a former owner counts above at most once, and never more than was reserved", async () => {
    const [a] = (await opened(subject(), "a")) as [Owner];
    const above = [owners({ maxTokens: 10_000 })];
    const reservation = reservationIn(await a.commit({ entries: [call(a, 500)], above }));
    const settlement: Settlement = { reservation, tokens: 90, costMicros: 0, usage: null, unconfirmed: false };
    const moves = [{ type: "settle", settlement }] as const;
    // Another process owns the agent by now, and settles the call in full.
    const late = { ...a.batch({ entries: [note("late")], moves, above }), epoch: 99 };
    expect(await subject().commit([late], NOW)).toMatchObject([{ type: "stale" }]);
    await a.commit({ ...settled(reservation, { tokens: 500, unconfirmed: true }), above });
    const { used, reserved } = (await accountsOf(subject()))["owner:perDay:ada"] ?? {};
    expect(reserved).toEqual({ tokens: 0, costMicros: 0 });
    // Redis settles above before it can know of the new owner; then what the provider reported counts.
    expect([90, 500]).toContain(used?.tokens);
  });

  test("a later window starts with nothing used, an earlier one does not come back, and calls in flight count where they end", async () => {
    const [a] = (await opened(subject(), "a")) as [Owner];
    const limits = { maxTokens: 1_000 };
    const above = [owners(limits)];
    const first = reservationIn(await a.commit({ entries: [call(a, 600)], above }));
    await a.commit({ ...settled(first, { tokens: 600 }), above });
    const second = reservationIn(await a.commit({ entries: [call(a, 400, "2")], above }));
    const tomorrow = [owners(limits, { startsAt: today.endsAt, endsAt: today.endsAt + DAY_MS })];
    const waits = refusalIn(await a.commit({ entries: [call(a, 900, "3")], above: tomorrow }));
    expect(waits).toMatchObject({ reason: "mustWait", used: 0 });
    await a.commit({ ...settled(second, { tokens: 300 }), above });
    expect(await accountsOf(subject())).toMatchObject({
      "owner:perDay:ada": { used: { tokens: 300 }, reserved: { tokens: 0 }, outer: { startsAt: today.endsAt } },
    });
  });

  test("the strictest limits of one revision hold until the account renews, those of a higher revision at once", async () => {
    const [a] = (await opened(subject(), "a")) as [Owner];
    const used = async (limits: OuterLimits): Promise<void> =>
      void (await a.commit({ entries: [toolCall(a)], above: [limits] }));
    const limitsNow = async () => (await accountsOf(subject()))["owner:perDay:ada"]?.limits;
    await used(owners({ maxTokens: 500 }));
    await used(owners({ maxTokens: 900, maxCostMicros: 7 }));
    expect(await limitsNow()).toEqual({ maxTokens: 500, maxCostMicros: 7 });
    await used(owners({ maxTokens: 900 }, { revision: 1 }));
    expect(await limitsNow()).toEqual({ maxTokens: 900 });
    await used(owners({ maxTokens: 10 }));
    expect(await limitsNow()).toEqual({ maxTokens: 900 });
  });

  test("amounts that are added count until the account renews, and wake the calls that wait", async () => {
    const [a, b] = (await opened(subject(), "a", "b")) as [Owner, Owner];
    const above = [owners({ maxTokens: 1_000 })];
    await a.commit({ entries: [call(a, 800)], above });
    await b.commit({ entries: [call(b, 900)], above });
    expect(await subject().outer.raise(TENANT, "owner:perDay:ada", { maxTokens: 1_000 }, moment)).toMatchObject({
      limits: { maxTokens: 2_000 },
    });
    expect(await subject().inbox(agentKey("b"))).toMatchObject([{ kind: "budget.freed" }]);
    reservationIn(await b.commit({ entries: [call(b, 900)], above }));
    const tomorrow = [owners({ maxTokens: 1_000 }, { startsAt: today.endsAt, endsAt: today.endsAt + DAY_MS })];
    await a.commit({ entries: [toolCall(a)], above: tomorrow });
    expect(await accountsOf(subject())).toMatchObject({ "owner:perDay:ada": { limits: { maxTokens: 1_000 } } });
    expect(await subject().outer.raise(TENANT, "owner:perDay:bob", { maxTokens: 1 }, moment)).toBeUndefined();
  });

  test("a reservation whose batch was never applied is kept while it may be, and returned after another owner has come", async () => {
    const [a] = (await opened(subject(), "a")) as [Owner];
    const above = [owners({ maxTokens: 1_000 })];
    await subject().outer.charge(a.batch({ entries: [call(a, 600)], above }), moment);
    const reserved = async () => (await accountsOf(subject()))["owner:perDay:ada"]?.reserved.tokens;
    await subject().outer.tidy(TENANT, later);
    expect(await reserved()).toBe(600);
    const taken = later.now + 10 * LEASE_MS;
    await new Owner(subject(), a.key).acquire(elsewhere, taken);
    await subject().outer.tidy(TENANT, { now: taken, steady: taken });
    expect(await reserved()).toBe(0);
    expect(await accountsOf(subject())).toMatchObject({ "owner:perDay:ada": { used: { treeSteps: 0 } } });
  });

  /** Another process takes the agent over, so that batches of its former owner are never applied. */
  async function takeOver({ key }: Owner, now = later.now + 10 * LEASE_MS): Promise<Owner> {
    return await new Owner(subject(), key).acquire(elsewhere, now);
  }

  test("a step that was never committed is taken back, also if its process's clock is behind that of the opener", async () => {
    const [a, b] = (await opened(subject(), "a", "b")) as [Owner, Owner];
    const above = [owners({ maxTokens: 1_000 }, { window: "total", startsAt: 0, endsAt: null })];
    await a.commit({ entries: [call(a, 300)], above });
    const behind = { now: NOW - 5, steady: NOW - 5 };
    await subject().outer.charge(b.batch({ entries: [call(b, 300)], above }), behind);
    expect(await accountsOf(subject())).toMatchObject({ "owner:total:ada": { used: { treeSteps: 2 } } });
    await takeOver(b);
    await subject().outer.tidy(TENANT, { now: NOW + 3_600_000, steady: NOW + 3_600_000 });
    expect(await accountsOf(subject())).toMatchObject({
      "owner:total:ada": { used: { treeSteps: 1 }, reserved: { tokens: 300 } },
    });
  });

  test("a step that was never committed is not taken back from a later window, also if its process's clock was ahead", async () => {
    const [a, b] = (await opened(subject(), "a", "b")) as [Owner, Owner];
    const limits = { maxTokens: 1_000 };
    const ahead = { now: today.endsAt + 5, steady: NOW };
    await subject().outer.charge(b.batch({ entries: [call(b, 300)], above: [owners(limits)] }), ahead);
    const tomorrow = [owners(limits, { startsAt: today.endsAt, endsAt: today.endsAt + DAY_MS })];
    await a.commit({ entries: [call(a, 300)], above: tomorrow });
    const taken = today.endsAt + 3_600_000;
    await takeOver(b, taken);
    await subject().outer.tidy(TENANT, { now: taken, steady: taken });
    expect(await accountsOf(subject())).toMatchObject({
      "owner:perDay:ada": { used: { treeSteps: 1 }, reserved: { tokens: 300 } },
    });
  });

  test("a tool call that was never committed is taken back, though its agent's next owner has made one at its place", async () => {
    const [a] = (await opened(subject(), "a")) as [Owner];
    const above = [owners({ maxTreeToolCalls: 5 })];
    await subject().outer.charge(a.batch({ entries: [toolCall(a)], above }), moment);
    const next = await takeOver(a);
    await next.commit({ entries: [toolCall(a)], above });
    await subject().outer.tidy(TENANT, { now: NOW + 3_600_000, steady: NOW + 3_600_000 });
    expect(await accountsOf(subject())).toMatchObject({ "owner:perDay:ada": { used: { treeToolCalls: 1 } } });
  });

  test("a call that its agent's next owner has settled counts once, though its batch is sent again before its process dies", async () => {
    const [a] = (await opened(subject(), "a")) as [Owner];
    const above = [owners({ maxTokens: 1_000 })];
    const batch = a.batch({ entries: [call(a, 300)], above });
    // The process does not get the answer.
    const [outcome] = await subject().commit([batch], NOW);
    const reservation = reservationIn(a.moved(outcome));
    const next = await takeOver(a);
    const settlement = { reservation, tokens: 300, costMicros: 0, usage: null, unconfirmed: true };
    const error = { code: "interrupted", message: "the process died", retryable: true };
    const told = { turnId: "a#1", step: 1, attempt: 1, model: "m", error, retryAt: NOW, usage: null, settlement };
    await next.commit({
      entries: [(envelope) => ({ type: "model.failed", ...envelope, ...told })],
      moves: [{ type: "settle", settlement }],
      above,
    });
    await subject().outer.charge(batch, moment);
    await subject().outer.tidy(TENANT, { now: NOW + 3_600_000, steady: NOW + 3_600_000 });
    expect(await accountsOf(subject())).toMatchObject({
      "owner:perDay:ada": { used: { treeSteps: 1, tokens: 300 }, reserved: { tokens: 0 } },
    });
  });

  test("a reservation of an applied batch stays until it is settled, and a settlement counts once", async () => {
    const [a] = (await opened(subject(), "a")) as [Owner];
    const above = [owners({ maxTokens: 1_000 })];
    const granted = reservationIn(await a.commit({ entries: [call(a, 600)], above }));
    await subject().outer.tidy(TENANT, later);
    expect(await accountsOf(subject())).toMatchObject({ "owner:perDay:ada": { reserved: { tokens: 600 } } });
    const settlement: Settlement = { reservation: granted, tokens: 90, costMicros: 0, usage: null, unconfirmed: false };
    const ended = a.batch({ entries: [note("answered")], moves: [{ type: "settle", settlement }] });
    // The process died after the accounts above were charged; its successor settles once more.
    await subject().outer.charge(ended, moment);
    await subject().commit([ended], NOW);
    expect(await accountsOf(subject())).toMatchObject({
      "owner:perDay:ada": { reserved: { tokens: 0 }, used: { tokens: 90 } },
    });
  });

  test("a call of a tree that only its process had is settled in full once the process is gone", async () => {
    const batch = {
      ...new Owner(subject(), agentKey("gone")).batch({ above: [owners({ maxTokens: 1_000 })] }),
      epoch: 1,
    };
    const owner = new Owner(subject(), agentKey("gone"));
    const entries = [call(owner, 600)({ seq: 1, at: NOW, epoch: 1 })];
    await subject().registerProcess(here, NOW);
    const processId = here.processId;
    await subject().outer.charge({ ...batch, entries, processId, isApart: true }, moment);
    await subject().outer.tidy(TENANT, later);
    expect(await accountsOf(subject())).toMatchObject({ "owner:perDay:ada": { reserved: { tokens: 600 } } });
    const gone = NOW + 3_600_000;
    await subject().outer.tidy(TENANT, { now: gone, steady: gone });
    expect(await accountsOf(subject())).toMatchObject({
      "owner:perDay:ada": { reserved: { tokens: 0 }, used: { tokens: 600 }, unconfirmed: { tokens: 600 } },
    });
  });

  /** Reserves for an agent that is not stored: its tree was deleted before the reservation was settled. */
  async function chargeOfDeleted(tokens: number): Promise<void> {
    const gone = new Owner(subject(), agentKey("gone"));
    const batch = gone.batch({ above: [owners({ maxTokens: 1_000 }), tenants({ maxTokens: 2_000 })] });
    await subject().registerProcess(here, NOW);
    const entries = [call(gone, tokens)({ seq: 1, at: NOW, epoch: 1 })];
    await subject().outer.charge({ ...batch, epoch: 1, entries, processId: here.processId }, moment);
  }

  test("a call of a deleted tree is settled in full, though its process lives", async () => {
    await chargeOfDeleted(600);
    await subject().outer.tidy(TENANT, later);
    expect(await accountsOf(subject())).toMatchObject({
      "owner:perDay:ada": { reserved: { tokens: 0 }, used: { tokens: 600 } },
    });
  });

  test("the accounts of a deleted owner are removed, and what its trees had reserved stays with the tenant", async () => {
    await chargeOfDeleted(600);
    expect(await subject().outer.forget(TENANT, "bob", moment)).toBe(true);
    expect(Object.keys(await accountsOf(subject()))).toEqual(["owner:perDay:ada", "tenant:total"]);
    expect(await subject().outer.forget(TENANT, "ada", moment)).toBe(true);
    expect(await accountsOf(subject())).toMatchObject({
      "tenant:total": { reserved: { tokens: 0 }, used: { tokens: 600 } },
    });
    expect(await subject().outer.list(TENANT)).toHaveLength(1);
  });

  test("the accounts of an owner stay while a call of a tree that exists counts on them", async () => {
    const [a] = (await opened(subject(), "a")) as [Owner];
    await a.commit({ entries: [call(a, 600)], above: [owners({ maxTokens: 1_000 })] });
    expect(await subject().outer.forget(TENANT, "ada", moment)).toBe(false);
    expect(await accountsOf(subject())).toMatchObject({ "owner:perDay:ada": { reserved: { tokens: 600 } } });
  });

  test("amounts that are added after the end of a window belong to the next one", async () => {
    const [a] = (await opened(subject(), "a")) as [Owner];
    const limits = { maxTreeToolCalls: 1 };
    await a.commit({ entries: [toolCall(a)], above: [owners(limits)] });
    await subject().outer.raise(TENANT, "owner:perDay:ada", { maxTreeToolCalls: 5 }, moment);
    const nextDay = { now: today.endsAt + 1_000, steady: NOW + 2_000 };
    await subject().outer.raise(TENANT, "owner:perDay:ada", { maxTreeToolCalls: 2 }, nextDay);
    const tomorrow = { startsAt: today.endsAt, endsAt: today.endsAt + DAY_MS };
    await a.commit({ entries: [toolCall(a)], above: [owners(limits, tomorrow)] });
    // The 5 of the day before are gone.
    expect(await accountsOf(subject())).toMatchObject({
      "owner:perDay:ada": { limits: { maxTreeToolCalls: 3 }, used: { treeToolCalls: 1 } },
    });
    const after = { startsAt: tomorrow.endsAt, endsAt: tomorrow.endsAt + DAY_MS };
    await a.commit({ entries: [toolCall(a)], above: [owners(limits, after)] });
    expect(await accountsOf(subject())).toMatchObject({ "owner:perDay:ada": { limits: { maxTreeToolCalls: 1 } } });
  });

  test("accounts are listed by id, page by page", async () => {
    const [a] = (await opened(subject(), "a")) as [Owner];
    for (const name of ["bob", "ada"]) await a.commit({ entries: [toolCall(a)], above: [owners({}, { name })] });
    await a.commit({ entries: [toolCall(a)], above: [tenants({ maxTokens: 1 })] });
    const first = await subject().outer.list(TENANT, { limit: 2 });
    expect(first.map(({ id }) => id)).toEqual(["owner:perDay:ada", "owner:perDay:bob"]);
    expect(await subject().outer.list(TENANT, { after: "owner:perDay:bob" })).toMatchObject([{ id: "tenant:total" }]);
    expect(await subject().outer.list("other")).toEqual([]);
  });
}
