import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { afterEach, expect, test } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "troupe-bundle-"));
afterEach(() => rmSync(folder, { recursive: true }));

const door = (path: string) => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).pathname);
const program = `
  import { createAgent, defineTool } from ${door("index.ts")};
  import { scriptedModel } from ${door("testing/index.ts")};
  const parameters = JSON.stringify({
    type: "object",
    properties: { city: { type: "string", pattern: "(?i)^[a-z-.]+$", format: "hostname" } },
    required: ["city"],
  });
  const weather = defineTool({ name: "weather", description: "d", parameters, execute: ({ city }) => "sun in " + city });
  const asks = (city) => ({ toolCalls: [{ name: "weather", arguments: { city } }] });
  const agent = await createAgent({ model: scriptedModel([asks(7), asks("Oslo"), "done"]), tools: [weather] });
  await agent.start();
  await agent.executeTurn("go").result;
  const messages = await agent.getMessages();
  console.log(JSON.stringify(messages.filter(({ role }) => role === "tool").map(({ content }) => content)));
  await agent.runtime.shutdown();
`;
/** Packages that load only on request, which does not happen here. */
const optional = /^(?:ioredis|bullmq|openai|gpt-tokenizer|@pydantic\/genai-prices)(?:\/|$)/;

test("an agent whose tool has a JSON Schema runs from one file, in a folder without packages", async () => {
  const input = join(folder, "program.ts");
  writeFileSync(input, program);
  const bundle = await rolldown({
    input,
    platform: "node",
    resolve: { modules: [new URL("../../node_modules", import.meta.url).pathname] },
    external: (id) => isBuiltin(id) || optional.test(id),
  });
  const file = join(folder, "bundle.mjs");
  await bundle.write({ file, format: "esm", codeSplitting: false });
  await bundle.close();
  rmSync(input);
  expect(readdirSync(folder)).toEqual(["bundle.mjs"]);
  const output = execFileSync(process.execPath, [file], { encoding: "utf8", cwd: folder });
  const [refused, answer] = JSON.parse(output) as string[];
  expect(refused).toMatch(/city: .*"string"/);
  expect(answer).toBe("sun in Oslo");
});
