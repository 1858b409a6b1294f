import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pinMcp } from "troupe/mcp";
import { expect, onTestFinished, test, vi } from "vitest";
import { entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { callerOf, connected } from "./served-desk.ts";
import { openTasks } from "./task-server.ts";

const opened = async (timeoutMs?: number) => {
  const server = await openTasks();
  const settings = timeoutMs === undefined ? {} : { tools: { report: { timeoutMs } } };
  const { tools, warnings } = await connected({ name: "tasks", ...server.options, ...settings });
  expect(warnings).toEqual([]);
  return { server, ...(await callerOf(tools, [{ name: "tasks__report" }])) };
};

test("a tool that runs only as a task runs as one, and shows how far it is", async () => {
  const { server, agent } = await opened();
  const turn = agent.executeTurn("go");
  const shown: unknown[] = [];
  turn.subscribe((event) => {
    if (event.type !== "tool.progress") return;
    shown.push(event.update);
    server.finish("completed");
  });
  expect((await turn.result).status).toBe("completed");
  expect(await toolTextsOf(agent)).toEqual(["the report of task1"]);
  expect(shown[0]).toEqual({ status: "working", message: "half way" });
  expect(server.effects()).toEqual(["started task1"]);
});

test("a task that fails is a known failure", async () => {
  const { server, agent, stores } = await opened();
  server.finish("failed");
  await agent.executeTurn("go").result;
  expect((await toolTextsOf(agent))[0]).toMatch(/has failed: half way/);
  expect((await entriesOfType(stores, "caller", "tool.settled"))[0]?.outcome).toBe("error");
});

test("an abort of the turn cancels the task", async () => {
  const { server, agent } = await opened();
  const turn = agent.executeTurn("go");
  turn.subscribe((event) => {
    if (event.type === "tool.progress") void turn.abort("enough");
  });
  await turn.result;
  expect(server.effects()).toEqual(["started task1", "cancelled task1"]);
});

test("the time limit cancels the task", async () => {
  const { server, agent } = await opened(300);
  await agent.executeTurn("go").result;
  expect((await toolTextsOf(agent))[0]).toMatch(/did not end within 300 ms, and was cancelled/);
  expect(server.effects()).toEqual(["started task1", "cancelled task1"]);
});

test("a task that the server has lost has an unknown outcome", async () => {
  const { server, agent } = await opened();
  const turn = agent.executeTurn("go");
  turn.subscribe((event) => {
    if (event.type === "tool.progress") server.forget();
  });
  await turn.result;
  expect((await toolTextsOf(agent))[0]).toMatch(/is not known: .*no such task/);
});

test("a task of a tool that differs from its pin is not started", async () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-tasks-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const server = await openTasks();
  const options = { name: "tasks", ...server.options, pin: join(folder, "mcp.lock.json") };
  const config = join(folder, "mcp.json");
  writeFileSync(config, JSON.stringify({ mcpServers: { tasks: server.options } }));
  await pinMcp(config, { lock: options.pin });
  const { tools } = await connected(options);
  server.describe("Now it does something else.");
  const { agent } = await callerOf(tools, [{ name: "tasks__report" }]);
  const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
  onTestFinished(() => warned.mockRestore());
  await agent.executeTurn("go").result;
  expect(warned).toHaveBeenCalledOnce();
  expect((await toolTextsOf(agent))[0]).toMatch(/something else/);
  expect(server.effects()).toEqual([]);
});
