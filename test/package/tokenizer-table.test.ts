import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compressedTables } from "../../scripts/compressed-tables.ts";
import { installedBytes } from "../../scripts/package-contents.ts";
import { repositoryRoot } from "../../scripts/run-command.ts";

const texts = [
  "Who has the key?",
  "zażółć gęślą jaźń 🦜\u0000\ufffd",
  "日本語のテキスト",
  "\r\n\t  x".repeat(50),
  "<|endoftext|>",
];
const program = `
  import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
  const options = { disallowedSpecial: new Set() };
  console.log(JSON.stringify(${JSON.stringify(texts)}.map((text) => countTokens(text, options))));
`;
const expected = texts.map((text) => countTokens(text, { disallowedSpecial: new Set() }));

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "troupe-tokenizer-"));
  const input = join(folder, "program.js");
  writeFileSync(input, program);
  const bundle = await rolldown({
    input,
    platform: "node",
    external: isBuiltin,
    resolve: { modules: [join(repositoryRoot, "node_modules")] },
    plugins: [compressedTables],
    checks: { bundlerTimings: false },
  });
  await bundle.write({ file: join(folder, "alone", "bundle.mjs"), format: "esm", codeSplitting: false });
  await bundle.close();
});
afterAll(() => rmSync(folder, { recursive: true }));

test("the tokenizer with a compressed table counts as the original does, from one file, in less than half of its bytes", () => {
  expect(readdirSync(join(folder, "alone"))).toEqual(["bundle.mjs"]);
  const output = execFileSync(process.execPath, [join(folder, "alone", "bundle.mjs")], { encoding: "utf8" });
  expect(JSON.parse(output)).toEqual(expected);
  expect(installedBytes(join(folder, "alone"))).toBeLessThan(1_300_000);
});
