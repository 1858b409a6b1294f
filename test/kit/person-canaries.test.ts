// What is known of a person in and outside of the stores: after one deleteOwner() no byte of it is left.
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createRuntime, defineAgent } from "../../src/index.ts";
import { fileNotes, memory, notes, sqliteMemory } from "../../src/kit/index.ts";
import { fileMcpTokens, mcp } from "../../src/mcp/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { openDesk } from "../mcp/served-desk.ts";

const canary = "canary-41f0aa";
const key = (id: string) => ({ tenant: "default", scope: "owner", id }) as const;

/** The calls of a clerk that keeps what it heard in every store. */
const tell = (input: string) => [
  { toolCalls: [{ name: "remember", arguments: { text: `${input} `.repeat(100) } }] },
  { toolCalls: [{ name: "own_remember", arguments: { text: input } }] },
  { toolCalls: [{ name: "add_note", arguments: { text: input } }] },
  { toolCalls: [{ name: "own_add_note", arguments: { text: input } }] },
];

test("agents, memories, notes and logins of a person leave no byte, and those of others stay", async () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-person-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const memories = sqliteMemory({ file: join(folder, "memory.db") });
  const book = fileNotes(join(folder, "notes"));
  const tokens = fileMcpTokens({ folder: join(folder, "tokens"), key: randomBytes(32).toString("base64") });
  const files = (): string[] =>
    readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((one) =>
      one.isFile() ? [join(one.parentPath, one.name)] : [],
    );
  const bytes = (): string =>
    files()
      .map((file) => readFileSync(file, "latin1"))
      .join("\n");
  const loginFiles = (): number => files().filter((file) => file.endsWith(".token")).length;

  const desk = await openDesk("http modern");
  const oauth = { redirectUrl: "https://app.example.com/callback", store: tokens };
  const server = await mcp({ name: "desk", ...desk.options, auth: { oauth } });
  onTestFinished(() => server.close());
  const login = (actorId: string) =>
    ({ server: new URL(desk.options.url ?? "").href, actorId, item: "tokens" }) as const;
  const clerk = defineAgent({
    name: "clerk",
    model: scriptedModel(({ messages }, { call }) => {
      const input = messages.some(({ content }) => content === canary) ? canary : "other";
      return tell(input)[(call?.step ?? 1) - 1] ?? `Noted ${input}.`;
    }),
    plugins: [
      memory({ store: memories, scope: "agent" }),
      memory({ store: memories, scope: "owner", prefix: "own_" }),
      notes({ scope: "agent" }),
      notes({ scope: "owner", store: book, prefix: "own_" }),
    ],
    tools: server.tools,
  });
  const runtime = await createRuntime({ agents: [clerk], stores: sqliteStores(join(folder, "desk.db")) });
  for (const [id, text] of [
    ["ann", canary],
    ["ben", "other"],
  ] as const) {
    const agent = await runtime.agent("clerk", { agentId: `${id}-1`, ownerId: id });
    await agent.start();
    expect((await agent.executeTurn(text).result).text).toBe(`Noted ${text}.`);
    await tokens.set(login(id), JSON.stringify({ access_token: text }));
  }
  expect(bytes()).toContain(canary);
  expect(loginFiles()).toBe(2);
  expect(await book.list(key("ann"))).toMatchObject([{ text: canary }]);
  expect(await memories.recall(key("ann"), { query: canary, limit: 5 })).toHaveLength(1);

  const report = await runtime.deleteOwner("ann");
  expect(report).toMatchObject({ failed: [], trees: [{ agentId: "ann-1", dataLeft: [] }] });

  expect(bytes()).not.toContain(canary);
  expect(bytes()).not.toContain("ann-1");
  expect(loginFiles()).toBe(1);
  expect(await memories.recall(key("ben"), { query: "other", limit: 5 })).toHaveLength(1);
  expect(await memories.recall({ ...key("ben-1"), scope: "agent" }, { query: "", limit: 5 })).toHaveLength(1);
  expect(await book.list(key("ben"))).toMatchObject([{ text: "other" }]);
  expect(await tokens.get(login("ben"))).toContain("other");
  await runtime.shutdown();
  await memories.close();
});
