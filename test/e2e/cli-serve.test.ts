// A server that the command starts: what it prints works when it is pasted, it leaves on SIGTERM, and after a kill -9 a stream
// goes on at the next server after its last id.
import { afterEach, expect, test } from "vitest";
import { runCommand } from "../../scripts/run-command.ts";
import { type SseFrame, sseFrames } from "../support/sse-frames.ts";
import { askingAgents, paidIn } from "./asking-agents.ts";
import { allotment, type CliProcess, startCli, workFolder } from "./cli-process.ts";

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
  ask(path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Response>;
}

async function served(path: string, words: readonly string[], environment = {}): Promise<Served> {
  const process = startCli(path, words, { TROUPE_SERVE_TOKEN: token, ...environment });
  started.push(process);
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

test("kill -9 in mid-stream: the next server goes on after the last id, with no gap and no double", {
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
  if (request === undefined) throw new Error("nothing is asked after the restart");
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
