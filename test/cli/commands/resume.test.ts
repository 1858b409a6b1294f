// How `resume`, `approve` and `run` describe the turn that they continue.
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { askingAgents } from "../../e2e/asking-agents.ts";
import { workFolder } from "../../e2e/cli-process.ts";
import { troupe } from "../support/in-process.ts";

let folder: ReturnType<typeof workFolder>;
beforeAll(() => {
  folder = workFolder(askingAgents);
});
afterAll(() => folder.remove());

const cli = (...words: readonly string[]) => troupe([...words, "--store", join(folder.path, "jobs.db")]);
const till = (input: string) => cli("run", join(folder.path, "till.mjs"), input, "--agent-id", "till");

test("the input is that of the resumed turn, not of the first", async () => {
  expect(await till("pay Ann 5")).toMatchObject({ code: 4 });
  expect(await cli("reject", "till")).toMatchObject({ code: 0 });
  expect(await till("pay Bo 7")).toMatchObject({ code: 4 });
  const waiting = await cli("resume", "till");
  expect(waiting).toMatchObject({ code: 4 });
  expect(waiting.out[0]).toBe("Input: pay Bo 7");
  const rejected = await cli("reject", "till");
  expect(rejected).toMatchObject({ code: 0 });
  expect(rejected.out).toContain("Input: pay Bo 7");
  const ended = await cli("resume", "till");
  expect(ended).toMatchObject({ code: 0 });
  expect(ended.out[0]).toBe("Input: pay Bo 7");
});
