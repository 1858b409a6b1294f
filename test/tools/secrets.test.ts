import { inspect } from "node:util";
import * as fc from "fast-check";
import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { AgentStopError, InvalidInputError, ToolNotStartedError } from "../../src/errors/index.ts";
import type { JsonObject } from "../../src/state/index.ts";
import { defineTool, redactError, type RunContext, renderOutput, type SecretResolver } from "../../src/tools/index.ts";

const canary = "canary-7f3a";
const base = { name: "pay", description: "Pays.", parameters: z.object({ amount: z.number() }), execute: () => "paid" };

function runWith(parts: Partial<RunContext> = {}): RunContext {
  return { callId: "t-1:1:0", signal: new AbortController().signal, ...parts } as RunContext;
}

async function failureOf(apiKey: unknown, run: RunContext = runWith()): Promise<ToolNotStartedError> {
  const tool = defineTool({ ...base, secrets: { apiKey: apiKey as SecretResolver } });
  const error: unknown = await Promise.resolve(tool.resolveArguments({ amount: 3 }, run)).catch(
    (thrown: unknown) => thrown,
  );
  if (error instanceof ToolNotStartedError) return error;
  throw new Error("the secret was resolved");
}

describe("a secret parameter", () => {
  test("is passed to execute, whose type includes it, wherever the secrets are declared", () => {
    const last = defineTool({
      ...base,
      execute: (args) =>
        expectTypeOf(args).toEqualTypeOf<{ amount: number } & { readonly apiKey: string; readonly pin: string }>(),
      reconcile: async (args) => ({ done: true, result: expectTypeOf(args.pin).toBeString() }),
      needsApproval: (args) => expectTypeOf(args).toEqualTypeOf<{ amount: number }>(),
      secrets: { apiKey: (run) => run.callId, pin: async () => "1234" },
    });
    const first = defineTool({
      ...base,
      secrets: { apiKey: (run) => run.callId },
      parameters: '{"type":"object"}',
      execute: (args) => expectTypeOf(args).toEqualTypeOf<JsonObject & { readonly apiKey: string }>(),
    });
    const none = defineTool({
      ...base,
      secrets: {},
      execute: (args) => expectTypeOf(args).toEqualTypeOf<{ amount: number }>(),
    });
    expect([last, first, none].map((tool) => tool.needsApproval)).toEqual([expect.any(Function), false, false]);
  });

  test("is neither in the model's schema nor in the journal, and is available when the tool runs", async () => {
    const seen: string[] = [];
    const tool = defineTool({
      ...base,
      secrets: { apiKey: (run) => `${canary} of ${run.callId}` },
      execute: ({ amount, apiKey }) => seen.push(`${amount} with ${apiKey}`),
    });
    expect(tool.jsonSchema["properties"]).toEqual({ amount: { type: "number" } });
    const parsed = await tool.parse('{"amount":3}');
    if (!parsed.ok) throw new Error(parsed.message);
    expect(parsed.json).toEqual({ amount: 3 });
    const { args } = await tool.resolveArguments(parsed.json, runWith());
    await tool.execute(args as never, runWith());
    expect(seen).toEqual([`3 with ${canary} of t-1:1:0`]);
    expect(parsed.json).toEqual({ amount: 3 });
  });

  test("is omitted when the arguments are logged, copied or converted to JSON (S13)", async () => {
    const tool = defineTool({ ...base, secrets: { apiKey: () => canary } });
    const { args } = await tool.resolveArguments({ amount: 3 }, runWith());
    expect((args as { apiKey: string }).apiKey).toBe(canary);
    expect([JSON.stringify(args), inspect(args), JSON.stringify({ ...Object(args) })].join()).not.toContain(canary);
    expect(args).toEqual({ amount: 3 });
  });

  test("is resolved again for every attempt", async () => {
    let asked = 0;
    const tool = defineTool({ ...base, secrets: { apiKey: () => `${canary}-${(asked += 1)}` } });
    const first = await tool.resolveArguments({ amount: 3 }, runWith());
    const second = await tool.resolveArguments({ amount: 3 }, runWith());
    expect([first.args, second.args]).toMatchObject([{ apiKey: `${canary}-1` }, { apiKey: `${canary}-2` }]);
    expect(second.redact(`${canary}-2`)).toBe("[secret:apiKey]");
  });

  test("from a model is refused, also if the schema accepts it", async () => {
    for (const parameters of [z.looseObject({ amount: z.number() }), '{"type":"object"}']) {
      const tool = defineTool({ ...base, parameters, secrets: { apiKey: () => canary } });
      const parsed = await tool.parse('{"amount":3,"apiKey":"mine"}');
      expect(parsed).toEqual({
        ok: false,
        message: expect.stringMatching(/"apiKey" is not yours to give.*Leave it out/),
      });
      expect((await tool.parse('{"amount":3}')).ok).toBe(true);
    }
  });

  test.each([
    [
      "sets a secret",
      z.object({}).transform(() => ({ apiKey: "mine" })),
      /transform set "apiKey".*\n.*fault of the tool/,
    ],
    [
      "returns no object",
      z.object({}).transform(() => "text"),
      /something other than an object.*\n.*fault of the tool/,
    ],
  ])("the tool's own transform that %s is refused", async (_name, parameters, message) => {
    const tool = defineTool({ ...base, parameters, secrets: { apiKey: () => canary } });
    expect(await tool.parse("{}")).toEqual({ ok: false, message: expect.stringMatching(message) });
  });
});

describe("a definition is refused", () => {
  test.each<[string, unknown, RegExp]>([
    ["if a secret is also a parameter", { amount: () => canary }, /"amount" is in parameters and in secrets/],
    ["if a secret has no resolver", { apiKey: canary }, /secrets.apiKey must be a function.*not string/],
    ["if a secret has a name that no parameter can have", { "api key": () => canary }, /named "api key"/],
    ["if a secret would reach the prototype", { constructor: () => canary }, /named "constructor"/],
    ["if the secrets are a list", [() => canary], /must be an object of functions/],
  ])("%s", (_name, secrets, message) => {
    const define = () => defineTool({ ...base, secrets: secrets as Record<string, SecretResolver> });
    expect(define).toThrow(InvalidInputError);
    expect(define).toThrow(message);
    expect(define).not.toThrow(canary);
  });
});

function throwingResolver(): never {
  throw new TypeError(`the vault said ${canary}`, { cause: canary });
}

describe("a secret that cannot be resolved: the tool has certainly not run, and the value is not shown", () => {
  test.each<[string, unknown, RegExp]>([
    ["its resolver throws", throwingResolver, /its secret "apiKey" could not be resolved \(TypeError\)/],
    ["its resolver rejects", () => Promise.reject(new Error(canary)), /could not be resolved \(Error\)/],
    ["its resolver throws a text", () => Promise.reject(canary), /"apiKey" could not be resolved\.$/],
    ["there is no value", () => undefined, /its resolver returned undefined, not a text/],
    ["the value is not a text", () => ({ canary }), /its resolver returned object, not a text/],
    ["the value is empty", async () => " \n", /its resolver returned an empty text/],
  ])("%s", async (_name, resolver, message) => {
    const error = await failureOf(resolver);
    expect(error.message).toMatch(message);
    expect(error.message).toContain("The tool pay was not run");
    expect(error.details).toEqual({ tool: "pay", secret: "apiKey" });
    expect(inspect(error, { depth: 10 })).not.toContain(canary);
  });

  test("a resolver that never answers ends with the call", async () => {
    const controller = new AbortController();
    const failure = failureOf(() => new Promise(() => undefined), runWith({ signal: controller.signal }));
    controller.abort(new Error("the tool did not end within 10 ms"));
    expect((await failure).message).toContain('its secret "apiKey" was not resolved before the call ended');
  });
});

async function redactWith(secrets: Record<string, string>): Promise<(text: string) => string> {
  const resolvers = Object.entries(secrets).map(([name, value]) => [name, () => value] as const);
  const tool = defineTool({ ...base, secrets: Object.fromEntries(resolvers) });
  return (await tool.resolveArguments({ amount: 1 }, runWith())).redact;
}

describe("texts of a tool that contain a secret (S13)", () => {
  test("have each value replaced by its name, every time", async () => {
    const redact = await redactWith({ apiKey: canary, password: "pa$$&`word" });
    expect(redact(`${canary}, ${canary}: pa$$&\`word`)).toBe("[secret:apiKey], [secret:apiKey]: [secret:password]");
    expect(redact("nothing here")).toBe("nothing here");
  });

  test("have its JSON and URL forms replaced too, and the form without the line break of its file", async () => {
    const value = 'se"cret/\\key\n';
    const redact = await redactWith({ key: value });
    expect(renderOutput({ got: value }, redact).text).toBe('{"got":"[secret:key]"}');
    expect(redact(`GET /?key=${encodeURIComponent(value)}`)).toBe("GET /?key=[secret:key]");
    expect(redact(`key ${value.trim()}.`)).toBe("key [secret:key].");
  });

  test("are redacted in results and in the reason for a missing one", async () => {
    const redact = await redactWith({ key: canary });
    const broken = {
      toJSON() {
        throw new Error(`no ${canary} today`);
      },
    };
    expect(renderOutput(`got ${canary}`, redact).text).toBe("got [secret:key]");
    expect(renderOutput(broken, redact).text).toContain("no [secret:key] today");
  });

  test("are redacted in errors of the tool, which keep their class", async () => {
    const redact = await redactWith({ key: canary });
    const stopped = new AgentStopError(`no ${canary}`);
    expect(redactError(stopped, redact)).toBe(stopped);
    expect(stopped).toMatchObject({ message: "no [secret:key]", code: stopped.code });
    expect(inspect(stopped)).not.toContain(canary);
    const frozen = redactError(Object.freeze(new RangeError(canary)), redact);
    expect(frozen).toMatchObject({ name: "RangeError", message: "[secret:key]" });
    expect(redactError(`no ${canary}`, redact)).toBe("no [secret:key]");
    expect(redactError(Object.create(null), redact)).toMatchObject({
      name: "thrown",
      message: "an object was thrown, not an error",
    });
  });

  test("a value within another, and a value like a marker, leave no remainder", async () => {
    const redact = await redactWith({ short: "abcd", long: "abcdefgh", odd: "secret" });
    expect(redact("abcdefgh abcd secret")).toBe("[secret:long] [secret:short] [secret:odd]");
  });

  test("values under four characters are not replaced", async () => {
    expect((await redactWith({ pin: "123" }))("123 of 1234")).toBe("123 of 1234");
  });

  test("a tool without secrets returns its texts unchanged", async () => {
    const { redact, args } = await defineTool(base).resolveArguments({ amount: 1 }, runWith());
    expect([redact(canary), args]).toEqual([canary, { amount: 1 }]);
  });

  test("for all texts and values, no value is left and everything else is kept", async () => {
    const value = fc.string({
      unit: fc.constantFrom("a", "b", '"', "\\", "%", "😀", "\ud800"),
      minLength: 4,
      maxLength: 8,
    });
    const values = fc.array(
      value.filter((text) => text.trim().length > 3),
      { minLength: 1, maxLength: 4 },
    );
    const between = fc.array(fc.string({ unit: fc.constantFrom("x", "y", " "), maxLength: 3 }), { minLength: 9 });
    await fc.assert(
      fc.asyncProperty(values, between, async (secrets, words) => {
        const redact = await redactWith(Object.fromEntries(secrets.map((text, index) => [`s${index}`, text])));
        const text = words.map((word, index) => word + (secrets[index % (secrets.length * 2)] ?? "")).join("");
        const redacted = redact(text);
        for (const secret of secrets) expect(redacted).not.toContain(secret);
        expect(redacted.replaceAll(/\[secret:s\d\]/g, "").replaceAll(/[^xy ]/g, "")).toBe(
          text.replaceAll(/[^xy ]/g, ""),
        );
      }),
      { numRuns: 500 },
    );
  });
});
