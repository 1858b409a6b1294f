import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, it } from "vitest";
import { createAgent, createRuntime, defineAgent, InvalidInputError } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

const folder = mkdtempSync(join(tmpdir(), "troupe-definitions-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const model = scriptedModel("fine");

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

it.each([
  [{ name: undefined }, "an agent needs a name"],
  [{ name: null }, "an agent cannot be named null"],
  [{ name: 5 }, "an agent cannot be named 5"],
  [{ name: "a b" }, 'an agent cannot be named "a b"'],
  [{ instructions: 123 }, "instructions are 123; expected a text"],
  [{ instructions: [] }, "instructions are a list"],
  [{ instructions: { text: "x" } }, "did you mean the text itself?"],
  [{ instructions: {} }, "instructions are an empty object; expected a text, { file }"],
  [{ systemPrompt: "x" }, "did you mean instructions?"],
  [{ maxSteps: 3 }, "did you mean budget: { maxSteps }?"],
  [{ temprature: 1 }, "did you mean temperature?"],
  [{ store: {} }, "did you mean createAgent({ stores })"],
  [{ tools: [{}] }, "tools[0] is an object; expected a tool"],
  [{ tools: [{ kind: "other", name: "x" }] }, 'of kind "other"'],
  [{ tools: "x" }, "tools is the text"],
  [{ plugins: [{ name: "p", beforeLlm: () => undefined }] }, "did you mean hooks: { beforeLlm }?"],
  [{ plugins: [null] }, "plugins[0]"],
  [{ hooks: { beforeLLM: () => undefined } }, "did you mean beforeLlm?"],
  [{ temperature: Number.NaN }, "temperature is NaN"],
  [{ responseFormat: { type: "xml" } }, "responseFormat"],
  [{ model: { name: "m", generate: () => undefined } }, "model lacks countPromptTokens(request)"],
  [{ model: { ...model, name: 5 } }, "model.name is 5; expected a name"],
  [{ history: {} }, "history is an object; expected a history compiler"],
  [{ autoCompact: { percent: 5 } }, "did you mean atPercent?"],
  [{ output: false }, "output is false; expected a schema of zod 4"],
])("defineAgent(%j) is refused", (wrong, told) => {
  const define = (): unknown => defineAgent({ name: "desk", model, ...(wrong as object) });
  expect(define).toThrow(InvalidInputError);
  expect(define).toThrow(told);
});

const define = (path: string | URL) => (): unknown =>
  defineAgent({ name: "desk", model, instructions: { file: path } });

it("a file that is not text is refused in defineAgent() with its path", () => {
  const missing = join(folder, "missing.md");
  expect(define(missing)).toThrow(`there is no file "${missing}"`);
  expect(define(folder)).toThrow(`"${folder}" is a folder; expected the path of a text file`);
  expect(define(pathToFileURL(folder))).toThrow(`"${folder}" is a folder`);
  expect(define(new URL("https://example.org/x.md"))).toThrow('"https://example.org/x.md" is not the file: URL');
  for (const [name, bytes] of [
    ["image.png", Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0xff)],
    ["zero.bin", Uint8Array.of(65, 0, 66)],
  ] as const) {
    const path = file(name, bytes);
    expect(define(path)).toThrow(`"${path}" is not valid UTF-8 text`);
  }
  const large = file("large.md", "x".repeat(1_000_001));
  expect(define(large)).toThrow(`"${large}" has 1000001 bytes; up to 1000000 are read`);
});

it("a file is read and checked for each turn", async () => {
  const path = file("desk.md", "\uFEFFBe brief. Grüße.");
  const seen = scriptedModel("fine");
  const agent = await createAgent({ model: seen, instructions: { file: pathToFileURL(path) } });
  await agent.start();
  await agent.executeTurn("one").result;
  expect(seen.calls[0]?.messages[0]).toMatchObject({ role: "system", content: "Be brief. Grüße." });
  file("desk.md", Uint8Array.of(0xff, 0xfe, 0x00));
  const failed = await agent.executeTurn("two").result;
  expect(failed.status).toBe("failed");
  expect(failed.error?.message).toContain(`"${path}" is not valid UTF-8 text`);
  rmSync(path);
  expect((await agent.executeTurn("three").result).error?.message).toContain(`there is no file "${path}"`);
  await agent.runtime.shutdown();
});

it("createAgent and createRuntime refuse unknown options and suggest the nearest one", async () => {
  await expect(createAgent({ model, contextId: "a" } as never)).rejects.toThrow("did you mean agentId?");
  await expect(createAgent({ model, store: {} } as never)).rejects.toThrow("did you mean stores?");
  await expect(createAgent({ model, stores: {} as never })).rejects.toThrow(
    "createAgent(): stores is an object; expected stores",
  );
  await expect(createAgent({ model, metadata: [] as never })).rejects.toThrow("metadata is a list");
  await expect(createRuntime({ definitions: [] } as never)).rejects.toThrow("did you mean agents?");
  await expect(createRuntime({ agents: [{}] as never })).rejects.toThrow(
    "agents[0] is an object; expected a definition",
  );
  await expect(createRuntime({ agents: [], role: "boss" as never })).rejects.toThrow('role is the text "boss"');
  await expect(createRuntime(undefined as never)).rejects.toThrow(InvalidInputError);
});
