// A process that spends on one owner's account: it continues what others have left, and runs one turn of each of its agents.
// Arguments: the stores (a path or a URL), the limit in tokens, and the ids of its agents.
import { createRuntime, defineAgent, defineTool } from "../../src/index.ts";
import { redisStores } from "../../src/stores/redis.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { z } from "zod";

const [where = "", limit = "", ...agentIds] = process.argv.slice(2);
const { pathname } = where.includes("://") ? new URL(where) : { pathname: "" };
const stores = where.includes("://")
  ? redisStores({ url: where.slice(0, where.length - pathname.length), prefix: `${pathname.slice(1)}:` })
  : sqliteStores(where);

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});
const usage = { inputTokens: 10, outputTokens: 150 };
const clerk = defineAgent({
  name: "clerk",
  maxOutputTokens: 400,
  tools: [look],
  model: scriptedModel(({ messages }) =>
    messages.filter(({ role }) => role === "tool").length < 2
      ? { toolCalls: [{ name: "look", arguments: {} }], usage }
      : { text: "Done.", usage },
  ),
});

const runtime = await createRuntime({
  agents: [clerk],
  stores,
  leaseMs: 1_000,
  accounts: { owner: { perDay: { maxTokens: Number(limit), maxToolCalls: 1_000 } } },
});
await runtime.recover();
const turns = agentIds.map(async (agentId) => {
  const agent = await runtime.agent("clerk", { agentId, ownerId: "ada" });
  await agent.start();
  return await agent.executeTurn("Look twice.", { key: "once" }).result;
});
await Promise.all(turns);
await runtime.shutdown();
