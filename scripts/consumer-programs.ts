import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "./run-command.ts";

/** Programs of a user who has installed the package and nothing else; each ends with an error if a check fails. */

interface ToolSchema {
  readonly imports: string;
  /** An object schema of `a`, a number, and `b`, a number that is 2 if it is missing. */
  readonly schema: string;
}

export const zodSchema: ToolSchema = {
  imports: 'import { z } from "zod";',
  schema: "z.object({ a: z.number(), b: z.number().default(2) })",
};
export const arktypeSchema: ToolSchema = {
  imports: 'import { type } from "arktype";',
  schema: 'type({ a: "number", b: "number = 2" })',
};
export const valibotSchema: ToolSchema = {
  imports: 'import { toStandardJsonSchema } from "@valibot/to-json-schema";\nimport * as v from "valibot";',
  schema: "toStandardJsonSchema(v.object({ a: v.number(), b: v.optional(v.number(), 2) }))",
};

/** A minimal tool: its arguments are typed by the author's own schema library and validated when it is called. */
export function toolProgram({ imports, schema }: ToolSchema): string {
  return `
import { createRuntime, defineAgent, defineTool } from "troupe";
import { scriptedModel } from "troupe/testing";
${imports}

type Exactly<One, Other> = (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false;

const add = defineTool({
  name: "add",
  description: "Adds.",
  parameters: ${schema},
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
const events: string[] = [];
for await (const { type } of turn) if (type === "tool.failed" || type === "tool.completed") events.push(type);
await runtime.shutdown();
if (events.join() !== "tool.failed,tool.completed") throw new Error("the calls of the tool emitted " + events.join());
`;
}

/** Errors for missing packages of Redis, Postgres and protocols name the package. */
export const optionalPackagesProgram = `
import { createRuntime, defineAgent, run } from "troupe";
import { remoteAgent } from "troupe/a2a";
import { mcp } from "troupe/mcp";
import { mcpSurface } from "troupe/mcp/server";
import { bullmqQueues } from "troupe/queues/bullmq";
import { postgresStores } from "troupe/stores/postgres";
import { redisStores } from "troupe/stores/redis";
import { sqliteStores } from "troupe/stores/sqlite";
import { scriptedModel } from "troupe/testing";

const url = "redis://127.0.0.1:1";
const messages = [];
for (const options of [
  { stores: redisStores({ url }) },
  { stores: postgresStores({ url: "postgres://127.0.0.1:1/none" }) },
  { stores: sqliteStores("./agents.db"), queues: bullmqQueues({ url }) },
]) {
  await createRuntime({ agents: [], ...options }).catch((error) => messages.push(error.message));
}
const model = scriptedModel(({ messages: said }) =>
  said.at(-1).role === "tool" ? said.at(-1).content : { toolCalls: [{ name: "far", arguments: { input: "hello" } }] },
);
const tools = [remoteAgent({ name: "far", url: "http://127.0.0.1:1" })];
messages.push((await run(defineAgent({ name: "caller", model, tools }), "go")).text);
await mcp({ name: "far", url: "http://127.0.0.1:1" }).catch((error) => messages.push(error.message));
await mcpSurface().catch((error) => messages.push(error.message));
process.stdout.write(messages.join("\\n"));
`;

/**
 * CommonJS in TypeScript: the compiler writes `require()` for the first imports. Definitions and errors of both kinds of import belong together,
 * so there is one instance of the package.
 */
export const commonJsProgram = `
import { createRuntime, defineAgent, InvalidInputError } from "troupe";
import { sqliteStores } from "troupe/stores/sqlite";
import { scriptedModel } from "troupe/testing";

async function main(): Promise<void> {
  // A variable, so that the compiler keeps import() in each of its formats.
  const load = new Function("return import('troupe')") as () => Promise<typeof import("troupe", { with: { "resolution-mode": "import" } })>;
  const imported = await load();
  const clerk = imported.defineAgent({ name: "clerk", model: scriptedModel(["Done."]) });
  const lead = defineAgent({ name: "lead", model: scriptedModel(["Done."]), tools: [imported.subagent(clerk)] });
  const runtime = await createRuntime({ agents: [lead], stores: sqliteStores(":memory:") });
  const agent = await runtime.agent("lead");
  await agent.start();
  const text: string = (await agent.executeTurn("Go.").result).text;
  await runtime.shutdown();
  let isOne = false;
  try {
    imported.defineAgent({ name: "", model: scriptedModel(["Done."]) });
  } catch (error) {
    isOne = error instanceof InvalidInputError;
  }
  if (text !== "Done." || !isOne || typeof require === "undefined") throw new Error("require() and import() differ");
}
void main();
`;

/** The program in the README, in plain JavaScript. */
export function readmeProgram(): string {
  const program = /^```ts\n([^]*?)^```$/m.exec(readFileSync(join(repositoryRoot, "README.md"), "utf8"))?.[1];
  if (program === undefined) throw new Error("README.md shows no program.");
  return program;
}
