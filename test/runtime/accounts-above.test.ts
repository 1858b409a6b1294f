import { describe, expect, it } from "vitest";
import {
  type Account,
  createRuntime,
  defineAgent,
  InvalidInputError,
  NotFoundError,
  type Runtime,
} from "../../src/index.ts";
import { createFakeClock, scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate, nextEvent } from "../support/turn-probes.ts";
import { classicValues } from "../support/wrong-values.ts";

const usage = { inputTokens: 20, outputTokens: 180 };
const clerk = defineAgent({
  name: "clerk",
  model: scriptedModel(() => ({ text: "Done.", usage })),
  maxOutputTokens: 400,
});

/** The result of one turn of a new agent. */
async function turnOf(runtime: Runtime, ownerId: string, name = "clerk") {
  const agent = await runtime.agent(name, { ownerId });
  await agent.start();
  return await agent.executeTurn("Sort the post.").result;
}

async function account(runtime: Runtime, id: string): Promise<Account | undefined> {
  return (await runtime.accountsAbove()).find((one) => one.id === id);
}

describeRuntimes("budgets of owners and tenants", (stage) => {
  it("all agents of an owner stop at its limit, with the account and its renewal; other owners go on", async () => {
    const runtime = await stage().open({
      agents: [clerk],
      accounts: { owner: { perDay: { maxTokens: 640 } }, tenant: { perMonth: { maxTokens: 100_000 } } },
    });
    expect((await turnOf(runtime, "ada")).status).toBe("completed");
    expect((await turnOf(runtime, "ada")).status).toBe("completed");
    const { status, stopReason, stop } = await turnOf(runtime, "ada");
    expect({ status, stopReason }).toEqual({ status: "stopped", stopReason: "token_limit" });
    expect(stop).toMatchObject({
      accountId: "owner:perDay:ada",
      agentId: "ada",
      limit: "maxTokens",
      used: 400,
      max: 640,
    });
    expect(stop?.message).toMatch(/^owner ada, per day: 400 of 640 tokens, too few left .*; it renews at .* UTC$/);
    expect((await turnOf(runtime, "bob")).status).toBe("completed");
    expect(await account(runtime, "tenant:perMonth")).toMatchObject({ used: { tokens: 600 }, reserved: { tokens: 0 } });
    const own = await runtime.accountsAbove({ ownerId: "bob" });
    expect(own.map(({ id }) => id)).toEqual(["owner:perDay:bob", "tenant:perMonth"]);
  });

  it("amounts that are added let the owner go on", async () => {
    const runtime = await stage().open({ agents: [clerk], accounts: { owner: { total: { maxSteps: 1 } } } });
    await turnOf(runtime, "ada");
    expect((await turnOf(runtime, "ada")).stop).toMatchObject({ limit: "maxTreeSteps", reason: "steps_limit" });
    expect(await runtime.addToAccount("owner:total:ada", { maxSteps: 1 })).toMatchObject({
      limits: { maxTreeSteps: 2 },
    });
    expect((await turnOf(runtime, "ada")).status).toBe("completed");
    await expect(runtime.addToAccount("owner:total:bob", { maxSteps: 1 })).rejects.toThrow(NotFoundError);
    for (const value of classicValues()) {
      const amounts = value as { maxSteps: number };
      await expect(runtime.addToAccount("owner:total:ada", amounts)).rejects.toThrow(InvalidInputError);
      if (value === 5) continue;
      await expect(runtime.accountsAbove({ limit: value as string & number })).rejects.toThrow(InvalidInputError);
    }
  });

  it("a call waits for the calls of another agent of its owner", async () => {
    const gate = createGate<{ text: string; usage: typeof usage }>();
    const slow = defineAgent({
      name: "slow",
      model: scriptedModel((_request, { signal }) => gate.pass(signal)),
      maxOutputTokens: 400,
    });
    const runtime = await stage().open({ agents: [slow], accounts: { owner: { perDay: { maxTokens: 800 } } } });
    const waiting = nextEvent(runtime, (event) => event.type === "turn.waiting");
    const turns = [turnOf(runtime, "ada", "slow"), turnOf(runtime, "ada", "slow")];
    await Promise.all([waiting, gate.reached()]);
    expect(gate.count).toBe(1);
    gate.open({ text: "Done.", usage });
    expect((await Promise.all(turns)).map(({ status }) => status)).toEqual(["completed", "completed"]);
    expect(await account(runtime, "owner:perDay:ada")).toMatchObject({
      used: { tokens: 400 },
      reserved: { tokens: 0 },
    });
  });

  it("agents that are not saved spend on the same accounts", async () => {
    const runtime = await stage().open({ agents: [clerk], accounts: { owner: { perDay: { maxTokens: 640 } } } });
    for (const expected of ["completed", "completed", "stopped"]) {
      const agent = await runtime.agent("clerk", { ownerId: "ada", autoSave: false });
      await agent.start();
      expect((await agent.executeTurn("Sort the post.").result).status).toBe(expected);
    }
    expect(await account(runtime, "owner:perDay:ada")).toMatchObject({
      used: { tokens: 400 },
      reserved: { tokens: 0 },
    });
  });
});

/** Fails for ada, and has wrong limits for others. */
function brokenLimits(ownerId: string) {
  if (ownerId === "ada") throw new Error("no plan");
  return { perDay: { maxTokens: -1 } };
}

describe("accounts of createRuntime()", () => {
  it("a day renews at midnight of the time zone", async () => {
    const clock = createFakeClock(new Date("2026-10-24T21:59:00Z"));
    const accounts = { owner: { perDay: { maxSteps: 1 } }, timeZone: "Europe/Berlin" };
    const runtime = await createRuntime({ agents: [clerk], clock, accounts });
    await turnOf(runtime, "ada");
    expect((await turnOf(runtime, "ada")).stop?.message).toContain("it renews at 2026-10-24 22:00:00 UTC");
    clock.advance(2 * 60_000);
    expect((await account(runtime, "owner:perDay:ada"))?.used.treeSteps).toBe(0);
    expect((await turnOf(runtime, "ada")).status).toBe("completed");
    // The day on which the clocks change has 25 hours.
    expect((await turnOf(runtime, "ada")).stop?.message).toContain("it renews at 2026-10-25 23:00:00 UTC");
    await runtime.shutdown();
  });

  it("limits of an owner that cannot be read fail its turns, and nothing is spent", async () => {
    let calls = 0;
    const model = scriptedModel(() => {
      calls += 1;
      return "Done.";
    });
    const runtime = await createRuntime({
      agents: [defineAgent({ name: "clerk", model })],
      accounts: { owner: brokenLimits },
    });
    expect((await turnOf(runtime, "ada")).error?.message).toContain("no plan");
    expect((await turnOf(runtime, "bob")).error?.message).toContain("perDay.maxTokens is -1");
    expect(calls).toBe(0);
    await runtime.shutdown();
  });

  it("a price is needed where an account above limits the cost", async () => {
    const runtime = await createRuntime({ agents: [clerk], accounts: { tenant: { perMonth: { maxCost: 1 } } } });
    expect((await turnOf(runtime, "ada")).error?.message).toContain("price");
    await runtime.shutdown();
  });

  it.each([
    [{ owner: { perday: {} } }, 'accounts.owner has no option "perday": did you mean perDay?'],
    [{ tenant: { perDay: { askAtLimit: "yes" } } }, "askAtLimit"],
    [{ owner: { perDay: { askAtLimit: "yes" } } }, "askAtLimit"],
    [{ tenant: { perDay: { maxSeconds: 1 } } }, 'accounts.tenant.perDay has no option "maxSeconds"'],
    [{ owner: { perDay: { maxCost: -1 } } }, "accounts.owner.perDay.maxCost is -1"],
    [{ owner: { total: { maxSteps: 0.5 } } }, "accounts.owner.total.maxSteps is 0.5"],
    [{ timezone: "UTC" }, "did you mean timeZone?"],
    [{ timeZone: "Mars" }, 'accounts.timeZone is "Mars"; expected a time zone'],
    [{ revision: -1 }, "accounts.revision is -1"],
  ])("%j is refused", async (accounts, told) => {
    await expect(createRuntime({ agents: [clerk], accounts: accounts as object })).rejects.toThrow(told);
  });

  it("no value of another type is taken", async () => {
    for (const name of ["tenant", "owner", "timeZone", "revision"]) {
      const isNumber = (value: unknown): boolean => name === "revision" && typeof value === "number";
      for (const value of classicValues().filter((one) => !isNumber(one) && !isEmptyObject(one))) {
        if (name === "owner" && typeof value === "function") continue;
        await expect(createRuntime({ agents: [clerk], accounts: { [name]: value } }), name).rejects.toThrow(
          InvalidInputError,
        );
      }
    }
  });
});

/** Windows without limits are allowed. */
function isEmptyObject(value: unknown): boolean {
  try {
    return JSON.stringify(value) === "{}";
  } catch {
    return false;
  }
}
