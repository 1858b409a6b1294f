// A rule on who may decide (`mayDecide`) applies to the command line too.
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createRuntime } from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { cashier, payment } from "../cli/support/asking.ts";
import { askingAgents, paidIn } from "./asking-agents.ts";
import { runCli, workFolder } from "./cli-process.ts";

const rule = 'export const mayDecide = ({ by, verdict }) => verdict === "rejected" || by === "ada";\n';
const files = {
  ...askingAgents,
  "guarded.mjs": `export { agent } from "./till.mjs";\n${rule}`,
  "broken.mjs": 'export { agent } from "./till.mjs";\nexport const mayDecide = "ada";\n',
};
const requestId = "till#1:1:0:1";

let folder: ReturnType<typeof workFolder>;
beforeEach(() => {
  folder = workFolder(files);
});
afterEach(() => folder.remove());
const cli = (...words: readonly string[]) => runCli(folder.path, words);

describe("an agent file with a rule", () => {
  test("is applied by every command that decides, also if the decision is only stored", async () => {
    await cli("run", "guarded.mjs", "pay Ann 5", "--agent-id", "till");
    const refused = [["approve"], ["approve", "--no-run"], ["approve", "--edit", '{"to":"Bo","amount":1}']];
    const told = {
      code: 2,
      stdout: "",
      stderr: `troupe: policy_refused: bo may not decide request "${requestId}" (decide as another person with --by NAME)\n`,
    };
    const ended = await Promise.all(refused.map((words) => cli(...words, requestId, "--by", "bo")));
    expect(ended).toEqual([told, told, told]);
    expect(paidIn(folder.path)).toEqual([]);
    const approved = await cli("approve", "--by", "ada", "--quiet");
    expect(approved).toMatchObject({ code: 0, stdout: "paid 5 to Ann\n" });
  });

  test("may be given for a request without one, and every user may reject", async () => {
    await cli("run", "till.mjs", "pay Ann 5", "--agent-id", "till");
    const approved = await cli("approve", "--by", "bo", "--agents", "guarded.mjs", "--no-run");
    expect(approved.stderr).toContain("bo may not decide");
    expect((await cli("reject", "--by", "bo", "--agents", "guarded.mjs", "--no-run")).code).toBe(0);
  });

  test("that is not a function is refused", async () => {
    const { code, stderr } = await cli("run", "broken.mjs", "pay Ann 5");
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /^troupe: invalid_input: broken\.mjs exports a mayDecide that is not a function; it must be /,
    );
  });
});

describe("a request whose program has a rule", () => {
  beforeEach(async () => {
    const stores = sqliteStores(join(folder.path, "jobs.db"));
    const agents = [cashier([payment("Ann", 5)], [])];
    const runtime = await createRuntime({ agents, stores, mayDecide: ({ by }) => by === "ada" });
    const agent = await runtime.agent("cashier", { agentId: "till" });
    await agent.start();
    await agent.executeTurn("Pay.").settled;
    await runtime.shutdown();
  });
  const store = ["--store", "jobs.db"];

  test("is not decided without it: the error names where the rule can come from", async () => {
    for (const verb of ["approve", "reject"]) {
      const { code, stdout, stderr } = await cli(verb, requestId, "--no-run", "--by", "ada", ...store);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toMatch(/there is a rule on who may decide request "till#1:1:0:1": .* with --agents FILE, or/);
    }
    const without = await cli("approve", requestId, "--no-run", "--agents", "till.mjs", ...store);
    expect(without.stderr).toMatch(/till\.mjs exports none: .*--agents FILE/);
    expect((await cli("requests", ...store)).stdout).toContain(requestId);
  });

  test("is decided with it, by the users it allows", async () => {
    const words = ["approve", requestId, "--no-run", "--agents", "guarded.mjs", ...store];
    expect((await cli(...words, "--by", "bo")).stderr).toContain("bo may not decide");
    expect(await cli(...words, "--by", "ada")).toMatchObject({ code: 0, stderr: "" });
  });
});
