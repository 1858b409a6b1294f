import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import {
  createRuntime,
  defineAgent,
  defineTool,
  fallbackModel,
  type LanguageModel,
  ModelError,
  type ModelDelta,
  type ModelRequest,
  run,
} from "../../src/index.ts";
import { recordedModel, scriptedModel } from "../../src/testing/index.ts";
import { anyValues, classicValues, isTaken } from "../support/wrong-values.ts";

let folder = "";
let file = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "troupe-recorded-"));
  file = join(folder, "calls", "model.json");
  vi.stubEnv("CI", "");
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

function requestOf(text: string, more: Partial<ModelRequest> = {}): ModelRequest {
  return { messages: [{ id: text, role: "user", createdAt: 0, origin: "user", content: text }], ...more };
}

async function asked(model: LanguageModel, request: ModelRequest | string) {
  const deltas: ModelDelta[] = [];
  const { signal } = new AbortController();
  const input = typeof request === "string" ? requestOf(request) : request;
  const answer = await model.generate(input, { signal, onDelta: (delta) => deltas.push(delta) });
  return { answer, deltas };
}

/** Numbers its answers, so that a replayed one is told from a new one. */
function counting() {
  let count = 0;
  return scriptedModel(
    () => {
      count += 1;
      return {
        deltas: ["answer ", String(count)],
        reasoning: `thought ${count}`,
        toolCalls: [{ name: "look", arguments: { at: count } }],
        usage: { inputTokens: 10 * count, outputTokens: count, cachedInputTokens: 2 },
        sources: [{ type: "url", url: "https://example.com" }],
      };
    },
    { name: "counter", contextWindow: 9_000 },
  );
}

/** Fails in its first call, after a delta. */
const failing = (): LanguageModel => {
  let count = 0;
  return scriptedModel(() => {
    count += 1;
    const error = new ModelError("overloaded", {
      retryable: true,
      mayHaveBeenSent: true,
      status: 529,
      retryAfterMs: 1,
    });
    return count === 1 ? { deltas: ["par"], error } : "fine";
  });
};

const key = (last: string): string => `sk-proj-abcdefghijklmnopqrstuvwxyz012345678${last}`;

const answers = () => scriptedModel([{ toolCalls: [{ name: "look", arguments: { at: 1 } }] }, "done"]);

describe("a recorded model", () => {
  it("calls the model once for a request, and replays deltas, calls, reasoning and usage from the file", async () => {
    const inner = counting();
    const first = await asked(recordedModel(inner, { file }), "one");
    const again = await asked(recordedModel(counting(), { file }), "one");
    expect(inner.calls).toHaveLength(1);
    expect(again).toEqual(first);
    const replaying = counting();
    expect(await asked(recordedModel(replaying, { file, mode: "replay" }), "one")).toEqual(first);
    expect(replaying.calls).toEqual([]);
  });

  it("answers equal requests with the recorded answers in their order", async () => {
    const model = recordedModel(counting(), { file });
    const contents = [await asked(model, "one"), await asked(model, "one"), await asked(model, "two")].map(
      ({ answer }) => answer.content,
    );
    expect(contents).toEqual(["answer 1", "answer 2", "answer 3"]);
    const again = recordedModel(counting(), { file, mode: "replay" });
    expect((await asked(again, "two")).answer.content).toBe("answer 3");
    expect((await asked(again, "one")).answer.content).toBe("answer 1");
    expect((await asked(again, "one")).answer.content).toBe("answer 2");
    await expect(asked(again, "one")).rejects.toThrow("It is recorded 2 times, and was made 3 times.");
  });

  it("is found by the whole request: tools, settings and response format too, but not by ids and times", async () => {
    const model = recordedModel(counting(), { file });
    const tools = [{ name: "look", description: "Looks.", parameters: { type: "object" } }];
    await asked(model, requestOf("one", { tools, temperature: 0.5 }));
    const replaying = recordedModel(counting(), { file, mode: "replay" });
    const message = { id: "x", role: "user", createdAt: 99, origin: "user", content: "one" } as const;
    const same: ModelRequest = { messages: [message], tools, temperature: 0.5 };
    expect((await asked(replaying, same)).answer.content).toBe("answer 1");
    await expect(asked(replaying, requestOf("one", { tools }))).rejects.toThrow(/its temperature differs first/);
    const other = [{ ...tools[0], description: "Looks hard." }] as typeof tools;
    await expect(asked(replaying, requestOf("one", { tools: other, temperature: 0.5 }))).rejects.toThrow(
      /its tools differs first:[^]*-\s+"description": "Looks\."[^]*\+\s+"description": "Looks hard\."/,
    );
    const format = { responseFormat: { type: "json" } } as const;
    await expect(asked(replaying, requestOf("one", { tools, temperature: 0.5, ...format }))).rejects.toThrow(
      "responseFormat differs first",
    );
  });

  it("a miss names the nearest request and its first difference", async () => {
    const model = recordedModel(counting(), { file });
    await asked(model, "How high is the Eiger?");
    await asked(model, "How high is the Mönch?");
    const replaying = recordedModel(counting(), { file, mode: "replay" });
    const miss = await asked(replaying, "How high is the Jungfrau?").catch((error: unknown) => error);
    expect(miss).toBeInstanceOf(ModelError);
    expect(miss).toMatchObject({ retryable: false, mayHaveBeenSent: false, details: { kind: "unrecorded" } });
    expect((miss as Error).message).toMatch(/- How high is the [^]*\n\+ How high is the Jungfrau\?/);
    await expect(
      asked(recordedModel(counting(), { file: join(folder, "none.json"), mode: "replay" }), "a"),
    ).rejects.toThrow("The file has no calls");
  });

  it("never calls the model while CI is set", async () => {
    const inner = counting();
    await asked(recordedModel(inner, { file }), "one");
    vi.stubEnv("CI", "true");
    const model = recordedModel(inner, { file });
    expect((await asked(model, "one")).answer.content).toBe("answer 1");
    await expect(asked(model, "two")).rejects.toThrow("While CI is set no model is called");
    expect(inner.calls).toHaveLength(1);
    expect(() => recordedModel(inner, { file, mode: "record" })).toThrow(
      "not allowed while the environment variable CI",
    );
    vi.stubEnv("CI", "false");
    await asked(recordedModel(inner, { file }), "two");
    expect(inner.calls).toHaveLength(2);
  });

  it("records anew in the mode record, and gives byte-equal files for equal answers", async () => {
    const record = async (): Promise<string> => {
      const model = recordedModel(counting(), { file, mode: "record" });
      for (const text of ["b", "a", "b"]) await asked(model, text);
      return readFileSync(file, "utf8");
    };
    const first = await record();
    expect(await record()).toBe(first);
    rmSync(file);
    expect(await record()).toBe(first);
    await asked(recordedModel(counting(), { file }), "a");
    expect(readFileSync(file, "utf8")).toBe(first);
    expect(readdirSync(join(folder, "calls"))).toEqual(["model.json"]);
  });

  it("loses no call of models that record into one file at the same time", async () => {
    const texts = Array.from({ length: 12 }, (_, index) => `text ${index}`);
    await Promise.all(texts.map((text) => asked(recordedModel(scriptedModel(text), { file }), text)));
    const model = recordedModel(scriptedModel("new"), { file, mode: "replay" });
    for (const text of texts) expect((await asked(model, text)).answer.content).toBe(text);
  });

  it("loses no call of several processes that record into one file at the same time", { timeout: 60_000 }, async () => {
    const program = join(import.meta.dirname, "recording-program.ts");
    const names = ["a", "b", "c"];
    await Promise.all(
      names.map(async (name) => await promisify(execFile)(process.execPath, [program, file, name, "15"])),
    );
    const { calls } = JSON.parse(readFileSync(file, "utf8")) as { calls: { response: { content: string } }[] };
    const contents = calls.map(({ response }) => response.content).toSorted();
    expect(contents).toEqual(names.flatMap((name) => Array.from({ length: 15 }, (_, at) => `${name}${at}`)).toSorted());
    expect(readdirSync(join(folder, "calls"))).toEqual(["model.json"]);
  });

  it("refuses a lock that no process can remove", async () => {
    mkdirSync(join(folder, "calls"));
    writeFileSync(`${file}.lock`, "");
    await expect(asked(recordedModel(scriptedModel("a"), { file }), "one")).rejects.toThrow("is not a lock");
    rmSync(`${file}.lock`);
    mkdirSync(join(`${file}.lock`, "full"), { recursive: true });
    utimesSync(`${file}.lock`, 0, 0);
    await expect(asked(recordedModel(scriptedModel("a"), { file }), "one")).rejects.toThrow("remove it by hand");
  });

  it("calls nothing in CI also if CI was set after it was made", async () => {
    const inner = counting();
    const models = (["record", "auto"] as const).map((mode) => recordedModel(inner, { file, mode }));
    vi.stubEnv("CI", "1");
    for (const model of models) await expect(asked(model, "one")).rejects.toThrow("CI");
    expect(inner.calls).toEqual([]);
  });

  it("names a recorded request that is equal but cannot be found", async () => {
    await asked(recordedModel(counting(), { file, secrets: ["hunter22"] }), "say hunter22");
    const other = recordedModel(counting(), { file, mode: "replay" });
    await expect(asked(other, "say hunter22")).rejects.toThrow(/is equal, but has another key[^]*name it in secrets/);
    await asked(recordedModel(counting(), { file }), "before");
    writeFileSync(file, readFileSync(file, "utf8").replaceAll("before", "after"));
    const edited = recordedModel(counting(), { file, mode: "replay" });
    await expect(asked(edited, "after")).rejects.toThrow("edited by hand");
    // An edited answer is the answer.
    writeFileSync(file, readFileSync(file, "utf8").replaceAll("answer 1", "edited answer"));
    const asBefore = recordedModel(counting(), { file, mode: "replay" });
    expect((await asked(asBefore, "before")).answer.content).toBe("edited answer");
  });

  it("continues after a process that died while it wrote", async () => {
    mkdirSync(`${file}.lock`, { recursive: true });
    utimesSync(`${file}.lock`, 0, 0);
    await asked(recordedModel(scriptedModel("done"), { file }), "one");
    expect(readFileSync(file, "utf8")).toContain("done");
  });

  it("replays errors of the provider, so that retries are the same", async () => {
    const wrong = async (model: LanguageModel) => await asked(model, "one").catch((error: unknown) => error);
    const model = recordedModel(failing(), { file });
    const first = await wrong(model);
    expect((await asked(model, "one")).answer.content).toBe("fine");
    const again = recordedModel(failing(), { file, mode: "replay" });
    expect(await wrong(again)).toMatchObject({
      name: (first as Error).name,
      message: "overloaded",
      status: 529,
      retryAfterMs: 1,
      retryable: true,
    });
    expect((await asked(again, "one")).answer.content).toBe("fine");
  });

  it("does not record aborts and errors of the program", async () => {
    const aborted = new AbortController();
    const model = recordedModel(
      scriptedModel(() => {
        aborted.abort(new Error("enough"));
        return "late";
      }),
      { file },
    );
    await expect(model.generate(requestOf("one"), { signal: aborted.signal })).rejects.toThrow("enough");
    const broken = recordedModel(
      scriptedModel(() => ({ error: new TypeError("a bug") })),
      { file },
    );
    await expect(asked(broken, "two")).rejects.toThrow("a bug");
    expect(readdirSync(folder)).toEqual([]);
  });

  it("writes no secret, also if it is spread over deltas, and finds the request with another key", async () => {
    const model = recordedModel(scriptedModel({ deltas: ["it is hunt", "er22", " indeed"] }), {
      file,
      secrets: ["hunter22"],
    });
    const { answer } = await asked(model, `use ${key("1")}`);
    expect(answer.content).toBe("it is hunter22 indeed");
    const text = readFileSync(file, "utf8");
    expect(text).not.toContain("hunter22");
    expect(text).not.toContain("er22");
    expect(text).not.toContain("sk-proj");
    const again = await asked(recordedModel(scriptedModel("new"), { file, mode: "replay" }), `use ${key("2")}`);
    expect(again.answer.content).toBe("it is [redacted] indeed");
    expect(again.deltas).toEqual([{ type: "text", text: "it is [redacted] indeed" }]);
  });

  it("keeps the model's name, window and counts, and needs no model to replay", async () => {
    const inner: LanguageModel = {
      ...counting(),
      hostedTools: ["web_search"],
      server: "https://one.example",
      boundPromptTokens: () => 77,
      writesLongCache: () => true,
    };
    const model = recordedModel(inner, { file });
    expect(model).toMatchObject({ name: "counter", provider: "scripted", contextWindow: 9_000, server: inner.server });
    expect(model.hostedTools).toEqual(["web_search"]);
    expect(model.boundPromptTokens?.(requestOf("a"))).toBe(77);
    expect(model.writesLongCache?.(requestOf("a"))).toBe(true);
    expect(model.countPromptTokens(requestOf("abcdefgh"))).toBe(inner.countPromptTokens(requestOf("abcdefgh")));
    const first = await asked(model, "one");
    const without = recordedModel(undefined, { file, mode: "replay" });
    expect(without).toMatchObject({
      name: "counter",
      provider: "scripted",
      contextWindow: 9_000,
      server: inner.server,
    });
    expect(await asked(without, "one")).toEqual(first);
    expect(await without.countPromptTokens(requestOf("abcdefgh"))).toBeGreaterThan(0);
    await asked(recordedModel(scriptedModel("other", { name: "other" }), { file }), "one");
    expect(() => recordedModel(undefined, { file, mode: "replay" })).toThrow("scripted/counter, scripted/other");
  });

  it("makes an agent with tools run offline with the recorded answers", async () => {
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: z.object({ at: z.number() }),
      execute: () => "seen",
    });
    const agentOf = (model: LanguageModel) => defineAgent({ name: "lead", model, tools: [look] });
    expect((await run(agentOf(recordedModel(answers(), { file })), "go")).text).toBe("done");
    const runtime = await createRuntime({ agents: [agentOf(recordedModel(undefined, { file, mode: "replay" }))] });
    const agent = await runtime.agent("lead", { agentId: "another-id" });
    await agent.start();
    expect(await agent.executeTurn("go").result).toMatchObject({ text: "done", status: "completed" });
    await runtime.shutdown();
  });
});

describe("wrong values", () => {
  it.each([
    ["file", (value: unknown) => typeof value === "string" && value !== ""],
    ["mode", () => false],
    ["secrets", (value: unknown) => Array.isArray(value) && value.length === 0],
  ] as const)("%s is refused with what it takes", async (name, isRight) => {
    const taken: unknown[] = [];
    for (const value of [...classicValues(), ...anyValues(20)]) {
      const options = { file, [name]: value } as never;
      if (await isTaken(name, () => recordedModel(scriptedModel("a"), options))) taken.push(value);
    }
    expect(taken.filter((value) => value !== undefined && !isRight(value))).toEqual([]);
  });

  it("a model that is none, or is made of others, is refused", async () => {
    for (const value of [...classicValues(), ...anyValues(20)]) {
      if (typeof value === "string") continue;
      expect(await isTaken("recordedModel()", () => recordedModel(value as never, { file }))).toBe(false);
    }
    const both = fallbackModel([scriptedModel("a", { name: "a" }), scriptedModel("b", { name: "b" })]);
    expect(() => recordedModel(both, { file })).toThrow("record each of them");
    expect(() => recordedModel(undefined, { file })).toThrow('mode "auto" needs a model');
    expect(() => recordedModel(undefined, { file, mode: "replay" })).toThrow(file);
  });

  it.each([
    ["no JSON", "{"],
    ["another format", '{"format":"x","models":[],"calls":[]}'],
    ["a field of a later version", '{"format":"troupe.model-recording/1","models":[],"calls":[],"later":1}'],
  ])("a file with %s is refused and stays as it is", async (_what, text) => {
    mkdirSync(join(folder, "calls"));
    writeFileSync(file, text);
    await expect(asked(recordedModel(scriptedModel("a"), { file }), "one")).rejects.toThrow(
      "is not a file of recorded model calls",
    );
    await expect(asked(recordedModel(scriptedModel("a"), { file, mode: "record" }), "one")).rejects.toThrow(file);
    expect(readFileSync(file, "utf8")).toBe(text);
  });
});
