// Errors in a command line of `worker` and `queues` are reported before connecting.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { repositoryRoot } from "../../../scripts/run-command.ts";
import { inFull } from "../../support/full.ts";
import { troupe } from "../support/in-process.ts";

// A port without a server.
const redis = ["--redis", "redis://127.0.0.1:1"];
let folder = "";
let file = "";
beforeAll(() => {
  // Inside the repository, where `import "troupe"` finds the package.
  mkdirSync(join(repositoryRoot, ".troupe"), { recursive: true });
  folder = mkdtempSync(join(repositoryRoot, ".troupe", "worker-"));
  file = join(folder, "agents.ts");
  writeFileSync(file, agents);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const agents = `import { defineAgent, defineTool, offlineModel } from "troupe";
import { z } from "zod";
const visit = defineTool({ name: "visit", description: "Visits.", parameters: z.object({}), queue: "browser", execute: () => "" });
export const agent = defineAgent({ name: "scout", model: offlineModel(), tools: [visit] });
`;

describe("worker", () => {
  test.each<[string, readonly string[], RegExp]>([
    [
      "a command without Redis",
      ["--agents", "FILE"],
      /a worker needs the Redis or Postgres of its clients: give --redis URL or --store postgres:\/\/…, or set TROUPE_REDIS$/,
    ],
    [
      "a file for a store",
      ["--agents", "FILE", "--store", "x.db"],
      /a worker needs the Redis or Postgres of its clients/,
    ],
    ["a command without agents", redis, /a worker needs agents: give --agents FILE, or --ask for questions of `ask`$/],
    ["no such file", [...redis, "--agents", "nowhere.ts"], /there is no file nowhere\.ts/],
    ["a folder without --ask", [...redis, "--agents", "FILE", "--files", "docs"], /--files requires --ask/],
    [
      "a queue that no tool has",
      [...redis, "--agents", "FILE", "--queues", "mail"],
      /--queues names "mail", .*; they have "browser"$/,
    ],
    [
      "a queue with a concurrency of 0",
      [...redis, "--agents", "FILE", "--queues", "browser=0"],
      /would never run; its numbers must be at least 1/,
    ],
    [
      "a wake concurrency of 0",
      [...redis, "--agents", "FILE", "--concurrency", "0"],
      /--concurrency.* a whole number from 1 to 10000/,
    ],
    [
      "a drain time of 0",
      [...redis, "--agents", "FILE", "--drain-seconds", "0"],
      /--drain-seconds.* a whole number from 1 to 86400/,
    ],
    [
      "an invalid port",
      [...redis, "--agents", "FILE", "--metrics-port", "70000"],
      /--metrics-port.* a port from 1 to 65535, or 0/,
    ],
    [
      "a host without a port",
      [...redis, "--agents", "FILE", "--metrics-host", "::"],
      /--metrics-host requires --metrics-port/,
    ],
  ])("%s: exit code 2, and one line", async (_what, words, why) => {
    const said = await troupe(["worker", ...words.map((word) => (word === "FILE" ? file : word))]);
    expect(said).toMatchObject({ code: 2, out: [] });
    expect(said.notes).toEqual([expect.stringMatching(why)]);
  });

  test("invalid keys are reported without showing them", async () => {
    const said = await troupe(["worker", "--agents", file, ...redis], { TROUPE_QUEUE_SECRETS: "hunter2" });
    expect(said).toMatchObject({ code: 2, out: [] });
    expect(said.notes).toEqual([expect.stringMatching(/TROUPE_QUEUE_SECRETS: key 1 is not of the form ID:SECRET/)]);
    expect(said.notes.join()).not.toContain("hunter2");
  });

  test("the help names every option and variable", async () => {
    const { out } = await troupe(["worker", "--help"]);
    const help = out.join("\n");
    const options = ["agents", "ask", "files", "model", "max-readers", "redis", "prefix", "queues", "concurrency"];
    for (const option of [...options, "drain-seconds", "metrics-port", "metrics-host"])
      expect(help).toContain(`--${option} `);
    for (const variable of ["TROUPE_REDIS", "TROUPE_QUEUE_SECRETS"]) expect(help).toContain(variable);
  });
});

describe("queues", () => {
  test("are in Redis", async () => {
    expect(await troupe(["queues"])).toMatchObject({
      code: 2,
      notes: [
        expect.stringMatching(
          /queues require Redis or Postgres: give --redis URL or --store postgres:\/\/…, or set TROUPE_REDIS$/,
        ),
      ],
    });
  });

  inFull(() => {
    test("cannot be read if Redis is away", async () => {
      const { code, notes } = await troupe(["queues", ...redis]);
      expect(code).toBe(1);
      expect(notes).toEqual([expect.stringMatching(/^troupe: store_unavailable: redis:\/\/127\.0\.0\.1:1: /)]);
    });
  });
});
