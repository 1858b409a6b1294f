// `troupe delete` whose process is killed for real, and while another process runs the agent.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventOf, question, runCli, startCli, allotment, workFolder } from "./cli-process.ts";
import { rows } from "../support/full.ts";

let folder: ReturnType<typeof workFolder>;
beforeEach(() => {
  folder = workFolder(allotment);
});
afterEach(() => folder.remove());

const ask = ["ask", "--files", "notes", "--question", question, "--json"];

function bytes(): string {
  const store = join(folder.path, ".troupe");
  return readdirSync(store)
    .map((name) => readFileSync(join(store, name), "latin1"))
    .join("");
}

const steps = ["deletion.begun", "tree.deleted", "copies.deleted", "data.forgotten", "deletion.finished"] as const;

test.each(rows(steps, ["tree.deleted"]))(
  "a deletion that was killed after %s is finished by the same command",
  async (step) => {
    await runCli(folder.path, ask);
    const { stdout } = await runCli(folder.path, ["list", "--json"]);
    const { agentId } = JSON.parse(stdout) as { agentId: string };
    const deletion = ["delete", agentId, "--yes"];
    expect((await runCli(folder.path, deletion, { TROUPE_FAULT: `${step}:1` })).code).toBe("SIGKILL");
    const again = await runCli(folder.path, deletion);
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining(agentId) as string });
    expect(bytes()).not.toContain(question);
    expect(bytes()).not.toContain(agentId);
    expect((await runCli(folder.path, ["audit", agentId])).stdout).toContain("consistent");
  },
);

test("an agent that another process runs is aborted there and deleted; its process ends", async () => {
  const job = startCli(folder.path, ask, { TROUPE_OFFLINE_SPEED: "2" });
  const line = await job.line((text) => text.includes('"type":"step.started"'));
  const rootAgentId = eventOf(line)?.rootAgentId ?? "";
  const refused = await runCli(folder.path, ["delete", rootAgentId, "--yes"]);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("agent_busy") as string });
  const deleted = await runCli(folder.path, ["delete", rootAgentId, "--abort", "--yes"]);
  expect(deleted).toMatchObject({ code: 0, stdout: expect.stringContaining(`Deleted ${rootAgentId}`) as string });
  const { code } = await job.ended;
  expect(code).not.toBe(0);
  expect((await runCli(folder.path, ["list"])).stdout).toContain("There are no agents");
  expect(bytes()).not.toContain(question);
});
