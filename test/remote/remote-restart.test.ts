import { readFileSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { createRuntime } from "troupe";
import { sqliteStores } from "troupe/stores/sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { armFaultPoints } from "../../src/base/index.ts";
import { temporaryFile } from "../stores/temporary-file.ts";
import { toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";
import { startProgram } from "../support/waiting-process.ts";
import { callerAgent, deskCaller, openWorker, polling } from "./remote-server.ts";

const program = (name: string): string => new URL(name, import.meta.url).pathname;

/** A fixed address whose server can be replaced and is called by its own name. */
async function openFront(): Promise<{ readonly origin: string; leadTo(url: string): void }> {
  let host = "127.0.0.1:0";
  const front = createServer((incoming, answer) => {
    const { method = "GET", url = "/", headers } = incoming;
    const behind = request(`http://${host}${url}`, { method, headers: { ...headers, host } }, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.on("error", () => answer.destroy()).pipe(answer);
    });
    behind.on("error", () => answer.destroy());
    answer.on("close", () => behind.destroy());
    incoming.pipe(behind);
  });
  const listening = Promise.withResolvers<void>();
  front.listen(0, "127.0.0.1", listening.resolve);
  await listening.promise;
  onTestFinished(() => {
    front.closeAllConnections();
    front.close();
  });
  const { port } = front.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    leadTo: (url) => {
      ({ host } = new URL(url));
    },
  };
}

describe("kill -9", () => {
  it("of the caller while the remote agent works: the next process continues the same task", async () => {
    const gate = createGate<string>();
    const remote = await openWorker(() => gate.pass());
    const path = temporaryFile();
    const doomed = startProgram(program("caller-program.ts"), [path, remote.url]);
    onTestFinished(() => doomed.kill());
    await doomed.firstLine;
    await gate.reached();
    doomed.kill();
    await doomed.ended;
    const agents = [callerAgent({ url: remote.url, says: ["work"] })];
    const runtime = await createRuntime({ agents, stores: sqliteStores(path) });
    onTestFinished(() => runtime.shutdown());
    const agent = await runtime.find("caller");
    await agent.start();
    gate.open("worked");
    expect(await agent.turn("caller#1").result).toMatchObject({ status: "completed", text: "the end", toolCalls: 1 });
    expect(await toolTextsOf(agent)).toEqual(["so: worked"]);
    expect([await remote.tasks(), gate.count]).toMatchObject([[expect.any(String)], 1]);
  });

  it("of the remote agent while it works: the call waits for it, and gets the answer of the same task", async () => {
    const [path, runs] = [temporaryFile(), temporaryFile("runs.txt")];
    writeFileSync(runs, "");
    const front = await openFront();
    const doomed = startProgram(program("worker-program.ts"), [path, front.origin, runs, "hangs"]);
    onTestFinished(() => doomed.kill());
    front.leadTo(await doomed.firstLine);
    const { agent } = await deskCaller({ url: `${front.origin}/a2a/desk` }, { says: ["work"] });
    const turn = agent.executeTurn("go");
    await expect.poll(() => readFileSync(runs, "utf8"), polling).toBe("run\n");
    doomed.kill();
    await doomed.ended;
    front.leadTo("http://127.0.0.1:0");
    const next = startProgram(program("worker-program.ts"), [path, front.origin, runs]);
    onTestFinished(() => next.kill());
    front.leadTo(await next.firstLine);
    expect(await turn.result).toMatchObject({ status: "completed", text: "the end" });
    expect(await toolTextsOf(agent)).toEqual(["so: worked"]);
    expect(readFileSync(runs, "utf8")).toBe("run\nrun\n");
  });
});

describeRuntimes("a caller that ends before it has stored the id of its task", (stage) => {
  /** Dies once the send is recorded, while the message is still sent. */
  async function cut(url: string, honoursMessageIds: boolean | undefined) {
    const agents = [callerAgent({ url, says: ["work"], honoursMessageIds })];
    const doomed = await stage().openProcess({ agents });
    const agent = await doomed.runtime.agent("caller", { agentId: "caller" });
    await agent.start();
    const struck = Promise.withResolvers<void>();
    const disarm = armFaultPoints([
      {
        name: "tool.noted",
        hit: 1,
        action: () => {
          doomed.kill();
          struck.resolve();
        },
      },
    ]);
    onTestFinished(disarm);
    agent.executeTurn("go").result.catch(() => undefined);
    await struck.promise;
    stage().expireLeases();
    const runtime = await stage().open({ agents });
    const next = await runtime.find("caller");
    await next.start();
    return next;
  }

  it("finds the task by the message if the server honours its id: one task, which ran once", async () => {
    const gate = createGate<string>();
    const remote = await openWorker(() => gate.pass());
    const agent = await cut(remote.url, undefined);
    await gate.reached();
    gate.open("worked");
    expect((await agent.turn("caller#1").result).status).toBe("completed");
    expect(await toolTextsOf(agent)).toEqual(["so: worked"]);
    expect([(await remote.tasks()).length, gate.count]).toEqual([1, 1]);
  });

  it("has an unknown outcome otherwise, and sends nothing again", async () => {
    const remote = await openWorker(async () => "worked");
    const agent = await cut(remote.url, false);
    expect((await agent.turn("caller#1").result).status).toBe("completed");
    const [text] = await toolTextsOf(agent);
    expect(text).toMatch(/outcome of this call of "desk" is not known.*before the remote agent had returned the id/);
    await expect.poll(async () => (await remote.tasks()).length, polling).toBe(1);
  });
});
