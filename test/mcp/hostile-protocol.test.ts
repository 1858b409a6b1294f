import { join } from "node:path";
import type { McpOptions } from "troupe/mcp";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { entriesOf, toolTextsOf } from "../support/journal-probes.ts";
import { openScripted } from "./scripted-server.ts";
import { callerOf, connected, serve } from "./served-desk.ts";

function program(fault: string): Pick<McpOptions, "name" | "command" | "args"> {
  return { name: "far", command: process.execPath, args: [join(import.meta.dirname, "hostile-program.ts"), fault] };
}

/** The text of a call's result. */
async function resultOf(options: McpOptions): Promise<string | undefined> {
  const { tools } = await connected(options);
  const { agent } = await callerOf(tools, [{ name: "far__work" }]);
  await agent.executeTurn("go").result;
  return (await toolTextsOf(agent))[0];
}

describe("a program on stdio", () => {
  test.each(["banner", "wrong ids", "two answers"])("%s", async (fault) => {
    expect(await resultOf(program(fault))).toBe("worked");
  });

  test("a flood of progress is passed on, and nothing of it is stored", async () => {
    const { tools } = await connected(program("progress"));
    const { agent, stores } = await callerOf(tools, [{ name: "far__work" }]);
    await agent.executeTurn("go").result;
    expect(await toolTextsOf(agent)).toEqual(["worked"]);
    expect(JSON.stringify(await entriesOf(stores, "caller"))).not.toContain("xxxxxxxxxx");
  });

  test("endless reports of changed tools give one warning, and calls go on", async () => {
    const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
    onTestFinished(() => void vi.restoreAllMocks());
    expect(await resultOf(program("list changes"))).toBe("worked");
    expect(warn.mock.calls.length).toBeLessThanOrEqual(1);
  });

  test("a line without an end is not read for ever", async () => {
    expect(await resultOf(program("long line"))).toMatch(/not known.*more than 32000000 bytes/s);
  });
});

describe("a server over HTTP", () => {
  test("100 MB in one answer are read up to the limit", async () => {
    const piece = new Uint8Array(1_000_000).fill(120);
    let sent = 0;
    const server = await openScripted({
      call: () => {
        const body = new ReadableStream({
          pull: (controller) => {
            sent += 1;
            if (sent <= 100) controller.enqueue(piece);
            else controller.close();
          },
        });
        return new Response(body, { headers: { "content-type": "application/json" } });
      },
    });
    expect(await resultOf({ name: "far", url: server.url })).toMatch(/more than 32000000 bytes/);
    expect(sent).toBeLessThan(60);
  });

  test("an answer that comes byte by byte ends with the call's time", async () => {
    const server = await openScripted({
      call: () => {
        const body = new ReadableStream({
          pull: async (controller) => {
            await new Promise((resolve) => setImmediate(resolve));
            controller.enqueue(new Uint8Array([32]));
          },
        });
        return new Response(body, { headers: { "content-type": "application/json" } });
      },
    });
    const tools = { work: { timeoutMs: 300 } };
    expect(await resultOf({ name: "far", url: server.url, tools })).toMatch(/not known/);
  });

  test("an answer to another request is ignored", async () => {
    const server = await openScripted({
      call: () => Response.json({ jsonrpc: "2.0", id: 4_711, result: { content: [{ type: "text", text: "wrong" }] } }),
    });
    const tools = { work: { timeoutMs: 500 } };
    expect(await resultOf({ name: "far", url: server.url, tools })).not.toContain("wrong");
  });

  test("an image that names an address instead of data is not sent to the model", async () => {
    const server = await openScripted({
      call: (_number, _request, { result }) =>
        result({ content: [{ type: "image", data: "https://attacker.example/x.png", mimeType: "image/png" }] }),
    });
    expect(await resultOf({ name: "far", url: server.url })).not.toContain("[image 1]");
  });

  test("characters that terminals obey or people do not see are in no warning, description or error", async () => {
    const hidden = "\u001B]0;owned\u0007\u202Eevil\u200B\u{E0041}\u009B31m";
    const server = await openScripted({
      tools: [
        { name: `a${hidden}`, description: `Works.${hidden}`, inputSchema: { type: "string" } },
        { name: `a${hidden}` },
      ],
      call: (_number, _request, { error }) => error(-32_602, hidden),
    });
    const { tools, warnings } = await connected({ name: "far", url: server.url });
    expect(warnings).toHaveLength(2);
    const { agent } = await callerOf(tools, [{ name: tools[0]?.name ?? "" }]);
    await agent.executeTurn("go").result;
    const shown = [...warnings, ...tools.map(({ name, description }) => `${name} ${description}`)];
    shown.push(...(await toolTextsOf(agent)));
    for (const text of shown) expect(text).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });

  test("instructions of the server are texts, and a server that answers with anything is refused in time", async () => {
    for (const body of ["", "null", "[]", "{}", "<html></html>", '{"jsonrpc":"2.0"}', "[".repeat(100_000)]) {
      const far = await serve(async () => new Response(body, { headers: { "content-type": "application/json" } }));
      await expect(connected({ name: "far", url: far.url, connectTimeoutMs: 2_000 })).rejects.toThrow(
        /cannot be listed/,
      );
    }
  });
});

const annotated = (...names: unknown[]): object => ({
  type: "object",
  properties: Object.fromEntries(names.map((name, index) => [`p${index}`, { type: "string", "x-mcp-header": name }])),
});

test("arguments for HTTP headers: valid ones are sent, and tools with invalid ones are left out", async () => {
  const many = Object.fromEntries(Array.from({ length: 150_000 }, (_, index) => [`p${index}`, {}]));
  const schemas: readonly (readonly [schema: object, fault: RegExp | undefined])[] = [
    [annotated("Region", "Zone"), undefined],
    [{ type: "object", properties: { "x-mcp-header": { type: "string" } } }, undefined],
    [{ type: "object", properties: { a: { default: { "x-mcp-header": 5 } } } }, undefined],
    [annotated("Region", "region"), /used twice/],
    [annotated("a\r\nHost: b"), /not a valid HTTP header/],
    [annotated(5), /not a valid HTTP header/],
    [{ type: "object", properties: { a: { type: "number", "x-mcp-header": "A" } } }, /only string/],
    [{ type: "object", properties: { a: { items: { type: "string", "x-mcp-header": "A" } } } }, /not a property/],
    [{ type: "object", "x-mcp-header": "A" }, /its root/],
    [{ type: "object", properties: many }, /more than 100000/],
  ];
  const tools = schemas.map(([inputSchema], index) => ({ name: `t${index}`, inputSchema }));
  const server = await openScripted({ tools });
  const far = await connected({ name: "far", url: server.url });
  expect(far.tools.map(({ name }) => name)).toEqual(["far__t0", "far__t1", "far__t2"]);
  const faults = schemas.flatMap(([, fault]) => fault ?? []);
  expect(far.warnings).toHaveLength(faults.length);
  for (const [index, fault] of faults.entries()) expect(far.warnings[index]).toMatch(fault);
});

test("a page with more entries than a list may have is an error", async () => {
  const server = await openScripted({ tools: Array.from({ length: 200_000 }, (_, index) => ({ name: `t${index}` })) });
  await expect(connected({ name: "far", url: server.url })).rejects.toThrow(/1000 tools/);
});
