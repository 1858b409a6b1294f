import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { holds, runTeam, statementsIn, temporaryFolder } from "./team-loop.ts";

describe("the Markdown of installed packages", () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  beforeAll(async () => {
    folder = await temporaryFolder({});
    for (const [name, file] of [
      ["commander", "Readme.md"],
      ["xstate", "README.md"],
      ["zod", "README.md"],
      ["fast-check", "README.md"],
    ] as const) {
      await mkdir(join(folder.root, name));
      await copyFile(join(import.meta.dirname, "../../node_modules", name, file), join(folder.root, name, "README.md"));
    }
  });
  afterAll(() => folder.remove());

  test.each([
    {
      path: "commander",
      question: "How do I declare a variadic argument?",
      says: /append `\.\.\.` to the argument name/,
    },
    {
      path: "commander",
      question: "What happens with excess arguments?",
      says: /excess arguments will be reported as an error/,
    },
    {
      path: "commander",
      question: "How do I make a subcommand the default?",
      says: /`isDefault: true` will run the subcommand if no other/,
    },
    { path: "zod", question: "What is Zod?", says: /Zod is a TypeScript-first validation library\./ },
    { path: "zod", question: "How do I install zod?", says: /npm install zod/ },
    {
      path: "zod",
      question: "What happens when validation fails?",
      says: /the `\.parse\(\)` method will throw a `ZodError`/,
    },
    { path: "xstate", question: "How do I install xstate?", says: /npm install xstate/ },
    {
      path: ".",
      question: "Which method throws a ZodError when validation fails?",
      says: /`\.parse\(\)` method will throw/,
    },
  ])("$path: $question", async ({ path, question, says }) => {
    const root = join(folder.root, path);
    const { answer } = await runTeam(root, question);
    expect(answer).toMatch(says);
    const statements = statementsIn(answer);
    expect(statements.length).toBeGreaterThan(0);
    for (const statement of statements) expect([statement, await holds(root, statement)]).toEqual([statement, true]);
  });

  test("finds nothing on a topic that none of them covers", async () => {
    const { answer } = await runTeam(folder.root, "Who won the chess championship of 1972?");
    expect(answer).toContain("Nothing was found on");
  });
});
