import { expect, it } from "vitest";
import { z } from "zod";
import {
  type Budget,
  defineAgent,
  defineTool,
  type Runtime,
  type RuntimeOptions,
  type TroupeEvent,
  type TroupeEventOf,
} from "../../src/index.ts";
import { type Account, forecastsOf } from "../../src/budget/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes, type Stage } from "../support/runtimes.ts";

const usage = { inputTokens: 50, outputTokens: 50 };
const STEPS = 6;
const WALK_MS = 30_000;

/** Each step of a turn of this agent uses 100 tokens and takes half a minute. */
function walkerOn({ clock }: Stage) {
  const walk = defineTool({
    name: "walk",
    description: "Walks for half a minute.",
    parameters: z.object({}),
    effect: "none",
    execute: () => {
      clock.advance(WALK_MS);
      return "walked";
    },
  });
  return defineAgent({
    name: "walker",
    tools: [walk],
    maxOutputTokens: 60,
    budget: { maxSteps: 20 },
    model: scriptedModel(({ messages }) =>
      messages.filter(({ role }) => role === "tool").length < STEPS - 1
        ? { toolCalls: [{ name: "walk", arguments: {} }], usage }
        : { text: "There.", usage },
    ),
  });
}

async function walk(stage: Stage, budget: Budget, accounts?: RuntimeOptions["accounts"]) {
  const runtime = await stage.open({ agents: [walkerOn(stage)], accounts });
  const events: TroupeEvent[] = [];
  runtime.subscribe((event) => void events.push(event));
  const agent = await runtime.agent("walker", { agentId: "w", ownerId: "ada" });
  await agent.start();
  expect(await agent.executeTurn("Walk.", { budget }).result).toMatchObject({ status: "completed", error: null });
  return { runtime, events, forecasts: events.filter((event) => event.type === "budget.forecast") };
}

function figuresOf({ limit, used, reserved, max, expected, renewsAt, metAt }: TroupeEventOf<"budget.forecast">) {
  return { limit, used, reserved, max, expected, renewsAt, metAt };
}

/** The account as it was at an event: with what was used and reserved then. */
function accountAt(account: Account | undefined, { used, reserved }: TroupeEventOf<"budget.forecast">): Account {
  if (!account) throw new Error("the account is missing");
  return { ...account, used: { ...account.used, tokens: used }, reserved: { ...account.reserved, tokens: reserved } };
}

async function accountsOf(runtime: Runtime): Promise<Account[]> {
  return [...(await runtime.accounts("w")), ...(await runtime.accountsAbove())];
}

describeRuntimes("forecasts of budgets", (stage) => {
  it("followers learn when a limit will be met, as `troupe forecast` computes it, and when that changes", async () => {
    const { runtime, events, forecasts } = await walk(stage(), { maxTokens: 2_000 });
    expect(forecasts.length).toBeGreaterThan(0);
    // Fewer than the commits that reserve and settle: each told something new.
    expect(forecasts.length).toBeLessThan(2 * STEPS);
    const accounts = await accountsOf(runtime);
    for (const forecast of forecasts) {
      const { accountId, at, limit } = forecast;
      const account = accountAt(
        accounts.find(({ id }) => id === accountId),
        forecast,
      );
      expect(forecastsOf(account, at).find((one) => one.limit === limit)).toEqual(figuresOf(forecast));
    }
    expect(forecasts.at(-1)).toMatchObject({
      agentId: "w",
      turnId: "w#1",
      cursor: null,
      accountId: "turn:w#1",
      limit: "maxTokens",
      max: 2_000,
      message: expect.stringMatching(
        /^walker, this turn: \d+ of 2,000 tokens; at this rate the limit is met at .* UTC$/,
      ),
    });
    const [first] = forecasts;
    expect(events.some(({ cursor }) => cursor !== null && cursor === first?.after)).toBe(true);
    // No forecast is stored.
    const stored: string[] = [];
    for await (const event of runtime.follow("w")) {
      stored.push(event.type);
      if (event.type === "turn.completed") break;
    }
    expect(stored).not.toContain("budget.forecast");
  });

  it("an owner's account has forecasts with its renewal, the tenant's has none", async () => {
    const accounts = { owner: { perDay: { maxTokens: 4_000 } }, tenant: { perDay: { maxTokens: 4_000 } } };
    const { runtime, forecasts } = await walk(stage(), {}, accounts);
    expect(new Set(forecasts.map(({ accountId }) => accountId))).toEqual(new Set(["owner:perDay:ada"]));
    const account = (await accountsOf(runtime)).find(({ id }) => id === "owner:perDay:ada");
    for (const forecast of forecasts) {
      expect(forecastsOf(accountAt(account, forecast), forecast.at)).toEqual([figuresOf(forecast)]);
      expect(forecast.renewsAt).toBe(account?.outer?.endsAt);
    }
  });

  it("a limit of one agent alone, and one that is far away, have none", async () => {
    const { forecasts } = await walk(stage(), { maxSteps: 8, maxToolCalls: 8, maxTokens: 1_000_000 });
    expect(forecasts).toEqual([]);
  });
});
