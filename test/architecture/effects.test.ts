// No effect starts before its intent is committed. Code that this test finds in the sources and that is in none of these lists is a new
// kind of effect: add it here, and a scene to test/support/effect-kinds.ts that shows it.
import { readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { type Expression, parseSync, Visitor } from "oxc-parser";
import { describe, expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { localQueues } from "../../src/index.ts";
import { agentMachine, toolCallMachine, turnMachine } from "../../src/machines/index.ts";
import { intentTypes, timerSchema } from "../../src/state/index.ts";
import { type EffectKind, scenes } from "../support/effect-kinds.ts";
import { nodesOf } from "./machine-walk.ts";
import { importsOf } from "./source-imports.ts";

/** The effects that are visible outside. If there are none, a comment gives the reason. */
type Kinds = Readonly<Record<string, readonly EffectKind[]>>;

/** Effects that states of the machines cause. */
const ofStates: Kinds = {
  confirmPause: ["event"],
  receive: ["hook", "code"],
  think: ["model", "model again", "summary", "hook", "event"],
  decide: ["hook"],
  settleRound: ["hook"],
  interruptOpenWork: ["remote end", "job withdrawn"],
  complete: ["hook"],
  endTurn: ["event", "result"],
  performCall: ["tool", "tool again", "reconcile", "generate", "code", "hook", "request", "subagent", "remote message"],
  enqueueCall: ["job"],
  spawnOrdered: ["subagent"],
  settleChild: ["event"],
  settleWait: ["end of a wait"],
  reviewCall: ["hook"],
};

const ofIntents: Kinds = {
  "model.requested": ["model"],
  "generate.requested": ["generate", "summary"],
  "tool.started": ["tool", "tool in a worker", "job", "remote message"],
  "child.spawned": ["subagent"],
};

/** Effects of a stored timer. */
const ofTimers: Kinds = {
  limit: ["deadline", "event"],
  // Budget that was held for an agent in vain is offered to the next waiter, which then calls its model.
  claim: ["model"],
  request: ["expiry"],
  wait: ["end of a wait"],
  job: ["job again"],
};

const ofQueues: Kinds = {
  wake: ["wake"],
  add: ["job", "job again"],
  cancel: ["job withdrawn"],
  work: ["tool in a worker"],
  // These read, or end work of this process.
  awaited: [],
  names: [],
  counts: [],
  workers: [],
  deadLetters: [],
  health: [],
  drain: [],
  close: [],
};

/** Files that connect to other programs. */
const ofConnections: Kinds = {
  "src/model/openai-client.ts": ["model", "model again", "generate", "summary"],
  "src/model/undici-fetch.ts": ["model", "model again", "generate", "summary"],
  "src/remote/guarded-fetch.ts": ["remote message", "remote answer", "remote end"],
  "src/remote/remote-client.ts": ["remote message", "remote answer", "remote end"],
  "src/kit/shell-command.ts": ["tool", "tool again"],
  // Tries the sandbox once, when the shell is defined.
  "src/kit/bubblewrap.ts": [],
  "src/mcp/bounded-fetch.ts": ["tool", "tool again"],
  "src/mcp/oauth-fetch.ts": ["tool", "tool again"],
  "src/mcp/mcp-sdk.ts": ["tool", "tool again"],
  "src/mcp/skill-sdk.ts": ["tool", "tool again"],
  "src/mcp/stdio-transport.ts": ["tool", "tool again"],
  "src/mcp/task-sdk.ts": ["tool", "tool again"],
  "src/server/webhooks/receiver.ts": ["webhook"],
  "src/queues/bullmq-server.ts": ["wake", "job", "job again", "job withdrawn", "tool in a worker"],
  // The store itself.
  "src/redis/redis-link.ts": [],
  "src/postgres/postgres-connection.ts": [],
  // Reads keys to check the callers' tokens.
  "src/server/core/entra.ts": [],
  // These answer requests, and send none.
  "src/server/listen.ts": [],
  "src/server/core/addresses.ts": [],
  "src/server/a2a/sdk.ts": [],
  "src/server/mcp/sdk.ts": [],
};

/** User code, and results for callers. */
const ofCallers: Kinds = {
  "stores of users": ["copy"],
  "events and results": ["event", "result"],
};

const all = { ofStates, ofIntents, ofTimers, ofQueues, ofConnections, ofCallers };

/** Folders that run no agents, or only in the user's own process: pages, commands, and the client of the HTTP API. */
const otherRooms = /^src\/(?:inspector|cli|client|demo|testing)\//;
const network =
  /^(?:node:(?:http|https|http2|net|tls|dgram|child_process|worker_threads)|undici|openai|ioredis|pg|bullmq|ws|@a2a-js\/.*|@modelcontextprotocol\/.*)$/;
const globals: ReadonlySet<string> = new Set(["fetch", "WebSocket", "EventSource"]);
/** Most files contain none of these texts and need not be parsed. */
const mayReachOthers =
  /"(?:node:|undici|openai|ioredis|pg"|bullmq|ws"|@a2a-js|@modelcontextprotocol)|\b(?:fetch|WebSocket|EventSource)\(/;

function reachesOthers(path: string, source: string): boolean {
  if (!mayReachOthers.test(source)) return false;
  const imports = importsOf(path, source);
  if (typeof imports === "string") throw new Error(imports);
  const isImported = imports.some(({ kind, specifier }) => kind !== "type" && network.test(specifier ?? ""));
  return isImported || callsGlobal(path, source);
}

function callsGlobal(path: string, source: string): boolean {
  let isFound = false;
  const look = ({ callee }: { readonly callee: Expression }): void => {
    isFound ||= callee.type === "Identifier" && globals.has(callee.name);
  };
  new Visitor({ CallExpression: look, NewExpression: look }).visit(parseSync(path, source).program);
  return isFound;
}

function filesThatReachOthers(): string[] {
  const files = readdirSync(join(repositoryRoot, "src"), { recursive: true, withFileTypes: true });
  return files
    .filter((file) => file.isFile() && file.name.endsWith(".ts"))
    .map((file) => join(file.parentPath, file.name))
    .map((file) => ({ path: relative(repositoryRoot, file).split(sep).join("/"), source: readFileSync(file, "utf8") }))
    .filter(({ path, source }) => !otherRooms.test(path) && reachesOthers(path, source))
    .map(({ path }) => path);
}

describe("every kind of effect is shown to start after its intent is committed", () => {
  test.each([
    {
      what: "states of the machines",
      listed: ofStates,
      found: () => {
        const metas = [agentMachine, turnMachine, toolCallMachine].flatMap((machine) =>
          nodesOf(machine.root).map(({ meta }) => (meta as { readonly effect?: string } | undefined)?.effect),
        );
        return [...new Set(metas.flatMap((effect) => effect ?? []))];
      },
    },
    { what: "intents", listed: ofIntents, found: () => intentTypes },
    { what: "timers", listed: ofTimers, found: () => timerSchema.options.map(({ shape }) => shape.kind.value) },
    {
      what: "queues",
      listed: ofQueues,
      found: () => Object.keys(localQueues()).filter((name) => name !== "kind"),
    },
    { what: "connections", listed: ofConnections, found: filesThatReachOthers },
  ])("effects of $what", ({ listed, found }) => {
    expect(Object.keys(listed).toSorted()).toEqual([...found()].toSorted());
  });

  test("each kind that a scene shows is caused by one of them", () => {
    const shown = new Set<EffectKind>(Object.values(scenes).flat());
    const listed = new Set(Object.values(all).flatMap((kinds: Kinds) => Object.values(kinds).flat()));
    expect([...shown].toSorted()).toEqual([...listed].toSorted());
  });

  test("a file that connects to other programs is found", () => {
    expect(reachesOthers("src/tools/a.ts", 'import { request } from "node:http";\n')).toBe(true);
    expect(reachesOthers("src/tools/a.ts", "await fetch(url);\n")).toBe(true);
    expect(reachesOthers("src/tools/a.ts", 'throw new Error("pass it to fetch(request)");\n')).toBe(false);
    expect(reachesOthers("src/tools/a.ts", 'import type { Server } from "node:http";\nawait app.fetch(url);\n')).toBe(
      false,
    );
  });
});
