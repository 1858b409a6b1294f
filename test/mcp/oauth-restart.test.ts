import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileMcpTokens, mcpLogins, memoryMcpTokens } from "troupe/mcp";
import { textLog } from "troupe/telemetry";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFile } from "../stores/temporary-file.ts";
import { entriesOf, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { startProgram } from "../support/waiting-process.ts";
import { openGuarded, redirectUrl } from "./oauth-server.ts";
import { callerDefinition, callerOf, connected } from "./served-desk.ts";

function folderOf(): string {
  const folder = mkdtempSync(join(tmpdir(), "troupe-tokens-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const program = new URL("login-program.ts", import.meta.url).pathname;

test("kill -9 while a call waits for a login: another process continues it, with one effect", async () => {
  const desk = await openGuarded();
  const [path, folder, key] = [temporaryFile(), folderOf(), randomBytes(32).toString("base64")];
  const store = fileMcpTokens({ folder, key });
  const logins = await mcpLogins({ name: "desk", url: desk.url, auth: { oauth: { redirectUrl, store } } });
  const logIn = async (actorId: string | null): Promise<void> =>
    await logins.finish(await desk.logIn(await logins.begin({ actorId }), actorId ?? "program"), { actorId });
  await logIn(null);
  const words = [path, desk.url, folder, key, redirectUrl];
  const doomed = startProgram(program, words);
  onTestFinished(() => doomed.kill());
  expect(await doomed.firstLine).toBe("waiting");
  doomed.kill();
  await doomed.ended;
  // The redirect arrives at a third process: this one.
  await logIn("ann");
  const next = startProgram(program, words);
  onTestFinished(() => next.kill());
  expect(await next.firstLine).toMatch(/^completed .*paid 5 with k1/);
  expect(await next.ended).toMatchObject({ code: 0 });
  expect([desk.effects(), desk.users()]).toEqual([["5 k1"], ["ann"]]);
  for (const file of readdirSync(folder)) {
    expect(statSync(join(folder, file)).mode & 0o77).toBe(0);
    const text = readFileSync(join(folder, file), "latin1");
    for (const secret of desk.secrets) expect(text).not.toContain(secret);
  }
  const stored = readFileSync(path, "latin1");
  for (const secret of desk.secrets) expect(stored).not.toContain(secret);
});

test("two processes with one store: the second takes the tokens that the first has refreshed", async () => {
  const desk = await openGuarded();
  const store = memoryMcpTokens();
  // Stores that are different objects share no queue, as in two processes.
  const optionsOf = () => ({ name: "desk", url: desk.url, auth: { oauth: { redirectUrl, store: { ...store } } } });
  const logins = await mcpLogins(optionsOf());
  for (const actorId of [null, "ann"]) {
    await logins.finish(await desk.logIn(await logins.begin({ actorId }), actorId ?? "program"), { actorId });
  }
  const call = [{ name: "desk__echo", arguments: { text: "hi" } }];
  const callers = [];
  for (let process = 1; process <= 2; process += 1) {
    callers.push(await callerOf((await connected(optionsOf())).tools, call));
  }
  desk.expire();
  const before = desk.refreshes();
  for (const { agent } of callers) {
    await agent.executeTurn("go", { auth: { actorId: "ann" } }).result;
    expect(await toolTextsOf(agent)).toEqual(["echo: hi"]);
  }
  expect(desk.refreshes() - before).toBe(1);
});

test("the lock of the store encloses each refresh and login", async () => {
  const desk = await openGuarded();
  const kept = memoryMcpTokens();
  const held: string[] = [];
  const store = {
    ...kept,
    lock: async ({ actorId }: { readonly actorId: string | null }, work: () => Promise<void>) => {
      held.push(`take ${actorId}`);
      await work();
      held.push(`leave ${actorId}`);
    },
  };
  const logins = await mcpLogins({ name: "desk", url: desk.url, auth: { oauth: { redirectUrl, store } } });
  await logins.finish(await desk.logIn(await logins.begin({ actorId: "ann" }), "ann"), { actorId: "ann" });
  expect(held).toEqual(["take ann", "leave ann", "take ann", "leave ann"]);
});

describeRuntimes("secrets of logins (S13)", (stage) => {
  test("are in no record, request, journal, message, event, log or inspection frame, nor in the file", async () => {
    const desk = await openGuarded();
    const store = memoryMcpTokens();
    const { tools, logins } = await openDesk();
    const frames: string[] = [];
    const calls = [
      { name: "desk__echo", arguments: { text: "it is MY-TOKEN" } },
      { name: "desk__pay", arguments: { amount: 1, key: "MY-TOKEN" } },
    ];
    const runtime = await stage().open({
      agents: [callerDefinition(tools, calls)],
      onInspect: (_agentId, event) => {
        if (event.type === "@xstate.snapshot") frames.push(JSON.stringify([event.event, event.snapshot]));
      },
    });
    const folder = folderOf();
    const log = textLog(runtime, { directory: folder });
    const events: unknown[] = [];
    runtime.subscribe((event) => events.push(event));
    const agent = await runtime.agent("caller", { agentId: "caller" });
    await agent.start();
    const auth = { actorId: "ann" };
    const turn = agent.executeTurn("go", { auth });
    await turn.settled;
    await logins.finish(await desk.logIn(await logins.begin(auth), "ann"), auth);
    for (const { requestId } of await runtime.requests()) await runtime.decide(requestId, { verdict: "provided" });
    await turn.result;
    desk.expire();
    await agent.executeTurn("again", { auth }).result;
    await log.close();
    const look = stage().look();
    const key = { tenant: "default", agentId: "caller" };
    const told = JSON.stringify([
      [events, runtime.overview.getSnapshot(), await agent.getTrace(), agent.state, frames],
      [await look.readAgent(key), await look.inbox(key), await look.messages(key), await entriesOf(look, "caller")],
      [await look.requests({ tenant: "default" }), await look.readTree("default", "caller", 0, 1_000)],
      readdirSync(folder).map((file) => readFileSync(join(folder, file), "utf8")),
    ]);
    expect(told).toContain("[secret:access_token]");
    expect(desk.secrets.size).toBeGreaterThan(8);
    const bytes = stage().stored();
    for (const secret of desk.secrets) {
      expect(told).not.toContain(secret);
      expect(bytes).not.toContain(secret);
    }

    async function openDesk() {
      const options = { name: "desk", url: desk.url, auth: { oauth: { redirectUrl, store } } };
      const first = await mcpLogins(options);
      const actorId = null;
      await first.finish(await desk.logIn(await first.begin({ actorId }), "program"), { actorId });
      return await connected(options);
    }
  });
});
