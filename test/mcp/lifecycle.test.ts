import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createRuntime, defineAgent, type Runtime } from "troupe";
import { mcp, type McpOwner, type McpTools } from "troupe/mcp";
import { memoryStores } from "troupe/stores/memory";
import { scriptedModel } from "troupe/testing";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { repositoryRoot, sourceCondition } from "../../scripts/run-command.ts";
import { entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { openScripted } from "./scripted-server.ts";
import { type AskedTool, callerOf, connected, openDesk } from "./served-desk.ts";
import { startedPrograms } from "./started-programs.ts";

const noTime = { timeout: 60_000 };

/** The texts of calls that run one after the other, in a turn each. */
async function answersTo(runtime: Runtime, calls: readonly AskedTool[], actorId?: string): Promise<string[]> {
  const agent = await runtime.agent("clerk");
  await agent.start();
  for (const call of calls) {
    await agent.executeTurn(JSON.stringify(call), actorId === undefined ? {} : { auth: { actorId } }).result;
  }
  return await toolTextsOf(agent);
}

/** A runtime whose agent makes the call that its prompt names. */
async function runtimeWith({ tools }: McpTools): Promise<Runtime> {
  const clerk = defineAgent({
    name: "clerk",
    tools: [...tools],
    model: scriptedModel(({ messages }) => {
      const last = messages.at(-1);
      if (last?.role !== "user" || typeof last.content !== "string") return "The work is done.";
      return { toolCalls: [{ arguments: {}, ...(JSON.parse(last.content) as AskedTool) }] };
    }),
  });
  const runtime = await createRuntime({ agents: [clerk], stores: memoryStores() });
  onTestFinished(() => runtime.shutdown());
  return runtime;
}

const pid: AskedTool = { name: "far__pid" };

function tokenOf(actorId: string | null) {
  return `token of ${actorId}`;
}

function callerHeaders({ actorId }: McpOwner) {
  return { "x-caller": tokenOf(actorId) };
}

function keyOf({ actorId }: McpOwner) {
  return { "x-api-key": `key-of-${actorId}` };
}

describe("owners (invariants 1 and 2 of the pool)", () => {
  test.each(["legacy", "modern"] as const)(
    "stdio %s: twenty owners have a process each, at most four at a time",
    noTime,
    async (era) => {
      const programs = startedPrograms(era);
      const runtime = await runtimeWith(
        await connected({ name: "far", ...programs.options, maxConnections: 4, connectTimeoutMs: 120_000 }),
      );
      let most = 0;
      const texts = await Promise.all(
        Array.from({ length: 20 }, async (_, index) => {
          const remember = { name: "far__remember", arguments: { text: `secret of ${index}` } };
          const answers = await answersTo(runtime, [{ name: "far__recall" }, remember, pid], `owner${index}`);
          most = Math.max(most, programs.running().length);
          return answers;
        }),
      );
      // No owner sees what another one has left.
      expect(texts.map(([first, second]) => [first, second])).toEqual(texts.map(() => ["", "remembered"]));
      expect(most).toBeLessThanOrEqual(4);
      expect(programs.starts().length).toBeGreaterThanOrEqual(21);
    },
  );

  test.each(["http legacy", "http modern", "sse"] as const)(
    "%s: twenty owners have headers and sessions of their own",
    noTime,
    async (way) => {
      const desk = await openDesk(way, "faults");
      const runtime = await runtimeWith(
        await connected({ name: "far", ...desk.options, headers: callerHeaders, maxConnections: 7 }),
      );
      const texts = await Promise.all(
        Array.from({ length: 20 }, async (_, index) => {
          const remember = { name: "far__remember", arguments: { text: `secret of ${index}` } };
          const calls = [{ name: "far__recall" }, remember, { name: "far__token" }, { name: "far__token" }];
          return await answersTo(runtime, calls, `owner${index}`);
        }),
      );
      const expected = texts.map((_, index) => {
        const token = `the token is ${tokenOf(`owner${index}`)}`;
        return ["", "remembered", token, token];
      });
      expect(texts).toEqual(expected);
    },
  );

  test("the secret of one owner is removed from the results of another one", async () => {
    const server = await openScripted({
      call: (_number, _request, { text }) => text("a has key-of-a, b has key-of-b"),
    });
    const runtime = await runtimeWith(await connected({ name: "far", url: server.url, headers: keyOf }));
    await answersTo(runtime, [{ name: "far__work" }], "a");
    const texts = await answersTo(runtime, [{ name: "far__work" }], "b");
    expect(texts).toEqual(["a has [secret:x-api-key], b has [secret:x-api-key]"]);
  });

  test("calls of one owner use one process, and those of another one do not", noTime, async () => {
    const programs = startedPrograms("legacy");
    const runtime = await runtimeWith(await connected({ name: "far", ...programs.options }));
    const remember = { name: "far__remember", arguments: { text: "of a" } };
    const [, ofA] = await answersTo(runtime, [remember, pid], "a");
    const [text, again] = await answersTo(runtime, [{ name: "far__recall" }, pid], "a");
    const [other, ofB] = await answersTo(runtime, [{ name: "far__recall" }, pid], "b");
    const [none, ofNone] = await answersTo(runtime, [{ name: "far__recall" }, pid]);
    expect([text, other, none, again]).toEqual(["of a", "", "", ofA]);
    expect(new Set([ofA, ofB, ofNone]).size).toBe(3);
  });

  test("an owner without a connection waits for one, and is not started if its time ends first", noTime, async () => {
    const programs = startedPrograms("legacy");
    const { tools } = await connected({
      name: "far",
      ...programs.options,
      maxConnections: 1,
      tools: { pid: { timeoutMs: 1_000 } },
    });
    const holder = await callerOf(tools, [{ name: "far__hang" }]);
    const held = holder.agent.executeTurn("go");
    const started = Promise.withResolvers<void>();
    held.subscribe(({ type }) => {
      if (type === "tool.started") started.resolve();
    });
    await started.promise;
    const waiting = await callerOf(tools, [pid]);
    await waiting.agent.executeTurn("go", { auth: { actorId: "b" } }).result;
    const [settled] = await entriesOfType(waiting.stores, "caller", "tool.settled");
    expect(settled?.outcome).toBe("error");
    expect((await toolTextsOf(waiting.agent))[0]).toMatch(/did not end within 1000 ms. It is known not to have taken/);
    await held.abort("enough");
    await held.result;
    await waiting.agent.executeTurn("go", { auth: { actorId: "b" } }).result;
    expect(Number((await toolTextsOf(waiting.agent)).at(-1))).toBeGreaterThan(0);
  });
});

describe("the end of connections (invariant 3 of the pool)", () => {
  test("an idle connection is closed, and the next call opens another", noTime, async () => {
    const programs = startedPrograms("legacy");
    const runtime = await runtimeWith(await connected({ name: "far", ...programs.options, idleMs: 1 }));
    await programs.ended();
    const [first] = programs.starts();
    const [second] = await answersTo(runtime, [pid]);
    await programs.ended();
    expect(programs.starts()).toHaveLength(2);
    expect(programs.starts().filter((started) => started !== first)).toEqual([Number(second)]);
  });

  test("the last of the runtimes that share the tools closes the connections", noTime, async () => {
    const programs = startedPrograms("legacy");
    const server = await connected({ name: "far", ...programs.options });
    const [one, two] = [await runtimeWith(server), await runtimeWith(server)];
    const first = await answersTo(one, [pid]);
    await one.shutdown();
    expect(await answersTo(two, [pid])).toEqual(first);
    await two.shutdown();
    expect(programs.running()).toEqual([]);
    const three = await runtimeWith(server);
    expect(await answersTo(three, [pid])).not.toEqual(first);
  });

  test("await using closes them for ever", noTime, async () => {
    const programs = startedPrograms("modern");
    {
      await using server = await mcp({ name: "far", ...programs.options });
      expect(server.tools).toHaveLength(6);
      expect(programs.running()).toHaveLength(1);
    }
    expect(programs.running()).toEqual([]);
  });

  test("a stubborn program and its helper are ended by close()", noTime, async () => {
    const programs = startedPrograms("legacy", "stubborn");
    const server = await mcp({ name: "far", ...programs.options });
    expect(programs.running()).toHaveLength(2);
    await server.close();
    await programs.ended();
  });
});

/** A process that connects to the program; it writes "ready" and stays if `stays`. */
async function owningProcess(options: object, stays: boolean) {
  const entry = pathToFileURL(join(repositoryRoot, "src", "mcp", "index.ts")).href;
  const program = `
    const { mcp } = await import(${JSON.stringify(entry)});
    const server = await mcp(${JSON.stringify({ name: "far", ...options })});
    console.log("ready", server.tools.length);
    ${stays ? "setInterval(() => undefined, 60_000);" : ""}`;
  const child = spawn(process.execPath, [`--conditions=${sourceCondition}`, "--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return child;
}

describe("the end of this process", () => {
  test("an idle connection does not keep it running, and the program ends with it", noTime, async () => {
    const programs = startedPrograms("legacy");
    const child = await owningProcess(programs.options, false);
    expect(await once(child, "exit")).toEqual([0, null]);
    await programs.ended();
  });

  test.each(["legacy", "modern"] as const)(
    "after kill -9 a stubborn %s program and its helper end",
    noTime,
    async (era) => {
      const programs = startedPrograms(era, "stubborn");
      const child = await owningProcess(programs.options, true);
      expect(programs.running()).toHaveLength(2);
      child.kill("SIGKILL");
      await programs.ended();
    },
  );
});

describe("programs that end", () => {
  test("a crash ends its calls at once, even if a helper keeps its output open", noTime, async () => {
    const programs = startedPrograms("legacy", "helper");
    const { tools } = await connected({ name: "far", ...programs.options });
    const { agent, stores } = await callerOf(tools, [{ name: "far__hang" }, { name: "far__die" }]);
    await agent.executeTurn("go").result;
    const settled = await entriesOfType(stores, "caller", "tool.settled");
    expect(settled.map(({ outcome }) => outcome)).toEqual(["outcome_unknown", "outcome_unknown"]);
    expect((await toolTextsOf(agent)).join(" ")).toContain("it ended with code 4");
    await programs.ended();
  });

  test("starts of several owners that fail at once count as one failure", noTime, async () => {
    const programs = startedPrograms("modern");
    const runtime = await runtimeWith(await connected({ name: "far", ...programs.options }));
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    writeFileSync(join(programs.folder, "broken"), "");
    const owners = Array.from({ length: 5 }, (_, index) => `owner${index}`);
    const failed = await Promise.all(owners.map(async (owner) => await answersTo(runtime, [pid], owner)));
    expect(failed.flat().filter((text) => /code 3.*the disk is full/.test(text))).toHaveLength(5);
    rmSync(join(programs.folder, "broken"));
    const [text] = await answersTo(runtime, [pid], "owner0");
    expect(Number(text)).toBeGreaterThan(0);
  });

  test("a program that ends at each start is not started in a loop", noTime, async () => {
    const programs = startedPrograms("modern");
    const runtime = await runtimeWith(await connected({ name: "far", ...programs.options }));
    const broken = join(programs.folder, "broken");
    writeFileSync(broken, "");
    await answersTo(runtime, [{ name: "far__die" }]);
    const before = programs.starts().length;
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const texts = await answersTo(runtime, [pid, pid, pid, pid, pid]);
    // Two attempts, each of which also tries the protocol's older era.
    expect(programs.starts().length - before).toBe(4);
    expect(texts.slice(0, 2).every((text) => /did not run the tool.*code 3.*the disk is full/.test(text))).toBe(true);
    const at = new Date(Date.now() + 1_000).toISOString();
    for (const text of texts.slice(2)) {
      expect(text).toContain(`failed to start 2 times in a row; the next attempt is possible at ${at}`);
    }
    rmSync(broken);
    vi.setSystemTime(Date.now() + 1_000);
    expect(await answersTo(runtime, [pid])).toEqual([`${programs.running().at(0)}`]);
  });
});
