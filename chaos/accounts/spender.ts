/**
 * One process of the scenario ACCOUNTS: `node chaos/accounts/spender.ts ORDERS` (JSON). It finishes the turns that earlier processes left
 * open, and then runs one turn of each of its agents, all on the accounts of their owners and of the tenant. `TROUPE_FAULT="name:k"` kills
 * it at a fault point.
 */
import { z } from "zod";
import { createRuntime, defineAgent, defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { storesAt } from "../stores-at.ts";
import { accountOrdersSchema, ownerOf } from "./orders.ts";

/** Used by each call. At most 410 are reserved, so that what is reserved and not used is released again. */
const usage = { inputTokens: 10, outputTokens: 150 };
const LEASE_MS = 1_000;
const CALLS_PER_TURN = 3;

const { store, agentIds, ownerTokens, tenantTokens } = accountOrdersSchema.parse(JSON.parse(process.argv[2] ?? "{}"));
const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});
const clerk = defineAgent({
  name: "clerk",
  maxOutputTokens: 400,
  tools: [look],
  model: scriptedModel(({ messages }) =>
    messages.filter(({ role }) => role === "tool").length < CALLS_PER_TURN - 1
      ? { toolCalls: [{ name: "look", arguments: {} }], usage }
      : { text: "Done.", usage },
  ),
});
const runtime = await createRuntime({
  agents: [clerk],
  stores: storesAt(store),
  leaseMs: LEASE_MS,
  accounts: {
    // Some windows end in the middle of a run.
    owner: { perMinute: { maxTokens: ownerTokens }, total: { maxTokens: ownerTokens, maxToolCalls: 1_000 } },
    tenant: { total: { maxTokens: tenantTokens } },
  },
});
await runtime.recover();
const turns = agentIds.map(async (agentId) => {
  const agent = await runtime.agent("clerk", { agentId, ownerId: ownerOf(agentId) });
  await agent.start();
  return await agent.executeTurn("Look twice.", { key: "once" }).result;
});
await Promise.all(turns);
await runtime.shutdown();
