import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { InvalidInputError } from "../../src/errors/index.ts";
import type { ModelResponse } from "../../src/state/index.ts";
import { AskedRequest, AwaitedChild, concealCredentials, type RunContext, revocable } from "../../src/tools/index.ts";
import { nothingToRedact } from "../../src/tools/secrets.ts";
import { anyValues, classicValues, isTaken } from "../support/wrong-values.ts";

const secret = "canary-7f3a";
const answer: ModelResponse = {
  content: "hi",
  toolCalls: [],
  usage: { inputTokens: 1, outputTokens: 1 },
  finishReason: "stop",
  model: "m",
};

function context(progress: RunContext["progress"] = () => undefined): RunContext {
  return {
    agent: {
      agentId: "a-1",
      name: "lead",
      parentAgentId: null,
      rootAgentId: "a-1",
      depth: 0,
      sessionId: null,
      tenant: "default",
      ownerId: null,
    },
    turnId: "t-1",
    step: 1,
    callId: "t-1:1:0",
    actorId: "ada",
    contextPercent: null,
    attempt: 1,
    prompt: "hello",
    previousTools: [],
    trace: [],
    auth: concealCredentials({ actorId: "ada", credentials: { token: secret } }),
    signal: new AbortController().signal,
    idempotencyKey: "key",
    progress,
    generate: () => Promise.reject(new Error("no model")),
    saveArtifact: async () => ({ artifactId: "artifact-1", version: 1 }),
    artifact: async () => undefined,
    artifacts: async () => [],
    spawn: () => Promise.reject(new Error("no children")),
    await: ({ agentId }, options) => new AwaitedChild(agentId, options?.prefix),
    noted: null,
    answer: null,
    note: async () => undefined,
    ask: (question) => new AskedRequest(question),
    bill: async () => undefined,
    schedules: { add: () => Promise.reject(new Error("no schedules")), list: async () => [], cancel: async () => true },
  };
}

describe("a revocable run context (H6)", () => {
  test("during the call it behaves as the context itself", async () => {
    const updates: unknown[] = [];
    const original = context((update) => updates.push(update));
    const { run } = revocable(original.callId, () => original);
    expect({ ...run, auth: run.auth }).toMatchObject({ turnId: "t-1", prompt: "hello", callId: "t-1:1:0" });
    expect(run.auth).toBe(original.auth);
    run.progress({ done: 0.5 });
    expect(updates).toEqual([{ done: 0.5 }]);
    const artifact = { name: "n", contentType: "text/plain", content: "c" };
    expect(await run.saveArtifact(artifact)).toEqual({ artifactId: "artifact-1", version: 1 });
  });

  test("after the call every access throws", () => {
    const original = context();
    const lent = revocable(original.callId, () => original);
    const { run } = lent;
    lent.revoke();
    lent.revoke();
    const fields = Object.keys(original) as (keyof RunContext)[];
    expect(fields).toHaveLength(26);
    for (const field of fields) {
      expect(() => run[field], field).toThrow(InvalidInputError);
      expect(() => run[field], field).toThrow(/t-1:1:0 was used after the call had ended/);
    }
    expect(() => JSON.stringify(run)).toThrow(InvalidInputError);
  });

  test("a method read before is revoked too", () => {
    const updates: unknown[] = [];
    const lent = revocable("call", () => context((update) => updates.push(update)));
    const { run } = lent;
    const { progress, generate, saveArtifact, spawn } = run;
    lent.revoke();
    expect(() => progress("late")).toThrow(InvalidInputError);
    expect(() => generate({ messages: [] })).toThrow(InvalidInputError);
    expect(() => saveArtifact({ name: "n", contentType: "t", content: "c" })).toThrow(InvalidInputError);
    expect(() => spawn({}, "go", { key: "k" })).toThrow(InvalidInputError);
    expect(updates).toEqual([]);
  });
});

describe("a run whose tool has secrets (S13)", () => {
  test("its output is redacted once the secrets are known", async () => {
    const sent: unknown[] = [];
    const original: RunContext = {
      ...context((update) => sent.push(update)),
      saveArtifact: async (artifact) => ({ artifactId: "artifact-1", version: sent.push(artifact) }),
      generate: async (request) => Promise.reject(new Error(`sent ${sent.push(request)}`)),
      spawn: async (_definition, input, options) => Promise.reject(new Error(`sent ${sent.push({ input, options })}`)),
    };
    const lent = revocable(original.callId, () => original);
    const { run } = lent;
    run.progress(secret);
    lent.redactWith((text) => text.replaceAll(secret, "[secret]"));
    run.progress({ [secret]: [`key ${secret}`, 1, null] });
    await run.saveArtifact({ name: `n ${secret}`, contentType: "text/plain", content: secret });
    await expect(
      run.generate({ messages: [{ role: "user", content: [{ type: "text", text: secret }] }] }),
    ).rejects.toThrow("sent");
    await expect(run.spawn({}, `use ${secret}`, { key: "k" })).rejects.toThrow("sent");
    expect(sent).toEqual([
      secret,
      { "[secret]": ["key [secret]", 1, null] },
      { name: "n [secret]", contentType: "text/plain", content: "[secret]" },
      { messages: [{ role: "user", content: [{ type: "text", text: "[secret]" }] }] },
      { input: "use [secret]", options: { key: "k" } },
    ]);
  });

  test.each(["maxOutputTokens", "temperature", "stopSequences", "reasoningEffort", "providerOptions"])(
    "a wrong %s of run.generate() is refused",
    async (setting) => {
      const { run } = revocable("call", () => ({ ...context(), generate: async () => answer }));
      let refused = 0;
      for (const value of [...classicValues(), ...anyValues(20)]) {
        const given = { messages: [{ role: "user" as const, content: "hello" }], [setting]: value };
        if (!(await isTaken(setting, () => run.generate(given)))) refused += 1;
      }
      expect(refused).toBeGreaterThan(10);
    },
  );

  test("a run without secrets returns copies of its inputs", () => {
    const sent: unknown[] = [];
    const update = { done: 0.5 };
    const lent = revocable("call", () => context((value) => sent.push(value)));
    const { run } = lent;
    lent.redactWith(nothingToRedact);
    run.progress(update);
    expect(sent[0]).toEqual(update);
    expect(sent[0]).not.toBe(update);
  });
});

test("credentials can be read, and are not in JSON, copies or console output (L9, S13)", () => {
  const auth = concealCredentials({ actorId: "ada", credentials: { token: secret } });
  expect(auth.credentials).toEqual({ token: secret });
  const { run } = revocable("call", context);
  for (const shown of [JSON.stringify(auth), inspect(auth), JSON.stringify({ ...auth }), JSON.stringify(run)]) {
    expect(shown).not.toContain(secret);
  }
  expect(inspect(run, { getters: true, depth: 10 })).not.toContain(secret);
  expect(concealCredentials({ actorId: "ada" })).toEqual({ actorId: "ada" });
});
