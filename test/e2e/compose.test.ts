// The processes of the compose file, without Docker, on one Redis.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { inFull } from "../support/full.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { type CliProcess, startCli } from "./cli-process.ts";

const folder = join(repositoryRoot, "examples", "served");
const read = (name: string): string => readFileSync(join(folder, name), "utf8");

const serviceSchema = z.object({
  command: z.array(z.string()),
  environment: z.record(z.string(), z.string()).default({}),
  deploy: z.object({ replicas: z.number() }).optional(),
  healthcheck: z.object({ test: z.array(z.string()) }).optional(),
  ports: z.array(z.string()).default([]),
  stop_grace_period: z.string().optional(),
});
const composeSchema = z.object({
  services: z.object({ redis: serviceSchema, node: serviceSchema, worker: serviceSchema }),
});
const { services } = composeSchema.parse(parse(read("compose.yaml"), { merge: true }));
const token = "a-token-of-the-test-alone";

describe("the compose file", () => {
  test("starts two nodes and two workers on one Redis, and allows them more time to exit than they take", () => {
    const { redis, node, worker } = services;
    for (const { deploy, environment, stop_grace_period: grace } of [node, worker]) {
      expect(deploy).toEqual({ replicas: 2 });
      expect(environment["TROUPE_REDIS"]).toBe("redis://redis:6379");
      expect(Number(grace?.replace("s", ""))).toBeGreaterThan(25);
    }
    expect(redis.command.join(" ")).toContain("--appendonly yes");
    expect(node.ports).toEqual(["8080-8081:8080"]);
    expect(node.command).toEqual(expect.arrayContaining(["--host", "0.0.0.0", "--port", "8080"]));
    expect(node.healthcheck?.test.at(-1)).toContain("http://127.0.0.1:8080/readyz");
  });

  test("builds an image in which the command is process 1 and not root", () => {
    const lines = read("Dockerfile").split("\n");
    const { bin } = z
      .object({ bin: z.record(z.string(), z.string()) })
      .parse(JSON.parse(readFileSync(join(repositoryRoot, "package.json"), "utf8")));
    expect(lines).toContain("FROM node:24-slim");
    expect(lines.indexOf("USER node")).toBeGreaterThan(lines.indexOf("RUN npm ci --omit=dev"));
    expect(lines).toContain(`ENTRYPOINT ["node", "node_modules/troupe/${bin["troupe"]}"]`);
    expect(lines.findLast((line) => line !== "")).toBe('CMD ["serve", "team.ts", "--host", "0.0.0.0"]');
  });
});

const started: CliProcess[] = [];
let server: RedisServer | undefined;
afterEach(async () => {
  for (const process of started) process.signal("SIGKILL");
  await Promise.all(started.splice(0).map(({ ended }) => ended));
  await server?.stop();
  server = undefined;
});

inFull(() => {
  describe.skipIf(!redisProgram)("its nodes and workers", { timeout: 120_000 }, () => {
    test("answer for each other, and exit on SIGTERM", async () => {
      server = await RedisServer.start();
      const environment = { TROUPE_REDIS: server.url, TROUPE_SERVE_TOKEN: token, TROUPE_OFFLINE_SPEED: "15" };
      const start = (words: readonly string[]): CliProcess => {
        const anyPort = words.map((word) => (word === "8080" ? "0" : word));
        const process = startCli(folder, anyPort, environment);
        started.push(process);
        return process;
      };
      const workers = [1, 2].map(() => start(services.worker.command));
      await Promise.all(workers.map((worker) => worker.line((line) => line.startsWith("Worker "))));
      const nodes = [1, 2].map(() => start(services.node.command));
      const [one, two] = await Promise.all(nodes.map(addressOf));
      if (one === undefined || two === undefined) throw new Error("two nodes were started");
      const { agentId } = await post(`${one}/api/agents`, { definition: "desk", key: "first" });
      expect((await post(`${two}/api/agents`, { definition: "desk", key: "first" })).agentId).toBe(agentId);
      const ask = { input: "The key is in the drawer. Where is the key?" };
      const key = { "idempotency-key": "order-1" };
      const turns = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          post(`${index % 2 === 0 ? one : two}/api/agents/${agentId}/turns`, ask, key),
        ),
      );
      expect(new Set(turns.map(({ turnId }) => turnId)).size).toBe(1);
      const other = await send(`${two}/api/agents/${agentId}/turns`, { input: "Something else." }, key);
      expect(other.status).toBe(422);
      const events = await Promise.all(
        [one, two].map((url) => eventsUntilEnd(`${url}/api/trees/${agentId}/events`, `${agentId}#1`)),
      );
      expect(events[0]?.at(-1)).toBe("turn.completed");
      expect(events[1]).toEqual(events[0]);
      // Killed after it has accepted the turn, and before its answer: the retry at the other node is the same turn.
      const next = { "idempotency-key": "order-2", prefer: "wait=60" };
      const cut = send(`${one}/api/agents/${agentId}/turns`, ask, next).then(
        async (answer) => `answered ${answer.status}: ${await answer.text()}`,
        () => "cut",
      );
      await Promise.race([untilTurns(two, agentId, 2), cut.then((end) => Promise.reject(new Error(end)))]);
      nodes[0]?.signal("SIGKILL");
      expect(await cut).toBe("cut");
      const again = await send(`${two}/api/agents/${agentId}/turns`, ask, next);
      expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([200, "true"]);
      expect(await untilTurns(two, agentId, 2)).toHaveLength(2);
      await nodes[0]?.ended;
      for (const process of started) process.signal("SIGTERM");
      const ends = await Promise.all(started.map(({ ended }) => ended));
      expect(ends.map(({ code }) => code)).toEqual([0, 0, "SIGKILL", 0]);
    });
  });
});

async function addressOf(node: CliProcess): Promise<string> {
  const line = await node.line((text) => text.startsWith("  Health: "));
  const port = /:(\d+)\/healthz/.exec(line)?.[1] ?? "";
  return `http://127.0.0.1:${port}`;
}

const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };

type Headers = Readonly<Record<string, string>>;

async function send(url: string, body: unknown, more: Headers = {}): Promise<Response> {
  return await fetch(url, { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify(body) });
}

async function post(url: string, body: unknown, more?: Headers) {
  const response = await send(url, body, more);
  expect(response.ok, `${response.status}`).toBe(true);
  return (await response.json()) as { readonly agentId: string; readonly turnId: string };
}

/** The turns of an agent, once there are this many. */
async function untilTurns(url: string, agentId: string, least: number): Promise<readonly unknown[]> {
  return await vi.waitUntil(
    async () => {
      const response = await fetch(`${url}/api/agents/${agentId}/turns`, { headers });
      const { items } = (await response.json()) as { readonly items: readonly unknown[] };
      return items.length >= least && items;
    },
    { timeout: 30_000 },
  );
}

/** The types of the durable events of a tree, up to the end of its root's turn. */
async function eventsUntilEnd(url: string, rootTurnId: string): Promise<string[]> {
  const { body } = await fetch(url, { headers });
  const types: string[] = [];
  let text = "";
  for await (const piece of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += piece;
    const frames = text.split("\n\n");
    text = frames.pop() ?? "";
    for (const frame of frames) {
      const type = /^event: (.*)$/m.exec(frame)?.[1];
      if (type === undefined || !/^id: /m.test(frame)) continue;
      types.push(type);
      const { turnId } = JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? "{}") as { readonly turnId?: string };
      if (type === "turn.completed" && turnId === rootTurnId) return types;
    }
  }
  throw new Error(`the stream ended too early: ${types.join(", ")}`);
}
