import { expect, test } from "vitest";
import { type AgentDefinition, type AgentOptions, defineAgent } from "../../../src/index.ts";
import { accountJsonSchema } from "../../../src/server/api/agent-json.ts";
import { pageOf } from "../../../src/server/api/answers.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { bob, served } from "./served.ts";

function miserWith(budget?: AgentOptions["budget"]): AgentDefinition {
  const usage = { inputTokens: 20, outputTokens: 20 };
  return defineAgent({
    name: "miser",
    model: scriptedModel(() => ({ text: "Done.", usage })),
    maxOutputTokens: 300,
    ...(budget ? { budget } : {}),
  });
}

/** A turn of a new miser, which waits in a request for budget. */
async function openTurn(ask: Awaited<ReturnType<typeof served>>["ask"]): Promise<string> {
  const created = await ask("POST /api/agents", { body: { definition: "miser" } });
  const { agentId } = (await created.json()) as { agentId: string };
  await ask(`POST /api/agents/${agentId}/turns`, { body: { input: "go" }, headers: { prefer: "wait=30" } });
  return agentId;
}

test("a caller sees the accounts over its own agents, and neither the tenant's nor another's", async () => {
  const { ask } = await served({
    accounts: { owner: { perDay: { maxSteps: 100 } }, tenant: { perDay: { maxSteps: 1_000 } } },
  });
  const accounts = async (token?: string): Promise<string[]> => {
    const page = await (await ask("GET /api/accounts", token === undefined ? {} : { token })).json();
    return pageOf(accountJsonSchema)
      .parse(page)
      .items.map(({ id }) => id);
  };
  const { agentId } = (await (await ask("POST /api/agents", { body: { definition: "clerk" } })).json()) as {
    agentId: string;
  };
  const turn = await ask(`POST /api/agents/${agentId}/turns`, {
    body: { input: "chat" },
    headers: { prefer: "wait=30" },
  });
  expect(turn.status).toBe(200);
  expect(await accounts()).toEqual(["owner:perDay:ada"]);
  expect(await accounts(bob)).toEqual([]);
  expect((await ask("GET /api/accounts", { token: null })).status).toBe(401);
});

test("a caller grants no more budget to its own agent, unless a rule allows it", async () => {
  const miser = miserWith({ maxTokens: 10, askAtLimit: true });
  for (const mayDecide of [undefined, () => true]) {
    const { ask } = await served({ agents: [miser], mayDecide });
    await openTurn(ask);
    const { items } = (await (await ask("GET /api/requests")).json()) as {
      items: { requestId: string; kind: string; argumentsHash: string }[];
    };
    const [request] = items;
    expect(request?.kind).toBe("budget");
    const place = `POST /api/requests/${request?.requestId.replace("#", ".") ?? ""}`;
    const { argumentsHash } = request ?? {};
    const approval = await ask(place, { body: { verdict: "approved", argumentsHash } });
    const rejection = await ask(place, { body: { verdict: "rejected" } });
    expect([approval.status, rejection.status]).toEqual(mayDecide ? [200, 409] : [403, 200]);
  }
});

test("a caller never grants more of the tenant's budget, also under a rule that allows it, and learns none of its figures", async () => {
  const miser = miserWith();
  for (const mayDecide of [undefined, () => true]) {
    const accounts = { tenant: { perDay: { maxTokens: 17, askAtLimit: true } } };
    const { ask, runtime } = await served({ agents: [miser], mayDecide, accounts });
    const agentId = await openTurn(ask);
    const { items } = (await (await ask("GET /api/requests")).json()) as {
      items: { requestId: string; argumentsHash: string; prompt: string; arguments: object }[];
    };
    const [request] = items;
    expect(request?.prompt).toMatch(/^the tenant, per day: its limit of tokens; it renews at/);
    expect(JSON.stringify(request?.arguments)).not.toContain("17,");
    const place = `POST /api/requests/${request?.requestId.replace("#", ".") ?? ""}`;
    const { argumentsHash } = request ?? {};
    const own = { argumentsHash, accountId: `agent:${agentId}` };
    for (const body of [
      { verdict: "approved", argumentsHash },
      { verdict: "edited", arguments: { add: 5_000 } },
      { verdict: "edited", arguments: { ...request?.arguments, add: 5_000 } },
      { verdict: "edited", arguments: { ...request?.arguments, ...own, add: 5_000 } },
    ]) {
      expect((await ask(place, { body })).status, JSON.stringify(body)).toBe(403);
    }
    expect(await runtime.accountsAbove()).toMatchObject([{ limits: { maxTokens: 17 } }]);
    expect((await ask(place, { body: { verdict: "rejected" } })).status).toBe(200);
  }
});

test("an amount that is none is refused, and the request stays open", async () => {
  const miser = miserWith({ maxTokens: 10, askAtLimit: true });
  const { ask, runtime } = await served({ agents: [miser], mayDecide: () => true });
  await openTurn(ask);
  const [request] = await runtime.requests();
  const place = `POST /api/requests/${request?.requestId.replace("#", ".") ?? ""}`;
  for (const add of [-1, 0, 0.5, 1e16, Number.MAX_VALUE, "5", null, [5], {}, true]) {
    const answer = await ask(place, { body: { verdict: "edited", arguments: { add } } });
    expect(answer.status, JSON.stringify(add)).toBe(400);
  }
  for (const args of [{}, { add: 5, limit: "maxSteps" }, { add: 5, accountId: "tenant:total" }, { add: 5, more: 1 }]) {
    expect((await ask(place, { body: { verdict: "edited", arguments: args } })).status).toBe(400);
  }
  expect(await runtime.requests()).toEqual([request]);
});
