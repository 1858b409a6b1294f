// Turns that are handed over to workers: the command line as a client, worker processes, and what becomes of a turn whose worker
// is killed or told to leave.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix } from "../support/redis-stores.ts";
import { askingAgents, paidIn } from "./asking-agents.ts";
import { allotment, answer, type CliProcess, question, startCli, workFolder } from "./cli-process.ts";
import { stampsIn, workingAgents } from "./working-agents.ts";

const stamped = "stamped in Bern; stamped in Chur; stamped in Sion";
const run = ["run", "office.mjs", "Bern Chur Sion"];

describe.skipIf(!redisProgram)("workers on one Redis", { timeout: 120_000 }, () => {
  let server: RedisServer;
  let folder: ReturnType<typeof workFolder>;
  let store: readonly string[];
  let started: CliProcess[] = [];
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());
  beforeEach(() => {
    folder = workFolder({ ...workingAgents, ...askingAgents, ...allotment });
    store = ["--redis", server.url, "--prefix", ownPrefix()];
  });
  afterEach(async () => {
    for (const process of started) process.signal("SIGKILL");
    await Promise.all(started.map(({ ended }) => ended));
    started = [];
    folder.remove();
  });

  function start(words: readonly string[], environment: Readonly<Record<string, string>> = {}): CliProcess {
    const process = startCli(folder.path, [...words, ...store], environment);
    started.push(process);
    return process;
  }

  async function worker(words: readonly string[], environment: Readonly<Record<string, string>> = {}) {
    const process = start(["worker", ...words], environment);
    return { process, line: await process.line((line) => line.startsWith("Worker ")) };
  }

  const office = ["--agents", "office.mjs"];

  /** The process that stamps first. */
  async function firstAtWork(): Promise<CliProcess> {
    const { pid } = await vi.waitUntil(() => stampsIn(folder.path)[0], { timeout: 60_000 });
    const found = started.find((process) => process.pid === pid);
    if (found === undefined) throw new Error(`process ${pid} is no worker of this test`);
    return found;
  }

  test("a turn runs on them and not in the client, which shows it all the same", async () => {
    const { line, process } = await worker(office);
    expect(line).toBe(
      `Worker ${process.pid} is ready on ${server.url} (prefix ${store[3]}): chief, clerk (50 agents at a time); queues stamps (1 at a time)`,
    );
    const client = start([...run, "--agent-id", "office"]);
    const { code, stdout, stderr } = await client.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("The turn runs on a worker.\n");
    expect(stdout).toMatch(/chief office: begins “Bern Chur Sion”/);
    expect(stdout).toContain(`\n${stamped}\n`);
    expect(stdout).toMatch(/^├─ clerk ~\w+ +office +1 /m);
    expect(new Set(stampsIn(folder.path).map(({ pid }) => pid))).toEqual(new Set([process.pid]));
    process.signal("SIGTERM");
    const left = await process.ended;
    expect({ code: left.code, stderr: left.stderr }).toEqual({ code: 0, stderr: "" });
    expect(left.stdout).toMatch(/Leaving on SIGTERM: nothing new is begun; what is at work has 25 s\./);
    expect(left.stdout).toMatch(
      /^Left after [\d.]+ m?s: 4 turns ended, \d+ parked, \d+ tool jobs run; nothing was cut off\.$/m,
    );
    const shown = await start(["queues", "--json"]).ended;
    const queues = shown.stdout
      .trimEnd()
      .split("\n")
      .map((text) => JSON.parse(text) as object);
    const rest = { waiting: 0, active: 0, delayed: 0, dead: 0, workers: 0, deadLetters: [] };
    expect(queues).toEqual([
      { queue: "stamps", ...rest },
      { queue: "wake", ...rest },
    ]);
  });

  test("of three one is killed while it works: the answer is the same", async () => {
    await Promise.all([1, 2, 3].map(() => worker(office, { STAMP_MS: "1500" })));
    const client = start([...run, "--quiet"]);
    const victim = await firstAtWork();
    victim.signal("SIGKILL");
    expect((await victim.ended).code).toBe("SIGKILL");
    const { code, stdout, stderr } = await client.ended;
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: `${stamped}\n`, stderr: "" });
    const places = stampsIn(folder.path).filter(({ what }) => what === "done");
    expect(new Set(places.map(({ place }) => place))).toEqual(new Set(["Bern", "Chur", "Sion"]));
  });

  test("one that is told to leave in the middle of a turn ends within its time, and another has the answer", async () => {
    const options = [...office, "--drain-seconds", "10"];
    await Promise.all([1, 2].map(() => worker(options, { STAMP_MS: "1500" })));
    const client = start([...run, "--quiet"]);
    const leaving = await firstAtWork();
    const from = performance.now();
    leaving.signal("SIGTERM");
    const left = await leaving.ended;
    expect(left.code, left.stderr).toBe(0);
    expect(performance.now() - from).toBeLessThan(10_500);
    const { code, stdout, stderr } = await client.ended;
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: `${stamped}\n`, stderr: "" });
    const done = stampsIn(folder.path).filter(({ what }) => what === "done");
    expect(done.at(-1)?.pid).not.toBe(leaving.pid);
  });

  test("a question is answered by workers that know its team, one of them killed meanwhile", async () => {
    const team = ["--ask", "--files", "notes", "--model", "offline"];
    await Promise.all([1, 2].map(() => worker(team, { TROUPE_OFFLINE_SPEED: "40" })));
    const ask = start(["ask", "--files", "notes", "--question", question, "--model", "offline"]);
    await ask.line((line) => line.includes("step 1"));
    started[0]?.signal("SIGKILL");
    const { code, stdout, stderr } = await ask.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("The turn runs on one of 2 workers.\n");
    expect(stdout).toMatch(answer);
  });

  test("a turn waits for a worker where it is told to, and goes on without its client", async () => {
    const client = start([...run, "--agent-id", "office", "--on", "workers"]);
    await client.line((line) => line.startsWith("No worker is there yet. One that knows these agents: "));
    await vi.waitUntil(async () => (await start(["list"]).ended).stdout.includes("unfinished"), { timeout: 60_000 });
    client.signal("SIGKILL");
    await client.ended;
    const { process } = await worker([...office, "--metrics-port", "0"]);
    const resumed = await start(["resume", "office", "--quiet"]).ended;
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(resumed.stdout).toBe(`${stamped}\n`);
    expect(new Set(stampsIn(folder.path).map(({ pid }) => pid))).toEqual(new Set([process.pid]));
  });

  test("what a turn on them asks is decided from anywhere, and they carry it on", async () => {
    const { process } = await worker(["--agents", "till.mjs"]);
    const asked = await start(["run", "till.mjs", "pay Ann 5", "--agent-id", "till"]).ended;
    expect(asked.code, asked.stderr).toBe(4);
    expect(asked.stdout).toContain("Waits for somebody: 1 open request.");
    const approved = await start(["approve", "--by", "anna"]).ended;
    expect(approved.code, approved.stderr).toBe(0);
    await vi.waitUntil(() => paidIn(folder.path).length > 0, { timeout: 30_000 });
    const again = await start(["resume", "till", "--quiet"]).ended;
    expect(again.stdout).toBe("paid 5 to Ann\n");
    expect(paidIn(folder.path)).toEqual(["Ann 5"]);
    expect((await start(["run", "till.mjs", "pay Bo 6", "--agent-id", "till"]).ended).code).toBe(4);
    const aborted = await start(["abort", "till"]).ended;
    expect(aborted.stdout).toMatch(
      /^Aborted: till\.\n(Nobody ran it just then: a worker takes it up|Process \d+ runs it)/,
    );
    const ended = async () => (await start(["list"]).ended).stdout.includes(" finished ");
    await vi.waitUntil(ended, { timeout: 30_000 });
    process.signal("SIGTERM");
    expect((await process.ended).code).toBe(0);
  });

  test("Ctrl-C in the client pauses a turn on them, and resume goes on with it there", async () => {
    const { process } = await worker(office, { STAMP_MS: "1500" });
    const client = start([...run, "--agent-id", "office"]);
    await firstAtWork();
    client.signal("SIGINT");
    const paused = await client.ended;
    expect(paused.code, paused.stderr).toBe(130);
    expect(paused.stdout).toMatch(/^Paused\. Go on with: .* resume office --redis /m);
    const resumed = await start(["resume", "office", "--quiet"]).ended;
    const { code, stdout, stderr } = resumed;
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: `${stamped}\n`, stderr: "" });
    expect(new Set(stampsIn(folder.path).map(({ pid }) => pid))).toEqual(new Set([process.pid]));
  });

  test("tells how it is: figures, health, and that it leaves", async () => {
    const { line, process } = await worker([...office, "--queues", "stamps=2@20/s", "--metrics-port", "0"], {
      STAMP_MS: "3000",
    });
    expect(line).toContain("queues stamps (2 at a time, at most 20 begun in 1 s); metrics at http://127.0.0.1:");
    const url = /http:\S+:\d+/.exec(line)?.[0] ?? "";
    expect(await (await fetch(`${url}/readyz`)).json()).toEqual({ status: "ok", problems: [] });
    const health = await fetch(`${url}/healthz`);
    expect(await health.json()).toMatchObject({ status: "ok", problems: [], canaryMs: expect.any(Number) });
    const client = start([...run, "--quiet"]);
    await firstAtWork();
    const text = await (await fetch(`${url}/metrics`)).text();
    expect(text).toMatch(/^troupe_healthy 1$/m);
    expect(text).toMatch(/^troupe_queue_jobs\{queue="stamps",state="active"\} [12]$/m);
    process.signal("SIGTERM");
    await process.line((one) => one.startsWith("Leaving on SIGTERM"));
    const ready = await fetch(`${url}/readyz`);
    expect(ready.status).toBe(503);
    expect(await ready.json()).toMatchObject({ problems: ["the worker leaves"] });
    expect((await process.ended).code).toBe(0);
    client.signal("SIGKILL");
  });

  test("without workers the turn runs in its own process, and it says so", async () => {
    const { code, stdout, stderr } = await start(run).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("No worker is there: the turn runs in this process.\n");
    expect(stdout).toContain(`\n${stamped}\n`);
  });
});
