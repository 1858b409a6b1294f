// A program with one run() ends with exit code 1 and the reason when its turn fails.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { repositoryRoot, sourceCondition } from "../../scripts/run-command.ts";

const program = `
import { defineAgent, openaiModel, run } from "troupe";
const clerk = defineAgent({ name: "clerk", model: openaiModel("gpt-5-mini") });
const { status, text } = await run(clerk, "Who has the key?");
console.log(status, text);
`;

it("without a key", async () => {
  const { OPENAI_API_KEY: _key, ...env } = process.env;
  const words = [`--conditions=${sourceCondition}`, "--no-warnings", "--input-type=module", "--eval", program];
  const running = promisify(execFile)(process.execPath, words, { cwd: repositoryRoot, env });
  const failed = (await running.catch((error: unknown) => error)) as { code: number; stdout: string; stderr: string };
  expect([failed.code, failed.stdout]).toEqual([1, ""]);
  expect(failed.stderr).toContain('TurnFailedError: the turn of agent "clerk" failed: ');
  expect(failed.stderr).toContain("OPENAI_API_KEY");
});
