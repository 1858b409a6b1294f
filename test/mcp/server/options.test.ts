import { createRuntime, defineAgent } from "troupe";
import { type McpSurfaceOptions, mcpSurface, serveMcp } from "troupe/mcp/server";
import { memoryStores } from "troupe/stores/memory";
import { scriptedModel } from "troupe/testing";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { anyValues, classicValues, isTaken } from "../../support/wrong-values.ts";
import { troupe } from "../../cli/support/in-process.ts";
import { deskAgent } from "./served-desk.ts";

const values = [...classicValues(), ...anyValues(100)];
const desk = deskAgent();
const agentNamed = (name: string) => defineAgent({ name, model: scriptedModel(() => ({ text: "" })) });

/** The values of the lists above that are valid. */
const valid: Readonly<Record<string, (value: unknown) => boolean>> = {
  agents: (value) => Array.isArray(value) && value.length === 0,
  name: (value) => typeof value === "string" && value.trim() !== "",
  version: (value) => typeof value === "string" && value.trim() !== "",
  waitMs: (value) => Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) < 2 ** 31,
  stateSeconds: (value) => Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) < 2 ** 31,
  stateKey: (value) => typeof value === "string" && value.trim() !== "" && Buffer.byteLength(value) >= 32,
  path: () => false,
  publicUrl: () => false,
  authorizationServers: (value) => Array.isArray(value) && value.length === 0,
};

describe("an option of mcpSurface()", () => {
  it.each(Object.keys(valid))("%s takes valid values, and names wrong ones", async (name) => {
    for (const [index, value] of values.entries()) {
      if (value === undefined) continue;
      const isValid = await isTaken(name, () => mcpSurface({ [name]: value }));
      expect([index, isValid]).toEqual([index, valid[name]?.(value)]);
    }
  });

  it.each([
    [{ agents: [{}] }, /agents\[0\].*definition/],
    [{ agents: [{ definition: desk, tool: "no spaces" }] }, /agents\[0\].*tool.*letters, digits/],
    [{ agents: [{ definition: desk, description: " " }] }, /agents\[0\].*description/],
    [{ agents: [desk, desk] }, /"desk" is used twice.*tool: "other_name"/],
    [{ agents: [agentNamed("a.b"), agentNamed("a_b")] }, /"a_b" is used twice/],
    [{ agents: [agentNamed("turn_result")] }, /"turn_result" is reserved/],
    [{ stateKey: "too short" }, /stateKey has 9 bytes; expected at least 32.*openssl rand -base64 32/],
    [{ path: "/mcp/" }, /path.*without a trailing slash/],
    [{ publicUrl: "ftp://a" }, /publicUrl.*URL like/],
    [{ timeoutMs: 5 }, /did you mean waitMs/],
    [{ secret: "x" }, /did you mean stateKey/],
  ])("%#: a mistake is explained", async (options, message) => {
    await expect(mcpSurface(options as McpSurfaceOptions)).rejects.toThrow(message);
  });
});

test("serveMcp() refuses what it cannot serve", async () => {
  const runtime = await createRuntime({ agents: [desk] });
  onTestFinished(() => runtime.shutdown());
  await expect(serveMcp(runtime, { agents: [agentNamed("other")] })).rejects.toThrow(
    /has no agent "other".*It has desk/,
  );
  await expect(serveMcp(runtime, { auth: () => null } as object)).rejects.toThrow(/did you mean authenticate/);
  await expect(serveMcp(runtime, { authenticate: "token" } as object)).rejects.toThrow(/authenticate.*function/);
  const serving = await serveMcp(runtime);
  await expect(serving.listen()).rejects.toThrow(/needs authenticate/);
  await expect(serving.fetch(new Request("http://127.0.0.1/mcp"))).rejects.toThrow(/needs authenticate/);
  for (const [name, value] of [
    ["actor", ""],
    ["actor", 5],
    ["input", {}],
    ["output", "stdout"],
  ] as const) {
    expect(() => serving.stdio({ [name]: value })).toThrow(name);
  }
  expect(() => serving.stdio({ owner: "ann" } as object)).toThrow(/did you mean actor/);
});

test("serveMcp() needs a key for stores that several processes share", async () => {
  const stores = { ...memoryStores(), kind: "redis" as const };
  const runtime = await createRuntime({ agents: [desk], stores });
  onTestFinished(() => runtime.shutdown());
  await expect(serveMcp(runtime)).rejects.toThrow(/several processes.*stateKey.*openssl rand -base64 32/);
  await (await serveMcp(runtime, { stateKey: "a-key-of-at-least-thirty-two-bytes" })).close();
});

test.each([
  [[], /missing required argument/],
  [["desk.ts", "--actor", " "], /--actor.*empty/],
  [["desk.ts", "--wait-seconds", "0"], /--wait-seconds.*whole number from 1 to 86400/],
  [["desk.ts", "--wait-seconds", "x"], /--wait-seconds/],
  [["desk.ts", "--drain-seconds", "-1"], /--drain-seconds/],
  [["desk.ts", "--plugins", ""], /--plugins/],
  [["desk.ts", "--catalog", ""], /--catalog/],
  [["desk.ts", "--store", ""], /--store/],
  [["desk.ts", "--port", "1"], /unknown option/],
])("troupe mcp serve %j is wrong usage", async (words, message) => {
  const { code, notes, out } = await troupe(["mcp", "serve", ...words]);
  expect([code, out]).toEqual([2, []]);
  expect(notes.join("\n")).toMatch(message);
});
