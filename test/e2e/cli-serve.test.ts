// A server started by the command: its printed command works when pasted, it exits on SIGTERM, and after a kill -9 a stream
// continues at the next server after its last id.
import { writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { Chat, type UIMessage } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { repositoryRoot, runCommand } from "../../scripts/run-command.ts";
import { redisProgram, RedisServer } from "../support/redis-server.ts";
import { type SseFrame, sseFrames } from "../support/sse-frames.ts";
import { askingAgents, paidIn } from "./asking-agents.ts";
import {
  allotment,
  answer,
  type CliProcess,
  question,
  runCli,
  runCliWith,
  startCli,
  workFolder,
} from "./cli-process.ts";
import { WorkPlace } from "./work-folder.ts";

const timeout = 120_000;
const token = "a-token-of-the-test-alone";

const started: CliProcess[] = [];
const folders: ReturnType<typeof workFolder>[] = [];
afterEach(async () => {
  for (const process of started) process.signal("SIGKILL");
  await Promise.all(started.splice(0).map(({ ended }) => ended));
  for (const folder of folders.splice(0)) folder.remove();
});

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = workFolder(files);
  folders.push(folder);
  return folder.path;
}

interface Served {
  readonly process: CliProcess;
  readonly url: string;
  ask(this: void, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>;
}

async function served(path: string, words: readonly string[], environment = {}): Promise<Served> {
  const process = startCli(path, words, { TROUPE_SERVE_TOKEN: token, ...environment });
  started.push(process);
  return await servedBy(process);
}

async function servedBy(process: CliProcess): Promise<Served> {
  const line = await process.line((text) => text.startsWith("  API: "));
  const url = /(http:\S+)\/api /.exec(line)?.[1] ?? "";
  return {
    process,
    url,
    ask: (at, body, headers = {}) =>
      fetch(`${url}${at}`, {
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      }),
  };
}

const firstAgent = { definition: "chief", key: "first" };

test("the printed line works when it is pasted, and SIGTERM ends the server", { timeout }, async () => {
  const path = folderWith(allotment);
  const { process } = await served(path, ["ask", "--serve", "--port", "0", "--files", "notes"], {
    TROUPE_SERVE_TOKEN: "",
  });
  const shown = await process.line((text) => text.startsWith("Token: "));
  const pasted = await process.line((text) => text.startsWith("  curl "));
  expect(pasted).toContain(shown.replace("Token: ", ""));
  const { ok, stdout, output } = await runCommand("bash", ["-c", pasted], { directory: path, timeoutMs: 60_000 });
  expect(ok, output).toBe(true);
  expect(stdout).toMatch(/^event: turn\.completed$/m);
  process.signal("SIGTERM");
  const { code, stderr, stdout: said } = await process.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/^No OPENAI_API_KEY: .*\n$/) });
  expect(said).toMatch(/^Leaving on SIGTERM: .*\nLeft; nothing was cut off\.$/m);
});

test("kill -9 in mid-stream: the next server continues after the last id, without gaps or duplicates", {
  timeout,
}, async () => {
  const path = folderWith(askingAgents);
  const words = ["serve", "till.mjs", "--port", "0"];
  const one = await served(path, words);
  const { agentId } = (await (await one.ask("/api/agents", firstAgent)).json()) as { agentId: string };
  const turn = await one.ask(`/api/agents/${agentId}/turns`, { input: "pay Ann 5" });
  expect(turn.status).toBe(202);
  const seen = await framesUntil(await one.ask(`/api/trees/${agentId}/events`), "turn.waiting");
  one.process.signal("SIGKILL");
  await one.process.ended;
  const two = await served(path, words);
  const lastId = seen.findLast(({ id }) => id !== undefined)?.id ?? "";
  const { items } = (await (await two.ask(`/api/requests?root=${agentId}`)).json()) as { items: Asked[] };
  const [request] = items;
  if (request === undefined) throw new Error("no request is opened after the restart");
  const rest = two.ask(`/api/trees/${agentId}/events`, undefined, { "last-event-id": lastId });
  const approved = await two.ask(`/api/requests/${encodeURIComponent(request.requestId)}`, {
    verdict: "approved",
    argumentsHash: request.argumentsHash,
  });
  expect(approved.status, await approved.text()).toBe(200);
  const later = await framesUntil(await rest, "turn.completed");
  const all = await framesUntil(await two.ask(`/api/trees/${agentId}/events`), "turn.completed");
  expect([...seen, ...later].filter(durable)).toEqual(all.filter(durable));
  expect(paidIn(path)).toEqual(["Ann 5"]);
  two.process.signal("SIGTERM");
  expect((await two.process.ended).code).toBe(0);
});

/** The chat of a page, with the official client. */
function chatOf({ url }: Served, messages: UIMessage[] = []): Chat<UIMessage> {
  return new Chat<UIMessage>({
    id: "case 7",
    messages,
    transport: new DefaultChatTransport({
      api: `${url}/ai-sdk/chief`,
      headers: { authorization: `Bearer ${token}` },
    }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
}

test("--surfaces ai-sdk serves the client of useChat: a call waits, kill -9, and the next server continues the answer", {
  timeout,
}, async () => {
  const path = folderWith(askingAgents);
  const words = ["serve", "till.mjs", "--surfaces", "api,ai-sdk", "--port", "0"];
  const one = await served(path, words);
  await chatOf(one).sendMessage({ text: "pay Ann 5" });
  one.process.signal("SIGKILL");
  await one.process.ended;
  const two = await served(path, words);
  const loaded = (await (await two.ask("/ai-sdk/chief/case%207")).json()) as { messages: UIMessage[] };
  const page = chatOf(two, loaded.messages);
  const [asked] = (page.lastMessage?.parts ?? []).flatMap((part) => ("approval" in part ? [part.approval] : []));
  await page.addToolApprovalResponse({ id: asked?.id ?? "", approved: true });
  await expect.poll(() => page.lastMessage?.metadata).toMatchObject({ status: "completed" });
  expect(paidIn(path)).toEqual(["Ann 5"]);
  two.process.signal("SIGTERM");
  expect((await two.process.ended).code).toBe(0);
});

/** Sends the beginning of its answer, and the rest once a file `go.txt` exists. */
const slowSpeaker = {
  "speaker.mjs": `import { existsSync, watch } from "node:fs";
import { defineAgent } from "troupe";

const told = (signal) =>
  new Promise((resolve) => {
    const watcher = watch(".", { signal }, () => {
      if (!existsSync("go.txt")) return;
      watcher.close();
      resolve();
    });
  });
const model = {
  name: "slow",
  provider: "test",
  countPromptTokens: () => 10,
  generate: async (request, { onDelta, signal }) => {
    onDelta?.({ type: "text", text: "Once upon " });
    console.log(onDelta ? "Speaking." : "Asked for the whole.");
    await told(signal);
    onDelta?.({ type: "text", text: "a time." });
    return {
      content: "Once upon a time.",
      toolCalls: [],
      usage: { inputTokens: 10, outputTokens: 5 },
      finishReason: "stop",
      model: "slow",
    };
  },
};
export const agent = defineAgent({ name: "chief", model });
`,
};

test("a reader that connects in the middle of an answer receives it as it is written, after a POST and after a kill -9", {
  timeout,
}, async () => {
  const path = folderWith(slowSpeaker);
  const words = ["serve", "speaker.mjs", "--port", "0"];
  const one = await served(path, words);
  const { agentId } = (await (await one.ask("/api/agents", firstAgent)).json()) as { agentId: string };
  const turn = await one.ask(`/api/agents/${agentId}/turns`, { input: "a story" });
  expect(turn.status).toBe(202);
  await one.process.line((line) => line === "Speaking.");
  const seen = await framesUntil(await one.ask(`/api/trees/${agentId}/events`), "text.snapshot");
  expect(JSON.parse(seen.at(-1)?.data ?? "")).toMatchObject({ text: "Once upon " });
  one.process.signal("SIGKILL");
  await one.process.ended;
  const two = await served(path, words);
  await two.process.line((line) => line === "Speaking.");
  const lastId = seen.findLast(({ id }) => id !== undefined)?.id ?? "";
  const stream = await two.ask(`/api/trees/${agentId}/events`, undefined, { "last-event-id": lastId });
  const rest: { type: string; text?: string }[] = [];
  for await (const { data } of sseFrames(stream)) {
    rest.push(JSON.parse(data) as { type: string; text?: string });
    if (rest.at(-1)?.type === "text.snapshot") writeFileSync(join(path, "go.txt"), "");
    if (rest.at(-1)?.type === "turn.completed") break;
  }
  const texts = rest.filter(({ text }) => text !== undefined).map(({ type, text }) => [type, text]);
  expect(texts).toEqual([
    ["text.snapshot", "Once upon "],
    ["text.delta", "a time."],
    ["turn.completed", "Once upon a time."],
  ]);
  two.process.signal("SIGTERM");
  expect((await two.process.ended).code).toBe(0);
});

/** The agent of a YAML file, with its plugins next to it. */
const tealAgent = join(repositoryRoot, "examples", "teal", "agent.yaml");
const addition = { items: [{ content: "Add 5 + 3" }] };

test("--cors, --hosts and --log take effect", { timeout }, async () => {
  const app = "https://app.example.com";
  const named = ["--cors", app, "--hosts", "api.example.com", "--hosts", "api.example.org:8443"];
  const { process, url, ask } = await served(folderWith({}), ["serve", tealAgent, "--port", "0", "--log", ...named]);
  const shared = await ask("/api/definitions", undefined, { origin: app, "x-request-id": "of-a-page" });
  expect([shared.status, shared.headers.get("access-control-allow-origin")]).toEqual([200, app]);
  expect((await ask("/api/definitions", undefined, { origin: "https://evil.example.com" })).status).toBe(403);
  const statuses = [];
  for (const host of ["api.example.com", "api.example.org:8443", "evil.example.com"])
    statuses.push(await statusAt(url, host));
  expect(statuses).toEqual([200, 200, 403]);
  process.signal("SIGTERM");
  const { code, stderr } = await process.ended;
  expect(code).toBe(0);
  const lines = stderr
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.map(({ status }) => status)).toEqual([200, 403, 200, 200, 403]);
  expect(lines[0]).toMatchObject({ requestId: "of-a-page", route: "api /api/definitions", userId: "developer" });
  expect(stderr).not.toContain(token);
});

/** The status of `/healthz` under a host name, which `fetch` cannot set. */
async function statusAt(url: string, host: string): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  request(`${url}/healthz`, { headers: { host } }, (response) => {
    response.resume();
    resolve(response.statusCode);
  })
    .on("error", reject)
    .end();
  return await promise;
}

test("run and chat accept the agent of a YAML file", { timeout }, async () => {
  const path = folderWith({});
  const ran = await runCli(path, ["run", tealAgent, "Add 5 + 3", "--quiet"]);
  expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: "" });
  expect(ran.stdout).toContain("8");
  const talked = await runCliWith(path, ["Add 5 + 4"], ["chat", tealAgent]);
  expect(talked.code, talked.stderr).toBe(0);
  expect(talked.stdout).toContain("9");
});

describe.skipIf(!redisProgram)("with work on workers", { timeout }, () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await RedisServer.start();
  });
  afterAll(() => redis.stop());

  async function atPlace(
    files: Readonly<Record<string, string>>,
    play: (place: WorkPlace) => Promise<void>,
  ): Promise<void> {
    const place = new WorkPlace(redis, files);
    try {
      await play(place);
    } finally {
      await place.close();
    }
  }

  test("serve passes turns of a YAML agent to a worker that loads the same file", () =>
    atPlace({}, async (place) => {
      const { process: worker } = await place.worker(["--agents", tealAgent]);
      const words = ["serve", tealAgent, "--port", "0", "--on", "workers"];
      const server = place.start(words, { TROUPE_SERVE_TOKEN: token });
      const { ask } = await servedBy(server);
      const response = await ask("/MathAgent/0.1", addition);
      expect([response.status, await response.json()]).toMatchObject([200, { status: "Completed" }]);
      server.signal("SIGTERM");
      expect((await server.ended).code).toBe(0);
      worker.signal("SIGTERM");
      expect((await worker.ended).stdout).toMatch(/1 turn ended/);
    }));

  test("ask --serve passes questions to a worker that has its team", () =>
    atPlace(allotment, async (place) => {
      const team = ["--files", "notes", "--model", "offline"];
      const { process: worker } = await place.worker(["--ask", ...team]);
      const words = ["ask", "--serve", ...team, "--port", "0", "--on", "workers"];
      const server = place.start(words, { TROUPE_SERVE_TOKEN: token });
      const { ask } = await servedBy(server);
      const { items } = (await (await ask("/api/definitions")).json()) as { items: { name: string }[] };
      const definition = items.find(({ name }) => name.startsWith("lead-"))?.name;
      const { agentId } = (await (await ask("/api/agents", { definition })).json()) as { agentId: string };
      const turn = await ask(`/api/agents/${agentId}/turns`, { input: question }, { prefer: "wait=60" });
      const { status, result } = (await turn.json()) as { status: string; result: { text: string } };
      expect(status).toBe("completed");
      expect(result.text).toMatch(answer);
      worker.signal("SIGTERM");
      expect((await worker.ended).stdout).toMatch(/turns? ended/);
    }));
});

interface Asked {
  readonly requestId: string;
  readonly argumentsHash: string;
}

function durable({ id }: SseFrame): boolean {
  return id !== undefined;
}

/** Reads a stream up to the first event of a type. */
async function framesUntil(response: Response, type: string): Promise<SseFrame[]> {
  expect(response.status).toBe(200);
  const frames: SseFrame[] = [];
  for await (const frame of sseFrames(response)) {
    frames.push(frame);
    if (frame.event === type) return frames;
  }
  throw new Error(`the stream ended before ${type}: ${frames.map(({ event }) => event).join(", ")}`);
}
