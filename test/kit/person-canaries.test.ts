// What is known of a person outside of the stores: after the calls of docs/deletion.md no byte of it is left.
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { fileNotes, sqliteMemory } from "../../src/kit/index.ts";
import { fileMcpTokens } from "../../src/mcp/index.ts";

const canary = "canary-41f0aa";
const key = (id: string) => ({ tenant: "default", scope: "owner", id }) as const;
const login = (actorId: string) => ({ server: "https://mail.example/mcp", actorId, item: "tokens" }) as const;

test("memories, notes and logins of a person leave no byte, and those of others stay", async () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-person-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const memories = sqliteMemory({ file: join(folder, "memory.db") });
  const notes = fileNotes(join(folder, "notes"));
  const tokens = fileMcpTokens({ folder: join(folder, "tokens"), key: randomBytes(32).toString("base64") });
  const files = (): string[] =>
    readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((one) =>
      one.isFile() ? [join(one.parentPath, one.name)] : [],
    );
  const bytes = (): string =>
    files()
      .map((file) => readFileSync(file, "latin1"))
      .join("\n");
  for (const [id, text] of [
    ["ann", canary],
    ["ben", "other"],
  ] as const) {
    await memories.remember(key(id), { id: "m1", text: `${text} `.repeat(100), createdAt: 1 });
    await notes.add(key(id), { id: "n1", text, createdAt: 1 });
    await tokens.set(login(id), JSON.stringify({ access_token: text }));
  }
  expect(bytes()).toContain(canary);
  const loginFiles = (): number => files().filter((file) => file.endsWith(".token")).length;
  expect(loginFiles()).toBe(2);

  await memories.forget(key("ann"), "all");
  await notes.clear(key("ann"));
  await tokens.delete(login("ann"));

  expect(bytes()).not.toContain(canary);
  expect(loginFiles()).toBe(1);
  expect(await memories.recall(key("ben"), { query: "other", limit: 5 })).toHaveLength(1);
  expect(await notes.list(key("ben"))).toMatchObject([{ text: "other" }]);
  expect(await tokens.get(login("ben"))).toContain("other");
});
