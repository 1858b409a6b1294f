// Where an agent file is wrong: each kind of error that `import()` gives, in a module and in a file that it imports.
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { loadAgentFile, placeText, UnloadableFileError } from "../../../src/cli/job/agent-file.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "troupe-fault-")));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const kinds: readonly (readonly [what: string, file: string, text: string, place: string, mark: string])[] = [
  [
    "TypeScript that does not parse",
    "syntax.ts",
    "const a = 1;\nconst b: number = ;\n",
    "syntax.ts:2:19",
    "const b: number = ;",
  ],
  ["TypeScript that is not only types", "enum.ts", "enum Colour { Red }\n", "enum.ts:1:1", "enum Colour { Red }"],
  ["JavaScript that does not parse", "script.mjs", "const a = 1;\nconst b = ;\n", "script.mjs:2:11", "const b = ;"],
  [
    "a name that a module does not export",
    "name.mjs",
    'import { nope } from "node:fs";\n',
    "name.mjs:1:10",
    "import { nope }",
  ],
  ["code that throws", "throws.mjs", "const a = undefined;\n\ta.b();\n", "throws.mjs:2:4", "\ta.b();"],
];

async function faultOf(file: string) {
  const error: unknown = await loadAgentFile(file, folder).catch((reason: unknown) => reason);
  if (!(error instanceof UnloadableFileError)) throw error;
  return { fault: error.fault, message: error.message };
}

describe("the place of an error in an agent file:", () => {
  test.each(kinds)("%s", async (_what, file, text, place, mark) => {
    writeFileSync(join(folder, file), text);
    const { fault, message } = await faultOf(file);
    expect(message).toContain(`(at ${place})`);
    expect(fault && placeText(fault, folder)).toBe(place);
    const [shown = "", pointer = ""] = fault?.source.slice(-2) ?? [];
    expect(shown).toContain(mark);
    expect(pointer.indexOf("^") + 1).toBe(fault?.column);
  });

  test("JSON, of the file that is wrong and not of the one that imports it", async () => {
    writeFileSync(join(folder, "data.json"), '{ "a": 1,\n}');
    writeFileSync(
      join(folder, "json.mjs"),
      'import data from "./data.json" with { type: "json" };\nexport const x = data;\n',
    );
    expect((await faultOf("json.mjs")).message).toContain("(at data.json:2:1)");
  });

  test("a module that is missing has none, but its name", async () => {
    writeFileSync(join(folder, "missing.mjs"), 'import "./nowhere.mjs";\n');
    const { fault, message } = await faultOf("missing.mjs");
    expect(fault).toBeUndefined();
    expect(message).toContain("nowhere.mjs");
  });
});
