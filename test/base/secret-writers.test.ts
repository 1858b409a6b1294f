import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { createRedactor, redactedText } from "../../src/base/index.ts";
import { defineTool, type RunContext } from "../../src/tools/index.ts";
import { z } from "zod";

/** Every method by which our writers embed one text in another. */
const writers: Readonly<Record<string, (text: string) => string>> = {
  "JSON text": (text) => JSON.stringify(text),
  "JSON value": (text) => JSON.stringify({ value: text, list: [text] }),
  "JSON key": (text) => JSON.stringify({ [`a${text}`]: 1 }),
  "a line of JSONL": (text) => `${JSON.stringify({ text })}\n`,
  "YAML, quoted": (text) =>
    stringify({ text }, { lineWidth: 0, defaultStringType: "QUOTE_DOUBLE", doubleQuotedMinMultiLineLength: 1e6 }),
  "part of a URL": (text) => `https://example.com/?q=${encodeURIComponent(text.toWellFormed())}&page=1`,
  "part of a form": (text) => new URLSearchParams({ text }).toString(),
  "plain text": (text) => `before ${text} after`,
};

/** Odd enough for every writer to escape it, and too long to occur by chance. */
const secret = fc
  .string({
    unit: fc.oneof(
      fc.constantFrom(
        '"',
        "\\",
        "/",
        "\n",
        "\r",
        "\t",
        "\b",
        "\f",
        "\0",
        "\x1b",
        "\x7f",
        "\x85",
        "\u2028",
        "'",
        "n",
        "u",
      ),
      fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
      fc.constantFrom("\ud800", "\udc00", "🦊", "é"),
    ),
    minLength: 4,
    maxLength: 12,
  })
  .map((odd) => `\\"${odd}\n`);
const nesting = fc.array(fc.constantFrom(...Object.keys(writers)), { maxLength: 4 });

function written(value: string, by: readonly string[]): string {
  return by.reduce((text, name) => writers[name]?.(text) ?? text, value);
}

/** Removes the escapes that writers add, and yields every text from which a secret could be read. */
function* decoded(text: string): Generator<string> {
  for (let at = text; ; ) {
    yield at;
    const next = at.replaceAll(/\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))/gs, (_, unit, byte, letter: string) => {
      if (unit ?? byte) return String.fromCharCode(Number.parseInt(unit ?? byte, 16));
      const known = {
        n: "\n",
        r: "\r",
        t: "\t",
        b: "\b",
        f: "\f",
        "0": "\0",
        e: "\x1b",
        a: "\x07",
        v: "\v",
        N: "\x85",
      };
      return { ...known, _: "\xa0", L: "\u2028", P: "\u2029" }[letter] ?? letter;
    });
    const inUrl = at.replaceAll(/(?:%[\dA-F]{2})+/g, (escaped) =>
      Buffer.from(escaped.replaceAll("%", ""), "hex").toString(),
    );
    if (inUrl !== at) yield* decoded(inUrl);
    if (next === at) return;
    at = next;
  }
}

describe("a known secret, nested up to four writers deep", () => {
  test("is removed by every redactor in every form that can be decoded", () => {
    fc.assert(
      fc.property(secret, nesting, (known, by) => {
        const redactor = createRedactor({ secrets: [known], environment: {}, shapes: false });
        const text = written(known, by);
        const shown = redactor.text(text);
        expect(shown).toContain(redactedText);
        for (const reading of decoded(shown)) expect(reading).not.toContain(known);
        expect(redactor.text(shown)).toBe(shown);
        expect(JSON.stringify(redactor.value({ deep: [{ text }] }))).toContain(redactedText);
      }),
      { numRuns: 1_000 },
    );
  });

  test("is in no redacted result of the tool that received it", async () => {
    await fc.assert(
      fc.asyncProperty(secret, nesting, async (known, by) => {
        const tool = defineTool({
          name: "pay",
          description: "Pays.",
          parameters: z.object({}),
          secrets: { key: () => known },
          execute: () => "",
        });
        const run = { callId: "t:1:0", signal: new AbortController().signal } as RunContext;
        const { redact } = await tool.resolveArguments({}, run);
        const shown = redact(written(known, by));
        expect(shown).toContain("[secret:key]");
        for (const reading of decoded(shown)) expect(reading).not.toContain(known);
      }),
      { numRuns: 500 },
    );
  });

  test("the surrounding text stays unchanged", () => {
    const redactor = createRedactor({ secrets: ['s3"cr\net'], environment: {} });
    const inner = JSON.stringify({ value: 's3"cr\net', other: 'a"b' });
    const text = JSON.stringify([["x", JSON.stringify({ body: inner })]]);
    const [[, body]] = JSON.parse(redactor.text(text)) as [[string, string]];
    expect(JSON.parse((JSON.parse(body) as { body: string }).body)).toEqual({ value: redactedText, other: 'a"b' });
  });
});

test("a secret within JSON within a URL within JSON is found, by its value or by its shape", () => {
  const known = 's3cr"et';
  const inner = JSON.stringify({ password: known, user: "me" });
  const text = JSON.stringify({ url: `https://example.com/?state=${encodeURIComponent(inner)}` });
  const shown = '{"url":"https://example.com/?state=%7B%22password%22%3A%22[redacted]%22%2C%22user%22%3A%22me%22%7D"}';
  expect(createRedactor({ secrets: [known], environment: {}, shapes: false }).text(text)).toBe(shown);
  expect(createRedactor({ environment: {} }).text(text)).toBe(shown);
});

test("a shape of a secret is found at any depth", () => {
  const redactor = createRedactor({ environment: {} });
  let text = JSON.stringify({ password: "hunter two", user: "me" });
  for (let depth = 0; depth < 5; depth += 1) {
    expect(redactor.text(text)).not.toContain("hunter");
    expect(redactor.text(text)).toContain("me");
    text = JSON.stringify({ body: text });
  }
});

test("decoding every form of a text takes time proportional to its length", () => {
  const redactor = createRedactor({ secrets: ['s3"cret'], environment: {} });
  const hostile = ["%25", "%255C", "%5C%22", "\\", "\\u005c", "\\u005cu005c", '\\\\\\"', "\\x5c", "\\n"];
  const startedAt = performance.now();
  for (const piece of hostile) redactor.text(piece.repeat(Math.ceil(200_000 / piece.length)));
  // Decoding at each backslash would take hours.
  expect(performance.now() - startedAt).toBeLessThan(20_000);
});
