import { randomBytes } from "node:crypto";
import { copyFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InvalidInputError } from "troupe";
import { fileMcpTokens, mcp, type McpAuth, mcpLogins, McpServerError, memoryMcpTokens } from "troupe/mcp";
import { describe, expect, onTestFinished, test } from "vitest";
import { anyValues, classicValues, isTaken } from "../support/wrong-values.ts";
import { mcpTokensContract } from "./mcp-tokens.contract.ts";

const secret = randomBytes(32).toString("base64");

function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), "troupe-tokens-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "tokens");
}

describe("memoryMcpTokens", () => {
  mcpTokensContract(() => {
    const store = memoryMcpTokens();
    return { store, again: store };
  });
});

describe("fileMcpTokens", () => {
  mcpTokensContract(() => {
    const folder = temporary();
    return { store: fileMcpTokens({ folder, key: secret }), again: fileMcpTokens({ folder, key: secret }) };
  });

  const key = { server: "https://desk.example.com/mcp", actorId: "ann", item: "tokens" } as const;

  test("refuses a file of another key, a changed one, and one that was moved to another actor", async () => {
    const folder = temporary();
    const store = fileMcpTokens({ folder, key: secret });
    await store.set(key, "the tokens of ann");
    const [name = ""] = readdirSync(folder);
    const others = fileMcpTokens({ folder, key: randomBytes(32).toString("base64url") });
    await expect(others.get(key)).rejects.toMatchObject({ code: "corrupt_record" });
    await store.set({ ...key, actorId: "eve" }, "the tokens of eve");
    const eve = readdirSync(folder).find((file) => file !== name) ?? "";
    copyFileSync(join(folder, name), join(folder, eve));
    await expect(store.get({ ...key, actorId: "eve" })).rejects.toMatchObject({ code: "corrupt_record" });
    writeFileSync(join(folder, name), "");
    await expect(store.get(key)).rejects.toThrow(/cannot be decrypted with this key/);
    await store.delete(key);
    expect(await store.get(key)).toBe(undefined);
  });

  test.each(["folder", "key"] as const)("wrong values: %s", async (field) => {
    const right = { folder: temporary(), key: secret };
    let refused = 0;
    for (const value of [...classicValues(), ...anyValues(20)]) {
      const isRight = await isTaken(field, async () => void fileMcpTokens({ ...right, [field]: value } as never));
      if (!isRight) refused += 1;
    }
    expect(refused).toBeGreaterThan(10);
  });

  test("an invalid key is not shown", () => {
    const short = randomBytes(16).toString("base64");
    expect(() => fileMcpTokens({ folder: "x", key: short })).toThrow(/32 random bytes in base64/);
    expect(() => fileMcpTokens({ folder: "x", key: short })).not.toThrow(short);
  });
});

const checkedBy = (auth: unknown) => async (): Promise<void> => {
  await mcp({ name: "far", url: "http://127.0.0.1:9/mcp", auth: auth as McpAuth }).catch((error: unknown) => {
    if (!(error instanceof McpServerError)) throw error;
  });
};

describe("wrong values of auth", () => {
  const store = memoryMcpTokens();
  const oauth = { redirectUrl: "https://app.example.com/callback", store };
  const client = { clientId: "me", clientSecret: "s3cret-of-mine", issuer: "https://login.example.com" };
  const values = [...classicValues(), ...anyValues(20)];
  const rows: readonly (readonly [field: string, auth: (value: unknown) => unknown])[] = [
    ["auth", (value) => value],
    ["token", (value) => ({ token: value })],
    ["oauth", (value) => ({ oauth: value })],
    ["clientCredentials", (value) => ({ clientCredentials: value })],
    ...["redirectUrl", "store", "scopes", "clientMetadata", "clientMetadataUrl", "client", "origins"].map(
      (field) => [field, (value: unknown) => ({ oauth: { ...oauth, [field]: value } })] as const,
    ),
    ...["clientId", "clientSecret", "issuer"].map(
      (field) => [field, (value: unknown) => ({ oauth: { ...oauth, client: { ...client, [field]: value } } })] as const,
    ),
    ...["clientId", "clientSecret", "issuer", "scopes", "origins"].map(
      (field) => [field, (value: unknown) => ({ clientCredentials: { ...client, [field]: value } })] as const,
    ),
  ];

  test.each(rows)("%s", async (field, authOf) => {
    let refused = 0;
    for (const value of values) if (!(await isTaken(field, checkedBy(authOf(value))))) refused += 1;
    expect(refused).toBeGreaterThan(10);
  });

  test.each([
    [{}, /give one of token, oauth and clientCredentials/],
    [{ token: "a", oauth }, /give one of token, oauth and clientCredentials/],
    [{ token: "s3cret of mine" }, /without spaces/],
    [{ oauth: { ...oauth, redirectUrl: "http://app.example.com/" } }, /http to this machine/],
    [{ oauth: { ...oauth, redirectUri: "x" } }, /redirectUrl/],
    [{ oauth: { ...oauth, clientMetadata: { redirect_uris: [] } } }, /follows from the other options/],
    [{ oauth: { ...oauth, clientMetadataUrl: "https://app.example.com" } }, /https address with a path/],
    [{ oauth: { ...oauth, client, clientMetadataUrl: "https://app.example.com/c" } }, /either client or/],
    [{ oauth: { ...oauth, client: { clientId: "me" } } }, /issuer/],
    [{ oauth: { ...oauth, origins: ["https://login.internal/path"] } }, /an https origin such as/],
    [{ oauth: { ...oauth, scopes: ["a b"] } }, /a scope/],
  ])("%j", async (auth, words) => {
    const error: unknown = await checkedBy(auth)().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InvalidInputError);
    expect((error as Error).message).toMatch(words);
    expect((error as Error).message).not.toContain("s3cret");
  });

  test("auth of a program on stdio, and beside the header Authorization", async () => {
    const auth = { token: "t0ken" };
    await expect(mcp({ name: "far", command: "x", auth })).rejects.toThrow(/auth has no use without url/);
    const headers = { authorization: "Bearer x" };
    await expect(mcp({ name: "far", url: "http://127.0.0.1:9/mcp", headers, auth })).rejects.toThrow(
      /give either auth/,
    );
  });
});

async function beginWith(store: object): Promise<unknown> {
  const oauth = { redirectUrl: "https://app.example.com/callback", store: { ...memoryMcpTokens(), ...store } };
  const logins = await mcpLogins({ name: "far", url: "http://127.0.0.1:9/mcp", auth: { oauth } });
  return await logins.begin({ actorId: "ann" });
}

describe("a store of the user", () => {
  test.each([5, {}, "no json", '{"state":5}'])("that returns %j: the error does not show it", async (value) => {
    await expect(beginWith({ get: () => value })).rejects.toMatchObject({
      code: "corrupt_record",
      message: expect.stringMatching(/invalid value for the flow/),
    });
  });

  test("that throws: the text is left out", async () => {
    await expect(beginWith({ get: () => Promise.reject(new Error("s3cret-of-mine")) })).rejects.toThrow(
      /get\(\) of the token store failed \(Error\)$/,
    );
  });

  test("whose lock does not run the work", async () => {
    await expect(beginWith({ lock: async () => undefined })).rejects.toThrow(/ran its work 0 times/);
  });
});
