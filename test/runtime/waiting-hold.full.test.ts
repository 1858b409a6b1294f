import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { createRuntime, defineAgent, defineTool, type Runtime, type Stores } from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { programTimeoutMs } from "../support/programs.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";
import { calling } from "../support/turn-probes.ts";
import { startProgram, type WaitingProcess } from "../support/waiting-process.ts";

const payer = defineAgent({
  name: "payer",
  model: scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "paid" : calling("pay"))),
  tools: [
    defineTool({
      name: "pay",
      description: "Pays.",
      parameters: z.object({}),
      needsApproval: true,
      execute: () => "paid",
    }),
  ],
});

/** What each program waits for and prints. Nothing else keeps its process alive. */
const waits = {
  "turn.result": "console.log((await turn.result).text);",
  // The second turn, which opens its own request once the first has ended.
  "turn.settled": "await (await runtime.find('payer-1')).turn('payer-1#2').settled; console.log('paid');",
  "for await over the turn":
    "for await (const event of turn) if (event.type === 'turn.completed') console.log(event.text);",
  "runtime.follow":
    "for await (const event of runtime.follow('payer-1')) if (event.type === 'turn.completed') { console.log(event.text); break; }",
} as const;

const onlyLook = `
import { createRuntime } from "troupe";
STORES
const runtime = await createRuntime({ agents: [], stores });
const turn = (await runtime.find("payer-1")).turn("payer-1#1");
console.log("waiting");
WAIT
await runtime.shutdown();
`;

/** A program whose own agent is paused, so that none of its agents works. */
const paused = (stores: string, end: string): string => `
import { createRuntime, defineAgent } from "troupe";
import { sqliteStores } from "troupe/stores/sqlite";
import { scriptedModel } from "troupe/testing";

const runtime = await createRuntime({ agents: [defineAgent({ name: "calm", model: scriptedModel("over") })]${stores} });
const agent = await runtime.agent("calm", { agentId: "calm-1" });
await agent.start();
await agent.pause();
const turn = agent.executeTurn("go");
await turn.id;
console.log("paused");
${end}
`;

let folder: string;
let started: WaitingProcess[] = [];
beforeAll(() => {
  folder = mkdtempSync(join(repositoryRoot, ".troupe-waiting-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(() => {
  for (const program of started) program.kill();
  started = [];
});

let count = 0;
function startText(text: string): WaitingProcess {
  const file = join(folder, `program-${(count += 1)}.ts`);
  writeFileSync(file, text);
  const program = startProgram(file);
  started.push(program);
  return program;
}

interface StoresSetup {
  readonly stores: Stores;
  /** The source lines that open the same stores in a program. */
  readonly text: string;
}

function describeWaits(title: string, open: () => StoresSetup, canRun = true): void {
  describe.skipIf(!canRun)(`a process that only waits, on ${title}`, () => {
    let runtime: Runtime;
    let setup: StoresSetup;
    const setUp = async (): Promise<void> => {
      setup = open();
      runtime = await createRuntime({ agents: [payer], stores: setup.stores });
      const agent = await runtime.agent("payer", { agentId: "payer-1" });
      await agent.start();
      await agent.executeTurn("pay").settled;
      await agent.executeTurn("pay again", { ifBusy: "queue" }).id;
    };
    afterEach(() => runtime.shutdown());

    it.each(Object.entries(waits))(
      "for %s of a turn that another process runs",
      async (_name, wait) => {
        await setUp();
        const program = startText(onlyLook.replace("STORES", setup.text).replace("WAIT", wait));
        expect(await program.firstLine).toBe("waiting");
        const [request] = await runtime.requests();
        await runtime.decide(request?.requestId ?? "", { verdict: "approved", by: "ann" });
        const { stdout, stderr, code } = await program.ended;
        expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: "waiting\npaid\n" });
      },
      programTimeoutMs,
    );
  });
}

describeWaits("SQLite", () => {
  const file = join(folder, `file-${(count += 1)}.db`);
  const text = `import { sqliteStores } from "troupe/stores/sqlite";\nconst stores = sqliteStores(${JSON.stringify(file)});`;
  return { stores: sqliteStores(file), text };
});

describe.skipIf(!redisProgram)("with a Redis", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());
  describeWaits("Redis", () => {
    const prefix = ownPrefix();
    const options = JSON.stringify({ url: server.url, prefix });
    const text = `import { redisStores } from "troupe/stores/redis";\nconst stores = redisStores(${options});`;
    return { stores: storesOn(server, { prefix }), text };
  });
});

describe("a process whose own agent is paused", () => {
  it(
    "exits with Node's code for a wait that cannot end, in memory",
    async () => {
      const { stdout, stderr, code } = await startText(paused("", "await turn.result;")).ended;
      expect({ code, stdout }, stderr).toEqual({ code: 13, stdout: "paused\n" });
    },
    programTimeoutMs,
  );

  it(
    "exits normally on a file if it only subscribes and does not await the result",
    async () => {
      const { stdout, stderr, code } = await startText(
        paused(`, stores: sqliteStores(${JSON.stringify(join(folder, "own.db"))})`, "turn.subscribe(() => undefined);"),
      ).ended;
      expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: "paused\n" });
    },
    programTimeoutMs,
  );
});
