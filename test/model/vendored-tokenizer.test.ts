import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { rolldown } from "rolldown";
import { afterEach, beforeEach, expect, test } from "vitest";
import { installedBytes } from "../../scripts/package-contents.ts";
import { vendorInto } from "../../scripts/vendor.ts";

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
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "troupe-vendored-"));
  mkdirSync(join(folder, "dist"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "dist", "program.js"), program);
  await vendorInto(join(folder, "dist"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const countsOf = (file: string): unknown => JSON.parse(execFileSync(process.execPath, [file], { encoding: "utf8" }));

test("the copy of the tokenizer counts as the original does, in less than half of its bytes", () => {
  expect(countsOf(join(folder, "dist", "program.js"))).toEqual(expected);
  expect(installedBytes(join(folder, "dist"))).toBeLessThan(1_300_000);
});

test("it counts the same from a bundle, without a file beside it", async () => {
  const bundle = await rolldown({ input: join(folder, "dist", "program.js"), platform: "node", external: isBuiltin });
  const file = join(folder, "alone", "bundle.mjs");
  await bundle.write({ file, format: "esm", codeSplitting: false });
  await bundle.close();
  rmSync(join(folder, "dist"), { recursive: true });
  expect(readdirSync(join(folder, "alone"))).toEqual(["bundle.mjs"]);
  expect(countsOf(file)).toEqual(expected);
});
