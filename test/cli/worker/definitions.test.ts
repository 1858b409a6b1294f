import { describe, expect, test } from "vitest";
import { collectDefinitions } from "../../../src/agents/index.ts";
import { type DefinitionOptions, definitionsOf } from "../../../src/cli/commands/worker.ts";
import { askTeam, documentModel } from "../../../src/demo/index.ts";

const context = { directory: process.cwd(), environment: {}, note: () => undefined };
const names = async (options: DefinitionOptions) => {
  const { agents } = await definitionsOf(context, options);
  return [...collectDefinitions(agents).keys()];
};

describe("the agents of a worker", () => {
  test("must not be empty", async () => {
    await expect(names({})).rejects.toThrow("give --agents FILE, or --ask for questions of `ask`");
  });

  test.each([{ files: "docs" }, { model: "offline" }, { maxReaders: 3 }])("%j requires --ask", async (options) => {
    await expect(names({ agents: "x.ts", ...options })).rejects.toThrow(/^--(files|model|max-readers) requires --ask/);
  });

  test("questions of the same folder, model and number of readers, and no others", async () => {
    const own = await names({ ask: true, model: "offline" });
    expect(own).toEqual([expect.stringMatching(/^lead-[\w-]{6}$/), expect.stringMatching(/^reader-[\w-]{6}$/)]);
    expect(await names({ ask: true })).toEqual(own);
    const others = [{ files: "docs" }, { maxReaders: 2 }].map((options) => names({ ask: true, ...options }));
    for (const other of await Promise.all(others)) expect(other).not.toEqual(own);
  });

  test("an agent of a YAML file, with its plugins", async () => {
    const { agents } = await definitionsOf(context, { agents: "examples/teal/agent.yaml" });
    expect(agents.map(({ name }) => name)).toEqual(["MathAgent"]);
    expect(agents[0]?.tools.tools.map(({ name }) => name)).toContain("math-add");
  });

  test("a team that is run by its own process has readable names", () => {
    const { name } = askTeam({ root: "docs", model: documentModel(), maxReaders: 6 }, "here");
    expect(name).toBe("lead");
  });
});
