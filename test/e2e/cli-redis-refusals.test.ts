// The errors when Redis cannot be used, without any password.
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { troupe } from "../cli/support/in-process.ts";
import { every, inFull, rows } from "../support/full.ts";
import { freePort, RedisServer, redisProgram } from "../support/redis-server.ts";
import { askingAgents } from "./asking-agents.ts";
import { runCli, workFolder } from "./cli-process.ts";

let folder: ReturnType<typeof workFolder>;
beforeAll(() => {
  folder = workFolder({
    ...askingAgents,
    "no-ioredis.mjs": `import { registerHooks } from "node:module";
registerHooks({
  resolve(specifier, context, next) {
    if (specifier !== "ioredis") return next(specifier, context);
    throw Object.assign(new Error("Cannot find package 'ioredis'"), { code: "ERR_MODULE_NOT_FOUND" });
  },
});
`,
  });
});
afterAll(() => folder.remove());
const cli = (words: readonly string[], environment: Readonly<Record<string, string>> = {}) =>
  runCli(folder.path, words, environment);

const looking = [
  ["list"],
  ["requests"],
  ["show", "till"],
  ["abort", "till"],
  ["approve"],
  ["resume"],
  ["ask", "--resume"],
];
const working = [
  ["run", "till.mjs", "hello"],
  ["chat", "till.mjs"],
  ["ask", "--question", "why?"],
];

inFull(() => {
  describe("a Redis that cannot be reached", () => {
    test("is named in one line, within the timeout, by commands that read and those that work", async () => {
      const url = `redis://app:hunter2@127.0.0.1:${await freePort()}`;
      const ended = await Promise.all(
        [...looking.slice(0, 2), ...working.slice(0, 2)].map((words) => cli([...words, "--redis", url])),
      );
      for (const { code, stdout, stderr } of ended) {
        expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
        expect(stderr).toMatch(
          /^troupe: store_unavailable: redis:\/\/app@127\.0\.0\.1:\d+: Redis does not answer .*\(nothing listens at this address: start the server, or give another address\)\n$/,
        );
      }
    });

    test("needs ioredis, and prints how to install it", async () => {
      const environment = { NODE_OPTIONS: `--import=${join(folder.path, "no-ioredis.mjs")}` };
      expect(await cli(["list", "--redis", "redis://127.0.0.1:1"], environment)).toEqual({
        code: 1,
        stdout: "",
        stderr: 'troupe: unsupported: Redis stores need the package "ioredis": npm install ioredis\n',
      });
    });
  });
});

test.each(rows([...looking, ...working], every(2)))("%s %s accepts a file or Redis, not both", async (...words) => {
  expect(await troupe([...words, "--store", "jobs.db", "--redis", "redis://app:hunter2@127.0.0.1:1"])).toEqual({
    code: 2,
    out: [],
    notes: ["troupe: invalid_input: --store and --redis name two stores; give one of them"],
  });
});

describe.skipIf(!redisProgram)("a Redis that is running", () => {
  inFull(() => {
    test("and evicts keys is refused", async () => {
      const server = await RedisServer.start({ settings: ["--maxmemory-policy", "allkeys-lru"] });
      try {
        const { code, stdout, stderr } = await cli(["list", "--redis", server.url]);
        expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
        expect(stderr).toMatch(
          /^troupe: invalid_input: with maxmemory-policy .*, Redis may evict .*; set maxmemory-policy noeviction\n$/,
        );
      } finally {
        await server.stop();
      }
    });
  });

  test("and keeps no log causes one warning, next to the answer", async () => {
    const server = await RedisServer.start({ isLogged: false });
    try {
      const { code, stdout, stderr } = await cli(["list", "--redis", server.url, "--json"]);
      expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
      expect(stderr).toMatch(/^troupe: warning: Redis keeps no log of its writes .*\n$/);
    } finally {
      await server.stop();
    }
  });

  inFull(() => {
    test("and requires a password gets it from the URL or the variable, and no other server does", async () => {
      const server = await RedisServer.start({ password: "hunter2" });
      try {
        const address = `127.0.0.1:${server.port}`;
        const [secret, plain] = [`redis://:hunter2@${address}`, `redis://${address}`];
        const run = await cli(["run", "till.mjs", "pay Ann 5", "--agent-id", "till", "--redis", secret]);
        expect(run.code, run.stderr).toBe(4);
        expect(run.stdout).toContain(`approve till#1:1:0:1 --redis ${plain}\n`);
        expect(run.stdout).toContain("(The password is left out of these commands: ");
        const refused = await cli(["approve", "till#1:1:0:1", "--redis", plain]);
        expect(refused).toMatchObject({ code: 1, stdout: "" });
        expect(refused.stderr).toMatch(/NOAUTH.*\(give the password in the address, preferably in TROUPE_REDIS\)\n$/);
        const requests = await cli(["requests"], { TROUPE_REDIS: secret });
        expect(requests.stdout).toMatch(/^till#1:1:0:1 /m);
        expect(requests.stdout).toMatch(/^Decide with node \S+ approve ID, or/m);
        expect(requests.stdout).toContain(
          `(These commands find ${plain} through TROUPE_REDIS, which contains its password.)`,
        );
        const approved = await cli(["approve"], { TROUPE_REDIS: secret });
        expect(approved.code, approved.stderr).toBe(0);
        const file = await cli(["list", "--store", "none.db"], { TROUPE_REDIS: secret });
        expect(file.stderr).toContain("there is no store at none.db");
        const wrong = await cli(["show", "till"], { TROUPE_REDIS: secret.replace("hunter2", "hunter23") });
        expect(wrong.stderr).toContain("the user or the password is wrong");
        const said = [run, refused, requests, approved, file, wrong]
          .map(({ stdout, stderr }) => stdout + stderr)
          .join("");
        expect(said).not.toContain("hunter2");
      } finally {
        await server.stop();
      }
    });
  });
});
