// Jobs in Postgres: started by one process; decided and read by others.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { postgresProgram } from "../support/postgres-server.ts";
import { ownSchema } from "../support/postgres-stores.ts";
import { postgresOfSuite } from "../support/postgres-suite.ts";
import { askingAgents, paidIn } from "./asking-agents.ts";
import { runCli, startCli, workFolder } from "./cli-process.ts";

const payment = "till#1:1:0:1";

describe.skipIf(!postgresProgram)("on one Postgres", () => {
  const postgres = postgresOfSuite();
  let folder: ReturnType<typeof workFolder>;
  let url: string;
  beforeEach(() => {
    folder = workFolder(askingAgents);
    url = `${postgres.server.url}?schema=${ownSchema()}`;
  });
  afterEach(() => folder.remove());

  const cli = (...words: readonly string[]) => runCli(folder.path, [...words, "--store", url]);

  test("a waiting job is decided by the command that it prints, and done once", async () => {
    const asked = await cli("run", "till.mjs", "pay Ann 5", "--agent-id", "till");
    expect(asked.code, asked.stderr).toBe(4);
    expect(asked.stdout).toContain(`main.ts approve ${payment} --store '${url}'\n`);
    expect(asked.stderr).toBe("");
    const approved = await cli("approve", "--by", "anna");
    expect(approved.code, approved.stderr).toBe(0);
    expect(approved.stdout).toContain("paid 5 to Ann");
    expect(paidIn(folder.path)).toEqual(["Ann 5"]);
    expect((await cli("list")).stdout).toMatch(/^till +chief +finished +1 /m);
  });

  test("workers take the turns of clients over queues in the same Postgres", async () => {
    const worker = startCli(folder.path, ["worker", "--agents", "till.mjs", "--store", url]);
    await worker.line((line) => line.startsWith("Worker "));
    const told = await cli("run", "till.mjs", "good morning", "--agent-id", "till");
    expect(told.code, told.stderr).toBe(0);
    expect(told.stdout).toContain("The turn runs on a worker.\n");
    expect(told.stdout).toContain("message 1");
    expect((await cli("queues")).stdout).toMatch(/^wake +/m);
    worker.signal("SIGTERM");
    expect((await worker.ended).code).toBe(0);
  });

  test("an address without a server, or without agents, is reported in one line", async () => {
    const away = await runCli(folder.path, ["list", "--store", "postgres://app:hunter2@127.0.0.1:1/agents"]);
    expect(away.code).toBe(1);
    expect(away.stderr).toMatch(
      /^troupe: store_unavailable: postgres:\/\/app@127\.0\.0\.1:1\/agents: Postgres does not answer .*\(nothing listens at this address: start the server, or give another address\)\n$/,
    );
    const empty = await cli("list");
    expect(empty.stdout).toMatch(
      /^There are no agents in postgres:\/\/troupe@127\.0\.0\.1:\d+\/postgres\?schema=t\w+\.\n$/,
    );
  });
});
