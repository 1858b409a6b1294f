import { assert, constantFrom, property, string as anyText, tuple } from "fast-check";
import { describe, expect, it, test } from "vitest";
import { createRedactor, redactedText } from "../../src/base/index.ts";
import { InvalidInputError } from "../../src/errors/index.ts";

const shapesOnly = createRedactor({ environment: {} });

describe("known secrets", () => {
  const redactor = createRedactor({ secrets: ['s3cr"et/ü', "hunter22"], environment: {} });

  it("are removed from texts, at every position and for every occurrence", () => {
    expect(redactor.text('a hunter22b s3cr"et/ü,hunter22')).toBe("a [redacted]b [redacted],[redacted]");
    expect(redactor.text("nothing to hide")).toBe("nothing to hide");
  });

  it("are found in JSON, in JSON within JSON and in a URL", () => {
    const secret = { note: 's3cr"et/ü' };
    expect(redactor.text(JSON.stringify(secret))).toBe('{"note":"[redacted]"}');
    expect(redactor.text(JSON.stringify({ body: JSON.stringify(secret) }))).toBe(
      '{"body":"{\\"note\\":\\"[redacted]\\"}"}',
    );
    expect(redactor.text(`?q=${encodeURIComponent('s3cr"et/ü')}`)).toBe("?q=[redacted]");
  });

  it("are removed completely if they overlap", () => {
    const overlapping = createRedactor({ secrets: ["abcdef", "cdefgh", "gggg"], environment: {} });
    expect(overlapping.text("1abcdefgh2")).toBe("1[redacted]2");
    expect(overlapping.text("gggggg")).toBe("[redacted]");
  });

  it("of fewer than four characters are refused by index, without their text", () => {
    expect(() => createRedactor({ secrets: ["long enough", "abc"] })).toThrow(InvalidInputError);
    expect(() => createRedactor({ secrets: ["long enough", "abc"] })).toThrow(
      "secrets[1] must be a text of at least 4",
    );
  });

  test("no surrounding text protects a secret, and a second pass changes nothing", () => {
    const secrets = ["hunter22", "Pa55 wört", 'q"uo\\te', "-----"];
    const careful = createRedactor({ secrets, environment: {} });
    const around = anyText({ unit: "grapheme" });
    assert(
      property(tuple(around, constantFrom(...secrets), around), ([before, secret, after]) => {
        const shown = careful.text(before + secret + after);
        expect(shown).not.toContain(secret);
        expect(careful.text(shown)).toBe(shown);
      }),
    );
  });
});

describe("the environment", () => {
  it("contributes its long values whose names suggest secrets", () => {
    const environment = {
      MY_API_KEY: "key-of-mine",
      DB_password: " trimmed-one\n",
      HOME: "home-folder",
      TOKEN: "short",
    };
    const redactor = createRedactor({ environment });
    expect(redactor.text("key-of-mine trimmed-one home-folder short")).toBe("[redacted] [redacted] home-folder short");
  });

  it("is that of the process unless another one is passed", () => {
    process.env.TROUPE_TEST_SECRET = "from-the-process";
    try {
      expect(createRedactor().text("it is from-the-process")).toBe("it is [redacted]");
      expect(shapesOnly.text("it is from-the-process")).toBe("it is from-the-process");
    } finally {
      delete process.env.TROUPE_TEST_SECRET;
    }
  });
});

describe("shapes of secrets", () => {
  const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N";
  test.each([
    ["a bearer token", "sent Bearer abc123.def~4/5+6== twice", "sent Bearer [redacted] twice"],
    ["a key of a provider", "the key sk-proj-A1b2C3d4E5f6 is wrong", "the key [redacted] is wrong"],
    ["a token of a code host", "clone with ghp_0123456789abcdefABCDEF!", "clone with [redacted]!"],
    ["a JSON web token", `got ${jwt}, expired`, "got [redacted], expired"],
    ["a JSON web token without signature", "got eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0. now", "got [redacted] now"],
    ["a URL", "postgres://user:p@ss@db.example:5432/x?y=1", "postgres://[redacted]@db.example:5432/x?y=1"],
    [
      "a password in a query",
      "https://a.example/?password=hunter2&page=3",
      "https://a.example/?password=[redacted]&page=3",
    ],
    [
      "a variable",
      "DB_PASSWORD=hunter2 API_KEY: 'two words' TOKEN=xyz",
      "DB_PASSWORD=[redacted] API_KEY: '[redacted]' TOKEN=[redacted]",
    ],
    [
      "JSON",
      '{"password": "two words","token":"abc","user":"me"}',
      '{"password": "[redacted]","token":"[redacted]","user":"me"}',
    ],
    [
      "JSON with a quote in it",
      String.raw`{"password":"two \"words\"","user":"me"}`,
      '{"password":"[redacted]","user":"me"}',
    ],
    [
      "JSON within JSON",
      String.raw`{"body":"{\"client_secret\":\"hunter2\",\"a\":1}"}`,
      String.raw`{"body":"{\"client_secret\":\"[redacted]\",\"a\":1}"}`,
    ],
    [
      "a header",
      "GET /\nAuthorization: Digest user, nonce\nAccept: text/html",
      "GET /\nAuthorization: [redacted]\nAccept: text/html",
    ],
    ["a header in an object", "{ 'x-api-key': 'k 1', other: 'x' }", "{ 'x-api-key': '[redacted]', other: 'x' }"],
    [
      "a private key",
      "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----",
      "-----BEGIN RSA PRIVATE KEY-----[redacted]-----END RSA PRIVATE KEY-----",
    ],
  ])("%s", (_, given, shown) => {
    expect(shapesOnly.text(given)).toBe(shown);
    expect(shapesOnly.text(shown)).toBe(shown);
  });

  test.each([
    "The bearer of good news is here, a basic understanding is enough.",
    "tokens: 450, maxTokens: 4096, a token: what is that?",
    "Passwords are not shown. A task-oriented, risk-averse team.",
    "https://example.com/a:b@c and ssh://git@example.com/x",
    "invalid_token: the sign-in has expired",
  ])("no secret in: %s", (text) => {
    expect(shapesOnly.text(text)).toBe(text);
  });

  it("custom patterns redact the whole match, or the group named secret", () => {
    const redactor = createRedactor({ patterns: [/\bcard-\d{4}\b/, /pin (?<secret>\d+)/y], environment: {} });
    expect(redactor.text("card-1234 with pin 99, card-5678 with pin 1")).toBe(
      "[redacted] with pin [redacted], [redacted] with pin [redacted]",
    );
  });

  it("are searched in time linear in the text", () => {
    const hostile = [
      "password=",
      'password="',
      "eyJ",
      "eyJ-",
      "eyJaaaaaaaa.",
      "sk-",
      "bearer ",
      "bearer a",
      "://",
      "://a:",
      "a.",
      "\\",
      '\\"',
      "-----BEGIN PRIVATE KEY-----",
      "authorization: ",
      "token",
      "'token'",
      " ",
      "a-_",
    ];
    const startedAt = performance.now();
    for (const piece of hostile) shapesOnly.text(piece.repeat(Math.ceil(300_000 / piece.length)));
    // Quadratic time would take hours.
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });
});

describe("values", () => {
  const redactor = createRedactor({ secrets: ["hunter22"], environment: {} });

  it("are copied without secrets in keys and values; a value under a secret's name is redacted whole", () => {
    const given = {
      list: ["hunter22", 1, null, true],
      hunter22: "x",
      dbPassword: "abc",
      "X-Api-Key": 7,
      credentials: { user: "me" },
      token: null,
      inputTokens: 5,
    };
    expect(redactor.value(given)).toEqual({
      list: [redactedText, 1, null, true],
      [redactedText]: "x",
      dbPassword: redactedText,
      "X-Api-Key": redactedText,
      credentials: redactedText,
      token: null,
      inputTokens: 5,
    });
    expect(given.dbPassword).toBe("abc");
  });

  it("that are errors keep name, message and cause", () => {
    const error = new TypeError("no hunter22", { cause: new Error("Bearer abc123def") });
    expect(redactor.value({ error })).toEqual({
      error: { name: "TypeError", message: "no [redacted]", cause: { name: "Error", message: "Bearer [redacted]" } },
    });
    expect(redactor.message(error)).toBe("no [redacted]");
    expect(redactor.message("thrown hunter22")).toBe("thrown [redacted]");
  });

  it("may be nested endlessly or contain a prototype's name", () => {
    const ring: Record<string, unknown> = {};
    ring.again = ring;
    expect(JSON.stringify(redactor.value(ring))).toContain("[nested too deep]");
    const shown = redactor.value(JSON.parse('{"__proto__":{"polluted":1}}')) as object;
    expect(Object.keys(shown)).toEqual(["__proto__"]);
    expect("polluted" in shown).toBe(false);
  });
});
