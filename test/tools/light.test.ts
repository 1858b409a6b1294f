import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";

const script = `
  import { createRequire } from "node:module";
  import { defineTool } from ${JSON.stringify(new URL("../../src/tools/index.ts", import.meta.url).href)};
  const loaded = () => Object.keys(createRequire(import.meta.url).cache).some((file) => /[\\\\/]ajv[\\\\/]/.test(file));
  const before = loaded();
  defineTool({ name: "t", description: "d", parameters: '{"type":"object"}', execute: () => 1 });
  console.log(JSON.stringify({ before, after: loaded() }));
`;

test("the JSON Schema validator is loaded by the first schema text, not by the import", () => {
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    cwd: import.meta.dirname,
  });
  expect(JSON.parse(output)).toEqual({ before: false, after: true });
});
