// Turns on workers: the command line as a client, worker processes, and turns whose worker
// is killed or stopped.
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { inFull } from "../support/full.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { askingAgents, paidIn } from "./asking-agents.ts";
import { allotment, answer, question } from "./cli-process.ts";
import { WorkPlace } from "./work-folder.ts";
import { stampsIn, workingAgents } from "./working-agents.ts";

const stamped = "stamped in Bern; stamped in Chur; stamped in Sion";
const run = ["run", "office.mjs", "Bern Chur Sion"];
const office = ["--agents", "office.mjs"];
const timeout = 120_000;

let server: RedisServer | undefined;
beforeAll(async () => {
  if (redisProgram) server = await RedisServer.start();
});
afterAll(() => server?.stop());

async function atPlace(play: (place: WorkPlace) => Promise<void>): Promise<void> {
  if (!server) throw new Error("redis-server is not available; the test should have been skipped");
  const place = new WorkPlace(server, { ...workingAgents, ...askingAgents, ...allotment });
  try {
    await play(place);
  } finally {
    await place.close();
  }
}

inFull(() => {
  // A killed worker is detected after 15 s only: run concurrently, the tests wait for that once.
  describe.skipIf(!redisProgram).concurrent("workers on one Redis that come and go", { timeout }, () => {
    test("of three workers one is killed while it works, and the answer is the same", () =>
      atPlace(async (place) => {
        await Promise.all([1, 2, 3].map(() => place.worker(office, { STAMP_MS: "1500" })));
        const client = place.start([...run, "--quiet"]);
        const victim = await place.firstAtWork();
        victim.signal("SIGKILL");
        expect((await victim.ended).code).toBe("SIGKILL");
        const { code, stdout, stderr } = await client.ended;
        expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: `${stamped}\n`, stderr: "" });
        const places = stampsIn(place.path).filter(({ what }) => what === "done");
        expect(new Set(places.map(({ place }) => place))).toEqual(new Set(["Bern", "Chur", "Sion"]));
      }));

    test("a question is answered by workers that know its team, one of them killed meanwhile", () =>
      atPlace(async (place) => {
        const team = ["--ask", "--files", "notes", "--model", "offline"];
        await Promise.all([1, 2].map(() => place.worker(team, { TROUPE_OFFLINE_SPEED: "40" })));
        const ask = place.start(["ask", "--files", "notes", "--question", question, "--model", "offline"]);
        await ask.line((line) => line.includes("step 1"));
        place.started[0]?.signal("SIGKILL");
        const { code, stdout, stderr } = await ask.ended;
        expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
        expect(stdout).toContain("The turn runs on one of 2 workers.\n");
        expect(stdout).toMatch(answer);
      }));

    test("a request of their turn is decided from anywhere, and they continue the turn", () =>
      atPlace(async (place) => {
        const { process } = await place.worker(["--agents", "till.mjs"]);
        const asked = await place.start(["run", "till.mjs", "pay Ann 5", "--agent-id", "till"]).ended;
        expect(asked.code, asked.stderr).toBe(4);
        expect(asked.stdout).toContain("Waits for a decision or an answer: 1 open request.");
        const approved = await place.start(["approve", "--by", "anna"]).ended;
        expect(approved.code, approved.stderr).toBe(0);
        await vi.waitUntil(() => paidIn(place.path).length > 0, { timeout: 30_000 });
        const again = await place.start(["resume", "till", "--quiet"]).ended;
        expect(again.stdout).toBe("paid 5 to Ann\n");
        expect(paidIn(place.path)).toEqual(["Ann 5"]);
        expect((await place.start(["run", "till.mjs", "pay Bo 6", "--agent-id", "till"]).ended).code).toBe(4);
        const aborted = await place.start(["abort", "till"]).ended;
        expect(aborted.stdout).toMatch(
          /^Aborted: till\.\n(No process ran it: a worker will end its turn|Process \d+ runs it)/,
        );
        const ended = async () => (await place.start(["list"]).ended).stdout.includes(" finished ");
        await vi.waitUntil(ended, { timeout: 30_000 });
        process.signal("SIGTERM");
        expect((await process.ended).code).toBe(0);
      }));

    test("a turn waits for a worker if requested, and continues without its client", () =>
      atPlace(async (place) => {
        const client = place.start([...run, "--agent-id", "office", "--on", "workers"]);
        await client.line((line) => line.startsWith("No worker is running yet. To start one for these agents: "));
        await vi.waitUntil(async () => (await place.start(["list"]).ended).stdout.includes("unfinished"), {
          timeout: 60_000,
        });
        client.signal("SIGKILL");
        await client.ended;
        const { process } = await place.worker([...office, "--metrics-port", "0"]);
        const resumed = await place.start(["resume", "office", "--quiet"]).ended;
        expect(resumed.code, resumed.stderr).toBe(0);
        expect(resumed.stdout).toBe(`${stamped}\n`);
        expect(new Set(stampsIn(place.path).map(({ pid }) => pid))).toEqual(new Set([process.pid]));
      }));
  });
});

describe.skipIf(!redisProgram)("workers on one Redis", { timeout }, () => {
  test("a turn runs on them and not in the client, which still shows it", () =>
    atPlace(async (place) => {
      const { line, process } = await place.worker(office);
      expect(line).toBe(
        `Worker ${process.pid} is ready on ${place.url} (prefix ${place.prefix}): chief, clerk (50 agents at a time); queues stamps (1 at a time)`,
      );
      const client = place.start([...run, "--agent-id", "office"]);
      const { code, stdout, stderr } = await client.ended;
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toContain("The turn runs on a worker.\n");
      expect(stdout).toMatch(/chief office: begins “Bern Chur Sion”/);
      expect(stdout).toContain(`\n${stamped}\n`);
      expect(stdout).toMatch(/^├─ clerk ~\w+ +office +1 /m);
      expect(new Set(stampsIn(place.path).map(({ pid }) => pid))).toEqual(new Set([process.pid]));
      process.signal("SIGTERM");
      const left = await process.ended;
      expect({ code: left.code, stderr: left.stderr }).toEqual({ code: 0, stderr: "" });
      expect(left.stdout).toMatch(/Leaving on SIGTERM: no new work; running work has 25 s\./);
      expect(left.stdout).toMatch(
        /^Left after [\d.]+ m?s: 4 turns ended, \d+ parked, \d+ tool jobs run; nothing was cut off\.$/m,
      );
      const shown = await place.start(["queues", "--json"]).ended;
      const queues = shown.stdout
        .trimEnd()
        .split("\n")
        .map((text) => JSON.parse(text) as object);
      const since = { waitingSince: null, activeSince: null };
      const rest = { waiting: 0, active: 0, delayed: 0, dead: 0, ...since, workers: 0, deadLetters: [] };
      expect(queues).toEqual([
        { queue: "stamps", ...rest },
        { queue: "wake", ...rest },
      ]);
    }));

  inFull(() => {
    test("a worker that is stopped in the middle of a turn exits within its timeout, and another one has the answer", () =>
      atPlace(async (place) => {
        const options = [...office, "--drain-seconds", "10"];
        await Promise.all([1, 2].map(() => place.worker(options, { STAMP_MS: "1500" })));
        const client = place.start([...run, "--quiet"]);
        const leaving = await place.firstAtWork();
        const from = performance.now();
        leaving.signal("SIGTERM");
        const left = await leaving.ended;
        expect(left.code, left.stderr).toBe(0);
        expect(performance.now() - from).toBeLessThan(10_500);
        const { code, stdout, stderr } = await client.ended;
        expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: `${stamped}\n`, stderr: "" });
        const done = stampsIn(place.path).filter(({ what }) => what === "done");
        expect(done.at(-1)?.pid).not.toBe(leaving.pid);
      }));

    test("Ctrl-C in the client pauses a turn on them, and resume continues it there", () =>
      atPlace(async (place) => {
        const { process } = await place.worker(office, { STAMP_MS: "1500" });
        const client = place.start([...run, "--agent-id", "office"]);
        await place.firstAtWork();
        client.signal("SIGINT");
        const paused = await client.ended;
        expect(paused.code, paused.stderr).toBe(130);
        expect(paused.stdout).toMatch(/^Paused\. Resume with: .* resume office --redis /m);
        const resumed = await place.start(["resume", "office", "--quiet"]).ended;
        const { code, stdout, stderr } = resumed;
        expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: `${stamped}\n`, stderr: "" });
        expect(new Set(stampsIn(place.path).map(({ pid }) => pid))).toEqual(new Set([process.pid]));
      }));

    test("a worker reports metrics, health, and that it is leaving", () =>
      atPlace(async (place) => {
        const { line, process } = await place.worker([...office, "--queues", "stamps=2@20/s", "--metrics-port", "0"], {
          STAMP_MS: "3000",
        });
        expect(line).toContain("queues stamps (2 at a time, at most 20 started in 1 s); metrics at http://127.0.0.1:");
        const url = /http:\S+:\d+/.exec(line)?.[0] ?? "";
        expect(await (await fetch(`${url}/readyz`)).json()).toEqual({ status: "ok", problems: [] });
        const health = await fetch(`${url}/healthz`);
        expect(await health.json()).toMatchObject({ status: "ok", problems: [], canaryMs: expect.any(Number) });
        const client = place.start([...run, "--quiet"]);
        await place.firstAtWork();
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
      }));
  });

  inFull(() => {
    test("without workers the turn runs in its own process, which is printed", () =>
      atPlace(async (place) => {
        const { code, stdout, stderr } = await place.start(run).ended;
        expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
        expect(stdout).toContain("No worker is running: the turn runs in this process.\n");
        expect(stdout).toContain(`\n${stamped}\n`);
      }));
  });
});
