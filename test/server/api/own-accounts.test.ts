import { expect, test } from "vitest";
import { accountJsonSchema } from "../../../src/server/api/agent-json.ts";
import { pageOf } from "../../../src/server/api/answers.ts";
import { bob, served } from "./served.ts";

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
