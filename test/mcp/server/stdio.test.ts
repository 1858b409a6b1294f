import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ChildProcess, spawn } from "node:child_process";
import { PassThrough, type Readable, type Writable } from "node:stream";
import type { Client, JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { createRuntime } from "troupe";
import { serveMcp } from "troupe/mcp/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { repositoryRoot } from "../../../scripts/run-command.ts";
import { type Answering, clientOf, deskAgent, type Era, eras, structuredIn, textIn } from "./served-desk.ts";

interface Place {
  readonly folder: string;
  readonly witness: () => readonly string[];
  /** Lets the tool `wait` end. */
  readonly open: () => void;
}

function placeOf(): Place {
  const folder = mkdtempSync(join(tmpdir(), "troupe-mcp-serve-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return {
    folder,
    witness: () => {
      try {
        return readFileSync(join(folder, "witness"), "utf8").trim().split("\n");
      } catch {
        return [];
      }
    },
    open: () => writeFileSync(join(folder, "gate"), ""),
  };
}

interface ServedProcess {
  readonly process: ChildProcess;
  readonly exited: Promise<number | null>;
  /** Lines of standard output that are not JSON. */
  readonly stray: string[];
  /** What was written to standard error. */
  readonly errors: () => string;
  readonly client: (era: Era, answers?: Answering, isManual?: boolean) => Promise<Client>;
}

function serveDesk({ folder }: Place, ...words: readonly string[]): ServedProcess {
  const main = join(repositoryRoot, "src/cli/main.ts");
  const file = join(import.meta.dirname, "stdio-desk.ts");
  const env = { ...process.env, WITNESS: join(folder, "witness"), GATE: join(folder, "gate"), TROUPE_REDIS: "" };
  const child = spawn(
    process.execPath,
    ["--conditions=troupe-source", main, "mcp", "serve", file, "--store", join(folder, "mcp.db"), ...words],
    { cwd: folder, env, stdio: ["pipe", "pipe", "pipe"] },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  const stray: string[] = [];
  return {
    process: child,
    exited: new Promise((resolve) => child.once("exit", resolve)),
    stray,
    errors: () => errors,
    client: async (era, answers, isManual = false) => {
      const options = isManual
        ? { options: { capabilities: { elicitation: { form: {} } }, inputRequired: { autoFulfill: false } } }
        : {};
      const client = clientOf({ era, ...(answers ? { answers } : {}), ...options });
      await client.connect(lineTransport(child.stdout, child.stdin, stray));
      return client;
    },
  };
}

/** A transport over streams that keeps lines that are not messages. */
function lineTransport(input: Readable, output: Writable, stray: string[]): Transport {
  let rest = "";
  const transport: Transport = {
    start: async () => {
      input.on("data", (chunk: Buffer) => {
        const lines = (rest + chunk.toString()).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) {
          if (line.startsWith("{")) transport.onmessage?.(JSON.parse(line) as JSONRPCMessage);
          else stray.push(line);
        }
      });
      input.once("close", () => transport.onclose?.());
    },
    send: async (message) => void output.write(`${JSON.stringify(message)}\n`),
    close: async () => void output.end(),
  };
  return transport;
}

const approve: Answering = () => ({ action: "accept", content: { decision: "approve" } });

describe.each(eras)("troupe mcp serve for a client of the %s era", (era) => {
  it("writes only messages to standard output, and exits when the client closes its input", async () => {
    const place = placeOf();
    const served = serveDesk(place, "--actor", "ann");
    const client = await served.client(era, approve);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["desk", "turn_result", "turn_abort"]);
    expect(textIn(await client.callTool({ name: "desk", arguments: { input: "remove" } }))).toBe("so: removed a.txt");
    await client.close();
    expect(await served.exited).toBe(0);
    expect([served.stray, place.witness()]).toEqual([[], ["a.txt"]]);
    for (const line of ["the agent file is loaded", "the tool runs", "it removes", "as ann"]) {
      expect(served.errors()).toContain(line);
    }
  });

  it("keeps the turn of a client that leaves, which goes on at the next start", async () => {
    const place = placeOf();
    const first = serveDesk(place, "--wait-seconds", "1", "--drain-seconds", "1");
    const one = await first.client(era);
    const { turnId, status } = structuredIn(await one.callTool({ name: "desk", arguments: { input: "wait" } }));
    expect(status).toBe("working");
    await one.close();
    expect(await first.exited).toBe(0);
    place.open();
    const second = serveDesk(place);
    const two = await second.client(era);
    const result = await two.callTool({ name: "turn_result", arguments: { turnId } });
    expect(textIn(result)).toBe("so: waited");
  });
});

it("an approval is given after client and server were killed, and takes effect once", async () => {
  const place = placeOf();
  const call = { name: "desk", arguments: { input: "remove" } };
  const first = serveDesk(place);
  const one = await first.client("modern", approve, true);
  const asked = (await one.callTool(call, { allowInputRequired: true })) as unknown as {
    readonly inputRequests: Record<string, unknown>;
    readonly requestState: string;
  };
  first.process.kill("SIGKILL");
  await first.exited;
  const inputResponses = Object.fromEntries(
    Object.keys(asked.inputRequests).map((key) => [key, approve({ message: "" })]),
  );
  const answer = { ...call, inputResponses, requestState: asked.requestState } as Parameters<Client["callTool"]>[0];
  for (let time = 1; time <= 2; time += 1) {
    const next = serveDesk(place);
    const client = await next.client("modern", approve, true);
    const result = await client.callTool(answer, { allowInputRequired: true });
    expect([textIn(result), place.witness()]).toEqual(["so: removed a.txt", ["a.txt"]]);
    next.process.kill("SIGKILL");
    await next.exited;
  }
});

it("a signal answers the open call with its turn, and exits with 0", async () => {
  const place = placeOf();
  const served = serveDesk(place, "--drain-seconds", "5");
  const client = await served.client("modern");
  const called = client.callTool({ name: "desk", arguments: { input: "wait" } });
  await expect.poll(place.witness, { timeout: 10_000 }).toEqual(["waiting"]);
  served.process.kill("SIGTERM");
  expect(structuredIn(await called)).toMatchObject({ status: "working" });
  expect(await served.exited).toBe(0);
  expect(served.stray).toEqual([]);
});

it("stdio() serves several clients over streams, each as its own actor", async () => {
  const runtime = await createRuntime({ agents: [deskAgent()] });
  onTestFinished(() => runtime.shutdown());
  const serving = await serveMcp(runtime);
  const connect = async (actor: string): Promise<Client> => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    serving.stdio({ actor, input, output });
    const client = clientOf({ era: "modern" });
    await client.connect(lineTransport(output, input, []));
    return client;
  };
  const [ann, bob] = [await connect("ann"), await connect("bob")];
  const mine = await ann.callTool({ name: "desk", arguments: { input: "hello", conversation: "c" } });
  const theirs = await bob.callTool({ name: "desk", arguments: { input: "hi", conversation: "c" } });
  expect([textIn(mine), textIn(theirs)]).toEqual(["1: hello", "1: hi"]);
  const { turnId } = structuredIn(mine);
  expect(textIn(await bob.callTool({ name: "turn_result", arguments: { turnId } }))).toBe("there is no such turn");
  expect(new Set((await runtime.list()).map(({ ownerId }) => ownerId))).toEqual(new Set(["ann", "bob"]));
  await serving.close();
});
