// Jobs that are kept in Redis: started by one process, decided, carried on and looked at by others.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { inFull } from "../support/full.ts";
import { RedisCluster } from "../support/redis-cluster.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix } from "../support/redis-stores.ts";
import { askingAgents, paidIn } from "./asking-agents.ts";
import { allotment, answer, question, runCli, startCli, workFolder } from "./cli-process.ts";

const run = ["run", "till.mjs", "pay Ann 5", "--agent-id", "till"];
const payment = "till#1:1:0:1";

describe.skipIf(!redisProgram)("on one Redis", () => {
  let server: RedisServer;
  let folder: ReturnType<typeof workFolder>;
  let store: readonly string[];
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());
  beforeEach(() => {
    folder = workFolder({ ...askingAgents, ...allotment });
    store = ["--redis", server.url, "--prefix", ownPrefix()];
  });
  afterEach(() => folder.remove());

  const start = (words: readonly string[], environment = {}, hasInput = false) =>
    startCli(folder.path, [...words, ...store], environment, hasInput);
  const cli = (...words: readonly string[]) => start(words).ended;

  test("a job that waits is decided by the commands that it prints, and done once", async () => {
    const asked = await cli(...run);
    expect(asked.code, asked.stderr).toBe(4);
    expect(asked.stdout).toContain(`main.ts approve ${payment} ${store.join(" ")}\n`);
    expect(asked.stderr).toBe("");
    const listed = await cli("requests", "--json");
    expect(JSON.parse(listed.stdout)).toMatchObject({ requestId: payment, path: "chief till", cursor: payment });
    const approved = await cli("approve", "--by", "anna");
    expect(approved.code, approved.stderr).toBe(0);
    expect(approved.stdout).toContain("paid 5 to Ann");
    expect(paidIn(folder.path)).toEqual(["Ann 5"]);
    expect((await cli("show", "till")).stdout).toMatch(
      /^Requests:\nREQUEST[^\n]*STATE\ntill#1:1:0:1 .*approved by anna$/m,
    );
    expect((await cli("list")).stdout).toMatch(/^till +chief +finished +1 /m);
    // Another prefix is another place.
    const elsewhere = await runCli(folder.path, ["list", ...store.slice(0, 2), "--prefix", ownPrefix()]);
    expect(elsewhere.stdout).toMatch(/^There are no agents in redis:\/\/127\.0\.0\.1:\d+ \(prefix test-.*\)\.\n$/);
  });

  inFull(() => {
    test("the process that runs a job is told of a decision by another one, and carries on itself", async () => {
      const chat = start(["chat", "till.mjs", "--agent-id", "till"], {}, true);
      chat.type("pay Ann 5");
      await chat.line((line) => line.includes("asks for approval of pay"));
      const approved = await cli("approve");
      expect(approved.stdout).toContain(`Process ${chat.pid} runs it and carries on.`);
      await chat.line((line) => line.includes("paid 5 to Ann"));
      chat.endInput();
      expect((await chat.ended).code).toBe(0);
      expect(paidIn(folder.path)).toEqual(["Ann 5"]);
    });

    test("of two who approve at the same time one wins, and the other is told who", async () => {
      await cli(...run);
      const both = await Promise.all([
        cli("approve", payment, "--no-run", "--by", "anna"),
        cli("approve", payment, "--no-run", "--by", "bo"),
      ]);
      expect(new Set(both.map(({ code }) => code))).toEqual(new Set([0, 2]));
      const winner = both[0].code === 0 ? "anna" : "bo";
      const loser = both.find(({ code }) => code === 2);
      expect(loser?.stderr).toBe(`troupe: request_conflict: request "${payment}" was approved by ${winner}\n`);
      expect((await cli("resume", "--quiet")).stdout).toBe("paid 5 to Ann\n");
      expect(paidIn(folder.path)).toEqual(["Ann 5"]);
    });

    test.each(["request.opened:1", "commit.after:2", "commit.after:3"])(
      "a job that is killed at %s is resumed at once, and pays once",
      async (fault) => {
        expect((await start(run, { TROUPE_FAULT: fault }).ended).code).toBe("SIGKILL");
        expect((await cli("resume", "--quiet")).code).toBe(4);
        expect((await cli("approve", "--quiet")).stdout).toBe("paid 5 to Ann\n");
        expect(paidIn(folder.path)).toEqual(["Ann 5"]);
      },
    );

    test("a question whose process is killed while it is answered is carried on by another", async () => {
      const ask = start(["ask", "--files", "notes", "--question", question], { TROUPE_OFFLINE_SPEED: "20" });
      await ask.line((line) => line.includes("step 1"));
      ask.signal("SIGKILL");
      expect((await ask.ended).code).toBe("SIGKILL");
      const resumed = await cli("ask", "--resume", "--quiet");
      expect(resumed.code, resumed.stderr).toBe(0);
      expect(resumed.stdout).toMatch(answer);
    });

    test("a Redis that is killed and comes back is waited for: the job ends as it would have", async () => {
      const own = await RedisServer.start();
      try {
        const words = ["ask", "--files", "notes", "--question", question, "--redis", own.url];
        const ask = startCli(folder.path, words, { TROUPE_OFFLINE_SPEED: "20" });
        await ask.line((line) => line.includes("step 1"));
        await own.kill();
        await own.launch();
        const { code, stdout, stderr } = await ask.ended;
        expect(code, stderr).toBe(0);
        expect(stdout).toMatch(answer);
      } finally {
        await own.stop();
      }
    });
  });
});

inFull(() => {
  describe.skipIf(!redisProgram)("on a cluster", () => {
    test("several nodes name it; one of them alone is told to be too few", async () => {
      const folder = workFolder(askingAgents);
      const cluster = await RedisCluster.start();
      try {
        const urls = cluster.nodes.map(({ host, port }) => `redis://${host}:${port}`);
        const cli = (redis: string, ...words: readonly string[]) => runCli(folder.path, [...words, "--redis", redis]);
        const asked = await cli(urls.slice(0, 2).join(","), ...run);
        expect(asked.code, asked.stderr).toBe(4);
        expect((await cli(urls.slice(1).join(","), "approve", "--quiet")).stdout).toBe("paid 5 to Ann\n");
        const one = await cli(urls[0] ?? "", "list");
        expect(one.code).toBe(2);
        expect(one.stderr).toMatch(
          /^troupe: invalid_input: this Redis is a node of a cluster; .*several nodes separated by commas\)\n$/,
        );
      } finally {
        await cluster.stop();
        folder.remove();
      }
    });
  });
});
