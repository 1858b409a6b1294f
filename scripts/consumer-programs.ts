import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "./run-command.ts";

/** Programs of a user who has installed the package and nothing else; each ends with an error if a check fails. */

/** A minimal tool: its arguments are typed by the author's own zod and validated when it is called. */
export const toolProgram = `
import { createRuntime, defineAgent, defineTool } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

type Exactly<One, Other> = (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false;

const add = defineTool({
  name: "add",
  description: "Adds.",
  parameters: z.object({ a: z.number(), b: z.number().default(2) }),
  execute: (given) => {
    const isTyped: Exactly<typeof given, { a: number; b: number }> = true;
    return given.a + given.b + (isTyped ? 0 : 1);
  },
});
const model = scriptedModel([
  { toolCalls: [{ name: "add", arguments: { a: "one" } }] },
  { toolCalls: [{ name: "add", arguments: { a: 1 } }] },
  "Done.",
]);
const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", tools: [add], model })] });
const agent = await runtime.agent("clerk");
await agent.start();
const turn = agent.executeTurn("Add.");
const told: string[] = [];
for await (const event of turn) if (event.type === "tool.failed" || event.type === "tool.completed") told.push(event.type);
await runtime.shutdown();
if (told.join() !== "tool.failed,tool.completed") throw new Error("the calls of the tool told " + told.join());
`;

/** Errors for missing Redis packages name the package. */
export const optionalPackagesProgram = `
import { createRuntime, defineAgent, run } from "troupe";
import { remoteAgent } from "troupe/a2a";
import { bullmqQueues } from "troupe/queues/bullmq";
import { redisStores } from "troupe/stores/redis";
import { sqliteStores } from "troupe/stores/sqlite";
import { scriptedModel } from "troupe/testing";

const url = "redis://127.0.0.1:1";
const messages = [];
for (const options of [
  { stores: redisStores({ url }) },
  { stores: sqliteStores("./agents.db"), queues: bullmqQueues({ url }) },
]) {
  await createRuntime({ agents: [], ...options }).catch((error) => messages.push(error.message));
}
const model = scriptedModel(({ messages: said }) =>
  said.at(-1).role === "tool" ? said.at(-1).content : { toolCalls: [{ name: "far", arguments: { input: "hello" } }] },
);
const tools = [remoteAgent({ name: "far", url: "http://127.0.0.1:1" })];
messages.push((await run(defineAgent({ name: "caller", model, tools }), "go")).text);
process.stdout.write(messages.join("\\n"));
`;

/** The program in the README, in plain JavaScript. */
export function readmeProgram(): string {
  const program = /^```ts\n([^]*?)^```$/m.exec(readFileSync(join(repositoryRoot, "README.md"), "utf8"))?.[1];
  if (program === undefined) throw new Error("README.md shows no program.");
  return program;
}
