// A slow tool on its own queue: two concurrent pages, at most eight started per second, however many agents call it. Calls
// never run in the agent's own code path. By default everything runs in one process; with REDIS_URL=redis://127.0.0.1:6379
// the calls go over Redis, and any other process with this agent that works on the queue "browser" can run them. With
// POSTGRES_URL=postgres://127.0.0.1/agents too, the agents are in Postgres, and Redis only has the queues.
import { setTimeout as delay } from "node:timers/promises";
import { createRuntime, defineAgent, defineTool, type Queues, type Stores, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const site: Record<string, string> = {
  "/": "Allotment society",
  "/plots": "24 plots, 3 of them free",
  "/fees": "85 euros a year",
  "/pump": "The pump runs from May to September",
  "/contact": "Ms. Okafor, mornings",
};

/** Simulates a browser: it is slow, and the number of open pages is limited. */
const browser = { open: 0, most: 0 };

async function render(path: string, signal: AbortSignal): Promise<string> {
  browser.open += 1;
  browser.most = Math.max(browser.most, browser.open);
  try {
    await delay(120, undefined, { signal });
    return site[path] ?? "404";
  } finally {
    browser.open -= 1;
  }
}

const visit = defineTool({
  name: "visit",
  description: "Opens a page in a browser and gives what it says.",
  parameters: z.object({ path: z.string().startsWith("/") }),
  queue: "browser",
  effect: "none", // no effect: the call may be repeated, for instance after its worker died
  maxAttempts: 3,
  timeoutMs: 20_000, // per attempt, from its start; waiting in the queue does not count
  execute: async ({ path }, run) => {
    run.progress({ path, state: "loading" });
    return await render(path, run.signal);
  },
});

const scout = defineAgent({
  name: "scout",
  tools: [visit],
  model: scriptedModel(({ messages }) => {
    const pages = messages.filter(({ role }) => role === "tool");
    if (pages.length > 0) return `Seen: ${pages.map(({ content }) => textOf(content)).join("; ")}.`;
    return { toolCalls: Object.keys(site).map((path) => ({ name: "visit", arguments: { path } })) };
  }),
});

/** The stores and queues: in this process, or in servers that other processes share. The queues need a Redis. */
async function places({ REDIS_URL: redis, POSTGRES_URL: postgres }: NodeJS.ProcessEnv) {
  const found: { stores?: Stores; queues?: Queues } = {};
  if (postgres !== undefined) {
    const { postgresStores } = await import("troupe/stores/postgres");
    found.stores = postgresStores({ url: postgres, schema: "example_14" });
  }
  if (redis === undefined) return found;
  const { redisStores } = await import("troupe/stores/redis");
  const { bullmqQueues } = await import("troupe/queues/bullmq");
  found.stores ??= redisStores({ url: redis, prefix: "example-14:" });
  found.queues = bullmqQueues({ url: redis, prefix: "example-14:queue:" });
  return found;
}

const runtime = await createRuntime({
  agents: [scout],
  ...(await places(process.env)),
  work: { queues: { browser: { concurrency: 2, rateLimit: { max: 8, perMs: 1_000 } } } },
});
const agent = await runtime.agent("scout");
await agent.start();

const turn = agent.executeTurn("Have a look at the society's pages.");
for await (const event of turn) {
  if (event.type === "tool.progress") console.log("visits", JSON.stringify(event.update));
  if (event.type === "tool.completed") console.log(`${event.callId} is done`);
}
console.log((await turn.result).text);
console.log(`At most ${browser.most} pages were open at a time.`);
await runtime.shutdown();
