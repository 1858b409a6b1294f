// An agent has the same status in every command, with the exit codes listed in docs/cli.md.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { repositoryRoot } from "../../../scripts/run-command.ts";
import { exitCodes } from "../../../src/cli/failure.ts";
import { signalExitCodes } from "../../../src/cli/job/interrupts.ts";
import { sqliteStores } from "../../../src/stores/sqlite.ts";
import { workFolder } from "../../e2e/cli-process.ts";
import { troupe } from "../support/in-process.ts";

const files = {
  "agents.mjs": `import { askUser, defineAgent } from "troupe";
import { scriptedModel } from "troupe/testing";
const fails = { ...scriptedModel("x"), name: "fails", generate: () => Promise.reject(new TypeError("the wire is cut")) };
const asks = scriptedModel(({ messages }) =>
  messages.at(-1).role === "tool" ? "Thanks." : { toolCalls: [{ name: "ask_user", arguments: { question: "Which day?" } }] });
export const agents = [
  defineAgent({ name: "done", model: scriptedModel("Done.") }),
  defineAgent({ name: "failing", model: fails, maxModelAttempts: 1 }),
  defineAgent({ name: "spent", model: scriptedModel("Done."), budget: { maxTokens: 1 } }),
  defineAgent({ name: "asking", model: asks, tools: [askUser()] }),
];
`,
};

let folder: ReturnType<typeof workFolder>;
beforeAll(() => {
  folder = workFolder(files);
});
afterAll(() => folder.remove());

const path = (): string => join(folder.path, "jobs.db");
const cli = (...words: readonly string[]) => troupe([...words, "--store", path()]);
const run = (name: string) => cli("run", join(folder.path, "agents.mjs"), "Go.", "--agent", name, "--agent-id", name);

interface Listed {
  readonly agentId: string;
  readonly status: string;
  readonly isUnfinished: boolean;
  readonly lastTurn: unknown;
}

/** The status of an agent in `list` and `show`, after checking that text and JSON agree in each. */
async function statusOf(agentId: string): Promise<string> {
  const listed = (await cli("list", "--json")).out
    .map((line) => JSON.parse(line) as Listed)
    .find((agent) => agent.agentId === agentId);
  const shown = JSON.parse((await cli("show", agentId, "--json")).out[0] ?? "") as Listed & { readonly agent: Listed };
  expect({ ...shown, status: shown.agent.status }).toMatchObject({
    status: listed?.status,
    isUnfinished: listed?.isUnfinished,
    lastTurn: listed?.lastTurn,
  });
  const row = (await cli("list")).out.find((line) => line.startsWith(`${agentId} `));
  const words = row?.split(/ {2,}/)[2] ?? "";
  expect((await cli("show", agentId)).out[0]).toContain(`${agentId}: ${agentId}, ${words}, `);
  return words;
}

describe("an agent whose turn", () => {
  test.each([
    ["done", "finished", 0],
    ["failing", "failed", 1],
    ["spent", "stopped (token_limit)", 3],
    ["asking", "unfinished, waits for 1 decision", 4],
  ])("is %s: `%s` in every command, and exit code %i of run and resume", async (name, words, code) => {
    expect((await run(name)).code).toBe(code);
    expect(await statusOf(name)).toBe(words);
    expect((await cli("resume", name)).code).toBe(code);
    expect(await statusOf(name)).toBe(words);
  });

  test("was aborted is stopped in every command, with exit code 130", async () => {
    const aborted = await cli("abort", "asking");
    expect(aborted.code).toBe(0);
    expect((await cli("resume", "asking")).code).toBe(130);
    expect(await statusOf("asking")).toBe("stopped (user_requested)");
    expect((await cli("resume", "asking")).code).toBe(130);
  });

  test("is answered continues, with the exit code of its end", async () => {
    expect((await run("asking")).code).toBe(4);
    expect(await cli("answer", "on Friday", "--quiet")).toMatchObject({ code: 0, out: ["Thanks."] });
    expect(await statusOf("asking")).toBe("finished");
  });

  test("has ended is paused in every command if it was paused since, and runs again at the next message", async () => {
    const stores = sqliteStores(path());
    await stores.pause({ tenant: "default", agentId: "done" }, "user", Date.now());
    await stores.close();
    expect(await statusOf("done")).toBe("finished, paused");
    const again = await run("done");
    expect(again).toMatchObject({ code: 0 });
    expect(again.out.join("\n")).toContain("done is paused; this turn ends the pause.");
    expect(await statusOf("done")).toBe("finished");
  });
});

test("docs/cli.md lists every exit code", () => {
  const text = readFileSync(join(repositoryRoot, "docs/cli.md"), "utf8");
  const [, table = ""] = /\| Exit code \| Means \|\n\|---\|---\|\n((?:\|.*\n)+)/.exec(text) ?? [];
  const listed = table
    .trim()
    .split("\n")
    .flatMap((row) => (row.split("|")[1] ?? "").split(",").map(Number));
  const known = new Set<number>([...Object.values(exitCodes), ...Object.values(signalExitCodes)]);
  expect(listed.toSorted((one, other) => one - other)).toEqual([...known].toSorted((one, other) => one - other));
});
