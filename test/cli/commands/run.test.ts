// The prompt and the agent of `run`: from standard input, and from several agents in a file.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CliContext } from "../../../src/cli/cli-context.ts";
import { mostInputBytes, readArgument } from "../../../src/cli/inline/standard-input.ts";
import { workFolder } from "../../e2e/cli-process.ts";
import { troupe } from "../support/in-process.ts";

/** Agents that repeat their input. */
const definitions = `import { defineAgent, subagent } from "troupe";
import { scriptedModel } from "troupe/testing";
const model = scriptedModel(({ messages }) => \`heard \${messages.at(-1).content}\`);
const reader = defineAgent({ name: "reader", model });
const lead = defineAgent({ name: "lead", model, tools: [subagent(reader)] });
const writer = defineAgent({ name: "writer", model });
`;

const files = {
  "one.mjs": `${definitions}export const agent = reader;\n`,
  "team.mjs": `${definitions}export const agents = [reader, lead];\n`,
  "named.mjs": `${definitions}export { lead as agent }; export const agents = [writer, reader, lead];\n`,
  "two.mjs": `${definitions}export const agents = [lead, reader, writer];\n`,
  "main.mjs": `${definitions}export { lead as default, writer as agent };\n`,
};

let folder: ReturnType<typeof workFolder>;
beforeAll(() => {
  folder = workFolder(files);
});
afterAll(() => folder.remove());

const at = (name: string): string => join(folder.path, name);

function run(file: string, words: readonly string[], input?: Iterable<string | Uint8Array>) {
  return troupe(["run", at(file), ...words, "--store", at("jobs.db")], {}, input);
}

describe("- as the prompt", () => {
  test("reads standard input to its end, without the last line break", async () => {
    const { code, out } = await run("one.mjs", ["-", "--quiet"], ["First ", "line\n", "second line\r\n"]);
    expect({ code, out }).toEqual({ code: 0, out: ["heard First line", "second line"] });
  });

  test("keeps a character that arrives in two chunks", async () => {
    const bytes = Buffer.from("Grüße");
    const { out } = await run("one.mjs", ["-", "--quiet"], [bytes.subarray(0, 3), bytes.subarray(3)]);
    expect(out).toEqual(["heard Grüße"]);
  });

  test.each([
    ["nothing", [], "standard input is empty"],
    ["white space", [" \n\n"], "standard input is empty"],
    ["data other than text", [Uint8Array.of(0x50, 0x4b, 0xff, 0xfe)], "not UTF-8"],
    [
      "too much text",
      Array(11).fill("x".repeat(1_000_000)),
      `more than ${mostInputBytes.toLocaleString("en-US")} bytes`,
    ],
  ])("%s is wrong usage, and no store is made", async (_, input, message) => {
    const words = ["run", at("one.mjs"), "-", "--store", at("none.db")];
    const { code, notes } = await troupe(words, {}, input);
    expect(code).toBe(2);
    expect(notes).toEqual([expect.stringContaining(message)]);
    expect(existsSync(at("none.db"))).toBe(false);
  });

  test("also works for the question of ask and the answer of a request", async () => {
    const asked = await troupe(["ask", "--question", "-", "--store", at("jobs.db")]);
    expect(asked.notes.at(-1)).toContain("standard input is empty");
    const answered = await troupe(["answer", "run-x", "-", "--store", at("jobs.db")]);
    expect(answered.notes).toEqual([expect.stringContaining("standard input is empty")]);
  });

  test("on a terminal prints how to end the text", async () => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    stdin.end("Hello\n");
    const notes: string[] = [];
    const context = { stdin: stdin as unknown as CliContext["stdin"], note: (line: string) => notes.push(line) };
    expect(await readArgument(context, "-")).toBe("Hello");
    expect(notes).toEqual([expect.stringContaining("Ctrl-D")]);
  });
});

describe("of several agents in a file", () => {
  test.each([
    ["team.mjs", "the one that has the others as subagents", "lead"],
    ["named.mjs", "the one exported as agent", "lead"],
    ["main.mjs", "the one exported as default", "lead"],
  ])("%s: %s is run", async (file, _, name) => {
    const { code, out } = await run(file, ["Hello"]);
    expect(code).toBe(0);
    expect(out[1]).toMatch(new RegExp(`^For ${name} `));
  });

  test.each([
    ["run", "two.mjs", ["Hello"], '"lead", "reader", "writer"'],
    ["chat", "two.mjs", [], '"lead", "reader", "writer"'],
  ])("%s %s asks for --agent, and creates no store", async (command, file, words, names) => {
    const { code, notes } = await troupe([command, at(file), ...words, "--store", at("none.db")]);
    expect(code).toBe(2);
    expect(notes).toEqual([
      expect.stringContaining(`${file} exports several agents, ${names}; name one of them with --agent`),
    ]);
    expect(existsSync(at("none.db"))).toBe(false);
  });

  test("--agent names one, and its conversation continues without it", async () => {
    const id = ["--agent-id", "desk-9"];
    expect(await run("two.mjs", ["Hello", "--agent", "writer", "--quiet", ...id])).toMatchObject({ code: 0 });
    const second = await run("two.mjs", ["Again", ...id]);
    expect(second).toMatchObject({ code: 0 });
    expect(second.out[1]).toMatch(/^For writer /);
  });
});
