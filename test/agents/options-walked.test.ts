import { trace } from "@opentelemetry/api";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  approval,
  askUser,
  clientTool,
  contextWarning,
  createAgent,
  createRuntime,
  defineAgent,
  defineTool,
  dropOldest,
  fallbackModel,
  localQueues,
  noProgressGuard,
  offlineModel,
  openaiModel,
  reactHistory,
  reflection,
  routedModel,
  subagent,
  summarize,
  toolLogging,
  trust,
  elideResults,
  windowHistory,
} from "../../src/index.ts";
import {
  artifactFiles,
  guard,
  memory,
  memoryNotes,
  moderation,
  notes,
  piiGuard,
  processMemory,
  shell,
  sqliteMemory,
  todos,
  tripwire,
  workspace,
} from "../../src/kit/index.ts";
import { startInspector } from "../../src/inspector/index.ts";
import { bullmqQueues } from "../../src/queues/bullmq.ts";
import { postgresStores } from "../../src/stores/postgres.ts";
import { redisStores } from "../../src/stores/redis.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import {
  createRedactor,
  renderTrace,
  terminalLog,
  textLog,
  traceToOpenTelemetry,
  yamlSession,
} from "../../src/telemetry/index.ts";
import { createFakeClock, scriptedModel } from "../../src/testing/index.ts";
import { amount } from "../support/full.ts";
import { aiSdkModel } from "../../src/model/ai-sdk.ts";
import { anyValues, classicValues, isTaken } from "../support/wrong-values.ts";

interface Walked {
  readonly of: string;
  /** Options that are valid. */
  readonly good: object;
  /** The names of all options. */
  readonly names: string;
  readonly call: (options: never) => unknown;
}

const model = scriptedModel("fine");
const sdkModel = {
  specificationVersion: "v4",
  provider: "test.chat",
  modelId: "m",
  supportedUrls: {},
  doStream: () => Promise.reject(new Error("this model is never called")),
} as const;
const child = defineAgent({ name: "child", model });
const parameters = z.object({});
const feed = { subscribe: () => ({ unsubscribe: () => undefined }), stores: {}, tenant: "default" } as never;
const definition =
  "name model instructions tools hooks plugins budget maxOutputTokens temperature stopSequences reasoningEffort toolChoice providerOptions responseFormat maxModelAttempts maxConsecutiveToolFailures price history maxMessages autoCompact output";

const walked: readonly Walked[] = [
  { of: "defineAgent", good: { name: "desk", model }, names: definition, call: defineAgent },
  {
    of: "defineTool",
    good: { name: "look", description: "Looks.", parameters, execute: () => "" },
    names:
      "name description parameters effect execute reconcile needsApproval approvalExpiresAfterMs describeCall auth endsTurn secrets queue priority timeoutMs concurrency maxAttempts maxOutputCharacters maxArgumentBytes",
    call: defineTool,
  },
  {
    of: "clientTool",
    good: { name: "look", description: "Looks.", parameters },
    names: "name description parameters describeCall expiresAfterMs",
    call: clientTool,
  },
  { of: "askUser", good: {}, names: "name description expiresAfterMs", call: askUser },
  {
    of: "subagent",
    good: {},
    names: "name description parameters input budget policy mode onEnd endsTurn history",
    call: (options) => subagent(child, options),
  },
  {
    of: "openaiModel",
    good: {},
    names:
      "provider apiKey baseURL organization headers contextWindow stallTimeoutMs headersTimeoutMs requestTimeoutMs fetch extraBody outputLimitField imageTokens fileTokens foreignCallIds tooLongMessages structuredOutput thinkingReplay cache cacheTtl",
    call: (options) => openaiModel("m", options),
  },
  {
    of: "openaiModel",
    good: { api: "responses" },
    names: "api reasoning extraBody",
    call: (options) => openaiModel("m", options),
  },
  {
    of: "fallbackModel",
    good: {},
    names: "when breaker name contextWindow",
    call: (options) => fallbackModel([model], options),
  },
  {
    of: "routedModel",
    good: { models: [model] },
    names: "models name contextWindow",
    call: (options) => routedModel(() => model, options),
  },
  {
    of: "aiSdkModel",
    good: {},
    names:
      "name provider contextWindow providerOptions stallTimeoutMs headersTimeoutMs requestTimeoutMs imageTokens fileTokens tooLongMessages structuredOutput cache cacheTtl",
    call: (options) => aiSdkModel(sdkModel, options),
  },
  { of: "offlineModel", good: {}, names: "name tokensPerSecond closingLine", call: offlineModel },
  { of: "localQueues", good: {}, names: "clock random graceMs deadLettersKept redact", call: localQueues },
  {
    of: "sqliteStores",
    good: {},
    names: "durability busyLimitMs maxBytes",
    call: (options) => sqliteStores(":memory:", options).close(),
  },
  {
    of: "redisStores",
    good: { url: "redis://x" },
    names: "url client cluster prefix timeoutMs ttl",
    call: redisStores,
  },
  {
    of: "postgresStores",
    good: { url: "postgres://x/y" },
    names: "url connection schema maxConnections timeoutMs",
    call: postgresStores,
  },
  {
    of: "bullmqQueues",
    good: { url: "redis://x" },
    names:
      "url client cluster postgres prefix timeoutMs secrets lockMs deathCheckMs cancelCheckMs graceMs deadLettersKept redact clock",
    call: bullmqQueues,
  },
  { of: "reactHistory", good: {}, names: "contextWindowSize expandBy", call: reactHistory },
  { of: "windowHistory", good: {}, names: "upTo", call: (options) => windowHistory(5, options) },
  { of: "elideResults", good: {}, names: "keepRounds overCharacters", call: elideResults },
  { of: "dropOldest", good: {}, names: "keep", call: dropOldest },
  { of: "summarize", good: {}, names: "keep instructions maxOutputTokens maxInputCharacters", call: summarize },
  { of: "approval", good: { decide: () => true }, names: "decide", call: approval },
  { of: "contextWarning", good: {}, names: "atPercent warn", call: contextWarning },
  { of: "noProgressGuard", good: {}, names: "repeats", call: noProgressGuard },
  { of: "reflection", good: {}, names: "prompt every", call: reflection },
  { of: "toolLogging", good: { write: () => undefined }, names: "write", call: toolLogging },
  { of: "trust", good: { allow: [] }, names: "allow", call: trust },
  {
    of: "workspace",
    good: {},
    names: "write needsApproval shell maxFileBytes prefix",
    call: (options) => workspace(artifactFiles(), options),
  },
  {
    of: "shell",
    good: {},
    names: "wrap needsApproval timeoutMs maxOutputCharacters passEnvironment environment name folder",
    call: shell,
  },
  { of: "todos", good: {}, names: "prefix", call: todos },
  { of: "notes", good: { scope: "owner", store: memoryNotes() }, names: "scope store prefix", call: notes },
  {
    of: "memory",
    good: { store: processMemory(), scope: "owner" },
    names: "store scope recall remember prefix",
    call: memory,
  },
  {
    of: "memory (recall)",
    good: {},
    names: "limit maxCharacters",
    call: (recall) => memory({ store: processMemory(), scope: "owner", recall }),
  },
  {
    of: "guard",
    good: { input: () => undefined },
    names: "name input toolCall toolResult output subagents",
    call: guard,
  },
  { of: "piiGuard", good: {}, names: "action kinds at subagents name", call: piiGuard },
  { of: "tripwire", good: { when: /a/, at: ["input"] }, names: "when at reason subagents name", call: tripwire },
  { of: "moderation", good: {}, names: "model policy at maxOutputTokens subagents name", call: moderation },
  { of: "createRedactor", good: {}, names: "secrets patterns environment shapes", call: createRedactor },
  { of: "renderTrace", good: {}, names: "content redactor", call: (options) => renderTrace([], options) },
  {
    of: "terminalLog",
    good: {},
    names: "redactor content write quiet",
    call: (options) => terminalLog(feed, options),
  },
  { of: "textLog", good: {}, names: "redactor content", call: (options) => textLog(feed, "log", options) },
  {
    of: "yamlSession",
    good: { directory: "sessions" },
    names: "directory messages redactor",
    call: (options) => yamlSession(feed, options),
  },
  {
    of: "traceToOpenTelemetry",
    good: { tracerProvider: trace.getTracerProvider() },
    names: "tracerProvider captureContent providerName redactor",
    call: (options) => traceToOpenTelemetry(feed, options).close(),
  },
  {
    of: "startInspector",
    good: {},
    names: "port allowStately mostWaitingBytes now keptEnded decide namesOnly by run",
    call: async (options) => (await startInspector(options)).close(),
  },
  {
    of: "scriptedModel",
    good: {},
    names: "name provider contextWindow",
    call: (options) => scriptedModel("fine", options),
  },
];

/** These start a runtime and shut it down, so fewer values are tried. */
const running: readonly Walked[] = [
  {
    of: "createRuntime",
    good: { agents: [child] },
    names:
      "agents stores projections prices showCosts tenant clock random leaseMs resolveAuth mayDecide onInspect restoreAfterCommit queues role work retention",
    call: async (options) => (await createRuntime(options)).shutdown(),
  },
  {
    of: "createAgent",
    good: { model },
    names: `${definition} agentId sessionId ownerId metadata stubs autoSave agents stores projections`,
    call: async (options) => (await createAgent(options)).runtime.shutdown(),
  },
];

describe.each([...walked.map((one) => ({ ...one, count: 60 })), ...running.map((one) => ({ ...one, count: 10 }))])(
  "$of()",
  ({ of, good, names, call, count }) => {
    it("accepts each value of each option, or refuses it and names the option", async () => {
      for (const name of names.split(" ")) {
        const outcomes: boolean[] = [];
        for (const value of [...classicValues(), ...anyValues(amount(count, 5))]) {
          outcomes.push(await isTaken(name, () => call({ ...good, [name]: value } as never)));
        }
        expect(outcomes, `${name} refuses something`).toContain(false);
      }
      await call(good as never);
    });

    it("refuses options of a wrong kind and unknown options", async () => {
      const outcomes: boolean[] = [];
      for (const value of classicValues()) outcomes.push(await isTaken("", () => call(value as never)));
      expect(outcomes).toContain(false);
      expect(await isTaken("optionen", () => call({ ...good, optionen: 1 } as never))).toBe(ownFields.has(of));
      const [first = ""] = names.split(" ");
      const misspelt = `${first}${first.at(-1)}`;
      expect(
        await isTaken(`"${misspelt}": did you mean ${first}?`, () => call({ ...good, [misspelt]: 1 } as never)),
      ).toBe(false);
    });
  },
);

/** Definitions whose functions are called as methods may have extra fields. */
const ownFields: ReadonlySet<string> = new Set(["defineTool", "clientTool"]);

it("arguments other than options are checked too", async () => {
  const calls: readonly ((value: never) => unknown)[] = [
    windowHistory,
    openaiModel,
    subagent,
    createFakeClock,
    scriptedModel,
    terminalLog,
    (value) => textLog(feed, value),
  ];
  for (const call of calls) {
    const outcomes: boolean[] = [];
    for (const value of classicValues()) outcomes.push(await isTaken("", () => call(value as never)));
    expect(outcomes).toContain(false);
  }
  for (const value of classicValues().filter((one) => typeof one !== "string")) {
    expect(await isTaken("", () => sqliteStores(value as never))).toBe(false);
    expect(await isTaken("", () => sqliteMemory({ file: value as never }))).toBe(false);
  }
});
