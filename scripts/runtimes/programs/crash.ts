/**
 * One process of a job that is killed on its way: `crash.js STORE SCENE start` reaches the scene, prints `reached` and hangs until it is
 * killed; `crash.js STORE SCENE resume` continues the turn and prints what came of it. STORE: the path of a SQLite file, or an address of
 * Redis or Postgres. Each run of a tool is a line in `effects.txt` of the current folder.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createRuntime, defineAgent, defineTool, type Queues, type Stores, subagent, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const [place = "", scene = "", phase = ""] = process.argv.slice(2);
const isFirst = phase === "start";
const never = new Promise<never>(() => undefined);

function reached(): Promise<never> {
  process.stdout.write("reached\n");
  return never;
}

const hangsAt = (name: string): boolean => isFirst && scene === name;

const parameters = z.object({ to: z.string() });
async function pay({ to }: { readonly to: string }): Promise<string> {
  appendFileSync("effects.txt", `paid ${to}\n`);
  return hangsAt("in the tool") ? reached() : `paid ${to}`;
}
const payTool = defineTool({ name: "pay", description: "Pays.", parameters, effect: "once", execute: pay });
const queuedPay = defineTool({
  name: "queued_pay",
  description: "Pays, on a worker of a queue.",
  parameters,
  effect: "once",
  queue: "till",
  execute: pay,
});

const reader = defineAgent({
  name: "reader",
  model: scriptedModel(({ messages }) => {
    const question = textOf(messages.at(-1)?.content ?? "");
    // In the second phase the script goes on with the call that was not answered.
    return { text: `read ${question}`, ...(hangsAt("in a subagent") && { delayUntil: reached() }) };
  }),
});
const call = (name: string, given: Readonly<Record<string, string>>) => ({ toolCalls: [{ name, arguments: given }] });
const till = defineAgent({
  name: "till",
  tools: [payTool, queuedPay, subagent(reader, { budget: { maxTokens: 5_000 } })],
  budget: { maxTokens: 50_000, maxSteps: 9 },
  model: scriptedModel(({ messages }) => {
    const results = messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content));
    if (results.length === 0) return call(scene === "in a queued tool" ? "queued_pay" : "pay", { to: "Ann" });
    const hangs = hangsAt("after the tool") || hangsAt("in a queued tool");
    if (results.length === 1)
      return { ...call("reader", { input: "the receipt" }), ...(hangs && { delayUntil: reached() }) };
    return `Done: ${results.join("; ")}`;
  }),
});

async function opened(): Promise<{ stores: Stores; queues?: Queues }> {
  if (place.startsWith("redis:")) {
    const { redisStores } = await import("troupe/stores/redis");
    const { bullmqQueues } = await import("troupe/queues/bullmq");
    const prefix = `${scene.replaceAll(" ", "-")}:`;
    const queues = bullmqQueues({ url: place, prefix: `${prefix}queue:` });
    return { stores: redisStores({ url: place, prefix }), ...(scene === "in a queued tool" && { queues }) };
  }
  if (place.startsWith("postgres:")) {
    const { postgresStores } = await import("troupe/stores/postgres");
    return { stores: postgresStores({ url: place, schema: scene.replaceAll(" ", "_") }) };
  }
  const { sqliteStores } = await import("troupe/stores/sqlite");
  return { stores: sqliteStores(place) };
}

const { stores, queues } = await opened();
const runtime = await createRuntime({
  agents: [till],
  stores,
  ...(queues && { queues, work: { queues: { till: { concurrency: 1 } } } }),
});
const agent = await runtime.agent("till", { agentId: "desk-7" });
await agent.start();
const turn = isFirst ? agent.executeTurn("Pay Ann.") : agent.openTurn();
if (turn === undefined) throw new Error("no turn is open");
const { text, stopReason } = await turn.result;
const later = await agent.executeTurn("And again?").result;
const tree = await stores.exportTree("default", "desk-7");
await runtime.shutdown();
process.stdout.write(
  JSON.stringify({
    text,
    stopReason,
    later: later.text,
    effects: existsSync("effects.txt") ? readFileSync("effects.txt", "utf8").split("\n").length - 1 : 0,
    // What every runtime has to write alike: the kinds of entries of each agent, in their order, and the accounts.
    journal: tree?.rows.flatMap(({ agentId, entries }) => entries.map(({ type }) => `${agentId} ${type}`)),
    accounts: tree?.accounts.map(({ id, used }) => `${id} ${used.tokens} tokens, ${used.steps} steps`),
  }),
);
