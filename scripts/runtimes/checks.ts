/**
 * What is checked on each runtime, with the installed package. The titles are the rows of the table in docs/runtimes.md; a test compares
 * them.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createClient } from "../../src/client/index.ts";
import { outputOf, RunningProgram, type Runtime, type RuntimeName } from "./runtime.ts";

export interface CheckContext {
  /** The runtime under check. */
  readonly runtime: Runtime;
  /** The Node of this repository, whose results are the right ones. */
  readonly node: Runtime;
  /** The project that has installed the package. */
  readonly project: string;
  /** A new folder of the check. */
  readonly folder: string;
  /** Addresses of servers that are empty at the first check; `undefined` if the program is missing on this machine. */
  readonly redisUrl: string | undefined;
  readonly postgresUrl: string | undefined;
}

export interface Check {
  readonly title: string;
  /** The server that it needs. */
  readonly needs?: "redis" | "postgres";
  /** The only runtimes for which it has a meaning. Default: all. */
  readonly on?: readonly RuntimeName[];
  /**
   * What the runtime itself lacks: the message with which the check has to fail there. A check that passes in spite of it is a fault, because the
   * documentation is wrong then.
   */
  readonly fails?: Partial<Record<RuntimeName, RegExp>>;
  run(context: CheckContext): Promise<void>;
}

const program = ({ project }: CheckContext, name: string): string => join(project, name);

/** Runs a program on the runtime and on Node, in folders of their own, and compares what they print. */
async function sameAsOnNode(context: CheckContext, words: readonly string[], environment = {}): Promise<void> {
  const [name = "", ...others] = words;
  const printed = async (runtime: Runtime, folder: string): Promise<unknown> =>
    JSON.parse(
      await outputOf(runtime, [program(context, name), ...others], {
        folder: join(context.folder, folder),
        environment,
      }),
    );
  const expected = await printed(context.node, "on-node");
  assert.deepEqual(await printed(context.runtime, "here"), expected);
}

interface Crash {
  readonly scene: string;
  readonly first: Runtime;
  readonly second: Runtime;
  /** A file in the folder of the crash by default. */
  readonly store?: string;
}

/** Kills the first runtime with `kill -9` at the scene, and has the second one continue. Returns what the second one prints. */
async function crash(context: CheckContext, name: string, { scene, first, second, store }: Crash): Promise<unknown> {
  const options = { folder: join(context.folder, name.replaceAll(" ", "-")) };
  const words = (phase: string): string[] => [program(context, "crash.js"), store ?? "./agents.db", scene, phase];
  const killed = new RunningProgram(first, words("start"), options);
  await killed.seen(/^reached$/m);
  await killed.end("SIGKILL");
  return JSON.parse(await outputOf(second, words("resume"), options)) as unknown;
}

const scenes = ["after the tool", "in the tool", "in a subagent"];

/** A crash on the runtime ends like one on Node, with one effect. */
async function crashesAlike(context: CheckContext, pairs: readonly (readonly [Runtime, Runtime])[]): Promise<void> {
  for (const scene of scenes) {
    const { node } = context;
    const expected = await crash(context, `node ${scene}`, { scene, first: node, second: node });
    assert.equal((expected as { effects: number }).effects, 1);
    for (const [index, [first, second]] of pairs.entries()) {
      assert.deepEqual(await crash(context, `${index} ${scene}`, { scene, first, second }), expected, scene);
    }
  }
}

async function crashesOn(context: CheckContext, scene: string, store: string): Promise<void> {
  const { runtime, node } = context;
  const ended = (await crash(context, scene, { scene, first: runtime, second: runtime, store })) as { effects: number };
  assert.equal(ended.effects, 1);
  if (scene === "in a queued tool") return;
  // Redis and Postgres write what SQLite writes.
  assert.deepEqual(ended, await crash(context, `node ${scene}`, { scene, first: node, second: node }));
}

async function troupe(context: CheckContext, words: readonly string[], input = ""): Promise<string> {
  const main = join(context.project, "node_modules", "troupe", "dist", "cli", "main.js");
  return await outputOf(context.runtime, [main, ...words], { folder: context.folder, input });
}

function started(context: CheckContext, words: readonly string[], environment = {}): RunningProgram {
  const main = join(context.project, "node_modules", "troupe", "dist", "cli", "main.js");
  return new RunningProgram(context.runtime, [main, ...words], { folder: context.folder, environment });
}

/** Waits until a file of the folder has a line, which the program writes. */
async function lineIn(context: CheckContext, name: string, program: RunningProgram): Promise<string> {
  const file = join(context.folder, name);
  let isOver = false;
  void program.ended.then(() => (isOver = true));
  while (!existsSync(file) || !readFileSync(file, "utf8").includes("\n")) {
    if (isOver) throw new Error(`The program ended before it wrote ${name}:\n${(await program.ended).output}`);
    await delay(20);
  }
  return readFileSync(file, "utf8").trim();
}

const effectsIn = ({ folder }: CheckContext): number =>
  readFileSync(join(folder, "effects.txt"), "utf8").trim().split("\n").length;

async function isAlive(pid: number): Promise<boolean> {
  for (let attempt = 0; attempt < 250; attempt += 1) {
    try {
      process.kill(pid, 0);
    } catch {
      return false;
    }
    await delay(40);
  }
  return true;
}

/** The first message of the feed of the page: over a WebSocket, as the page asks for it. */
function firstOfFeed(page: URL, run: string): Promise<string> {
  const socket = new WebSocket(`ws://${page.host}/feed`, [
    "troupe.feed.v1",
    `bearer.${page.hash.slice("#token=".length)}`,
  ]);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.addEventListener("open", () => socket.send(JSON.stringify({ type: "watch", run, after: 0, credit: 8 })));
  socket.addEventListener("message", ({ data }) => resolve(String(data)));
  socket.addEventListener("close", ({ code, reason }) => reject(new Error(`the feed was closed: ${code} ${reason}`)));
  return promise.finally(() => socket.close());
}

const inspected = /http:\/\/127\.0\.0\.1:\d+\S*/;

export const checks: readonly Check[] = [
  {
    title: "`import` of every entry but `troupe/testing/matchers`",
    run: async (context) => {
      await outputOf(context.runtime, [program(context, "entries.js")], context);
    },
  },
  {
    title: "`require` of the same entries, one instance with `import`",
    run: async (context) => {
      await outputOf(context.runtime, [program(context, "entries.cjs")], context);
    },
  },
  {
    title: "a team in memory: tools, parallel subagents, an approval, budgets",
    run: (context) => sameAsOnNode(context, ["team.js"]),
  },
  {
    title: "`sqliteStores`: `kill -9` before, in and after a tool or a subagent, then another process",
    run: (context) => crashesAlike(context, [[context.runtime, context.runtime]]),
  },
  {
    title: "a SQLite file of Node continued here, and the other way",
    run: (context) =>
      crashesAlike(context, [
        [context.node, context.runtime],
        [context.runtime, context.node],
      ]),
  },
  {
    title: "`redisStores`: the same kills",
    needs: "redis",
    run: async (context) => {
      for (const scene of scenes) await crashesOn(context, scene, context.redisUrl ?? "");
    },
  },
  {
    title: "`bullmqQueues`: a `kill -9` in a queued tool",
    needs: "redis",
    run: (context) => crashesOn(context, "in a queued tool", context.redisUrl ?? ""),
  },
  {
    title: "`postgresStores`: the same kills",
    needs: "postgres",
    run: async (context) => {
      for (const scene of scenes) await crashesOn(context, scene, context.postgresUrl ?? "");
    },
  },
  {
    title: "`openaiModel`: a streamed answer, and an attempt after 529",
    run: (context) => sameAsOnNode(context, ["model.js", "direct"]),
  },
  {
    title: "`openaiModel` through the proxy of the environment",
    run: (context) => sameAsOnNode(context, ["model.js", "proxy"], { NODE_USE_ENV_PROXY: "1" }),
  },
  {
    title: "`serveRuntime` with `listen()`, and [the client](client.md): approval, a stream that continues",
    run: (context) => sameAsOnNode(context, ["http.js"]),
  },
  {
    title: "`serveRuntime` in `Bun.serve` or `Deno.serve`, beside one with `listen()`",
    on: ["bun", "deno"],
    run: async (context) => {
      const answers = await outputOf(context.runtime, [program(context, "own-server.js"), "both"], context);
      assert.equal(answers, '[["Here.",true],["Here.",true],["Here.",true]]');
    },
  },
  {
    title: "`mcp()` over stdio; the server ends with a killed process",
    run: async (context) => {
      const server = [...context.runtime.before, program(context, "mcp-server.js")];
      const printed = await outputOf(context.runtime, [program(context, "mcp.js"), "close", ...server], context);
      assert.deepEqual(JSON.parse(printed.split("\n").at(-1) ?? ""), { text: "Added.", sum: "42" });
      const hanging = new RunningProgram(context.runtime, [program(context, "mcp.js"), "hang", ...server], context);
      const [, pid = ""] = await hanging.seen(/^server (\d+)\n/m);
      await hanging.end("SIGKILL");
      assert.equal(await isAlive(Number(pid)), false, "the server outlives its process");
    },
  },
  {
    title: "the kit: workspace, shell, memory with full-text search",
    fails: { node: /FTS5, which the SQLite of Node 22\.\d+\.\d+ lacks/ },
    run: (context) => sameAsOnNode(context, ["kit.js"]),
  },
  {
    title: "commands: `init`, `ask`, `run`, `chat` from a pipe, `show`, `list`, `requests`, `export`",
    run: async (context) => {
      const agent = program(context, "clerk.js");
      mkdirSync(join(context.folder, "notes"));
      writeFileSync(
        join(context.folder, "notes", "key.md"),
        "# The key\n\nThe key of the shed hangs behind the door.\n",
      );
      assert.match(await troupe(context, ["--version"]), /^\d+\.\d+\.\d+\n$/);
      const asked = await troupe(context, ["ask", "--files", "notes", "--question", "Where does the key hang?"]);
      assert.match(asked, /behind the door/);
      const [, agentId = "none"] = /npx troupe show (ask-\w+)$/m.exec(asked) ?? [];
      assert.match(await troupe(context, ["show", agentId]), /Where does the key hang/);
      const ran = await troupe(context, ["run", agent, "The key hangs outside. Where is the key?", "--json"]);
      assert.match(ran, /hangs outside/);
      assert.match(
        await troupe(context, ["chat", agent], "The key is mine.\nWhose is the key?\n"),
        /is mine[^]*Resume with/,
      );
      const listed = (await troupe(context, ["list", "--json"])).trim().split("\n");
      assert.deepEqual(
        new Set(listed.map((line) => (JSON.parse(line) as { status: string }).status)),
        new Set(["ready"]),
      );
      assert.equal(listed.length, 3);
      assert.equal((await troupe(context, ["requests", "--json"])).trim(), "");
      await troupe(context, ["export", agentId, "--html", "run.html"]);
      assert.match(readFileSync(join(context.folder, "run.html"), "utf8"), /<html/);
      await troupe(context, ["init", "my-agent"]);
      assert.ok(existsSync(join(context.folder, "my-agent", "package.json")));
    },
  },
  {
    title: "`troupe run FILE.ts`",
    fails: { node: /Node 22\.\d+\.\d+ runs TypeScript only with a flag: set NODE_OPTIONS=--experimental-strip-types/ },
    run: async (context) => {
      const text: string =
        'import { defineAgent, offlineModel } from "troupe";\nexport default defineAgent({ name: "clerk" as string, model: offlineModel() });\n';
      writeFileSync(join(context.project, "typed.ts"), text);
      assert.match(
        await troupe(context, ["run", program(context, "typed.ts"), "The key hangs outside. Where is it?"]),
        /hangs/,
      );
    },
  },
  {
    title: "`troupe serve`: SIGTERM in a turn, exit code 0, and the next start finishes the turn",
    run: async (context) => {
      const token = "a-token-for-the-check-0001";
      const words = [
        "serve",
        program(context, "slow-agent.js"),
        "--port",
        "0",
        "--surfaces",
        "api",
        "--drain-seconds",
        "5",
      ];
      const environment = { TROUPE_SERVE_TOKEN: token };
      const address = /^Serving slow at (http:\S+);/m;
      const first = started(context, words, environment);
      const clientOf = ([, url = ""]: RegExpExecArray) =>
        createClient({ url, headers: () => ({ authorization: `Bearer ${token}` }) });
      const agent = await clientOf(await first.seen(address)).createAgent({ definition: "slow", key: "case 7" });
      await agent.executeTurn("Pay Ann.");
      await lineIn(context, "asked.txt", first);
      const { code, output } = await first.end("SIGTERM");
      assert.equal(code, 0, output);
      writeFileSync(join(context.folder, "go-on"), "");
      const second = started(context, words, environment);
      const again = clientOf(await second.seen(address))
        .agent(agent.agentId)
        .turn(1);
      assert.equal((await again.settled()).result?.text, "Ann is paid.");
      assert.equal(effectsIn(context), 1);
      assert.equal((await second.end("SIGTERM")).code, 0);
    },
  },
  {
    title: "`troupe inspect`: the page and its data",
    run: async (context) => {
      const task = "The key hangs outside. Where is the key?";
      await troupe(context, ["run", program(context, "clerk.js"), task, "--agent-id", "run-1"]);
      const inspecting = started(context, ["inspect", "--port", "0"]);
      const [url] = await inspecting.seen(inspected);
      const page = await fetch(url);
      assert.equal(page.status, 200);
      assert.match(await page.text(), /<html/);
      assert.match(await firstOfFeed(new URL(url), "run-1"), /"rows"|"type"/);
      const { code, output } = await inspecting.end("SIGTERM");
      assert.ok(code === 0 || code === 130 || code === 143, output);
    },
  },
  {
    title: "`troupe worker`: `kill -9` in a turn, another worker finishes it; SIGTERM ends with exit code 0",
    needs: "redis",
    run: async (context) => {
      const redis = ["--redis", context.redisUrl ?? "", "--prefix", "workers:"];
      const agent = program(context, "slow-agent.js");
      const worker = (): RunningProgram => started(context, ["worker", "--agents", agent, ...redis]);
      const first = worker();
      await first.seen(/is ready/);
      const client = started(context, ["run", agent, "Pay Ann.", ...redis, "--on", "workers"]);
      await lineIn(context, "asked.txt", client);
      await first.end("SIGKILL");
      writeFileSync(join(context.folder, "go-on"), "");
      const second = worker();
      const { code, output } = await client.ended;
      assert.equal(code, 0, output);
      assert.match(output, /Ann is paid\./);
      assert.equal(effectsIn(context), 1);
      const left = await second.end("SIGTERM");
      assert.equal(left.code, 0, left.output);
    },
  },
];
