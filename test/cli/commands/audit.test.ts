// `troupe audit`, on a SQLite file and on files.
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AuditReport } from "../../../src/inspector/index.ts";
import { sqliteStores } from "../../../src/stores/sqlite.ts";
import { playAuditedTeam, secretWord } from "../../inspector/audited-team.ts";
import { troupe } from "../support/in-process.ts";

let folder = "";
let store = "";
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "troupe-audit-cli-"));
  store = join(folder, "jobs.db");
  await playAuditedTeam(sqliteStores(store));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function audit(...words: readonly string[]) {
  return await troupe(["audit", "desk", "--store", store, ...words]);
}

async function headOf(): Promise<string> {
  const { out } = await audit("--json");
  return (JSON.parse(out[0] ?? "") as AuditReport).head ?? "";
}

/** Changes a text in the database, as someone with access to the file can. */
function changeStore(from: string, to: string): void {
  const database = new DatabaseSync(store);
  const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
  let changes = 0;
  for (const { name } of tables) {
    const table = String(name);
    for (const { name: column, type } of database.prepare(`PRAGMA table_info("${table}")`).all()) {
      if (type !== "TEXT") continue;
      const sql = `UPDATE "${table}" SET "${String(column)}" = replace("${String(column)}", ?, ?) WHERE instr("${String(column)}", ?) > 0`;
      changes += Number(database.prepare(sql).run(from, to, from).changes);
    }
  }
  database.close();
  expect(changes).toBeGreaterThan(0);
}

describe("troupe audit", () => {
  it("prints the head, the requests, the effects and the money", async () => {
    const { code, out } = await audit();
    expect(code).toBe(0);
    const text = out.join("\n");
    expect(out[0]).toMatch(/^desk: consistent; give a head/);
    expect(text).toMatch(/head: [0-9a-f]{64}\n {2}entries: \d+ of 2 agents; model calls: 5/);
    expect(text).toMatch(/desk#1:3:0:1 pay, arguments [0-9a-f]{16}: approved by ann/);
    expect(text).toContain("pay (keyed): ran");
    expect(text).toMatch(/turn:desk#1: \d+ tokens, \$0.000000, 3 tool calls/);
  });

  it("verifies a head: exit code 0 until the store is changed, then 1", async () => {
    const head = await headOf();
    expect(await audit("--verify", "--head", head)).toMatchObject({
      code: 0,
      out: [expect.stringMatching(/^desk: verified: all entries \(\d+\) are as they were/)],
    });
    changeStore(`seen ${secretWord}`, `seen something-else`);
    const { code, out } = await audit("--verify", "--head", head);
    expect(code).toBe(1);
    expect(out).toEqual([
      "desk: broken",
      "  the run does not have the given head: an entry up to it was changed, removed, added or moved, or the end is missing",
    ]);
  });

  it("names the changed entry by an earlier audit without contents", async () => {
    const file = join(folder, "audit.json");
    expect((await audit("--file", file, "--without-content")).code).toBe(0);
    expect(readFileSync(file, "utf8")).not.toContain(secretWord);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect((await audit("--verify", "--earlier", file)).code).toBe(0);
    expect((await troupe(["audit", file, "--verify", "--head", await headOf()])).code).toBe(0);
    changeStore(`seen ${secretWord}`, `seen something-else`);
    const { code, out } = await audit("--verify", "--earlier", file);
    expect(code).toBe(1);
    expect(out[1]).toMatch(/^ {2}desk, entry \d+: the entry differs from the earlier audit$/);
  });

  it("writes the page only once, unless forced", async () => {
    const file = join(folder, "audit.html");
    const { code, out } = await audit("--html", file);
    expect(code).toBe(0);
    expect(out.at(-1)).toBe(`Written: ${file}`);
    expect(readFileSync(file, "utf8")).toContain("Content-Security-Policy");
    expect(await audit("--html", file)).toMatchObject({ code: 2, notes: [expect.stringContaining("--force")] });
    expect((await audit("--html", file, "--force")).code).toBe(0);
  });

  it("exits with 2 and the reason for everything that cannot be verified", async () => {
    const broken = join(folder, "broken.json");
    writeFileSync(broken, "{}");
    const names = join(folder, "names.json");
    await troupe(["export", "desk", "--json", names, "--names-only", "--store", store]);
    const same = join(folder, "same");
    for (const [words, reason] of [
      [["audit", "other", "--store", store], 'there is no agent "other"'],
      [["audit", broken], "invalid audit: "],
      [["audit", names], "was written with --names-only"],
      [["audit", join(folder, "none.json")], "none.json"],
      [["audit", "desk", "--store", store, "--head", "abc"], "64 hexadecimal digits, is needed"],
      [["audit", "desk", "--store", store, "--head", ""], "--head"],
      [["audit", "desk", "--store", store, "--earlier", broken], "invalid audit: "],
      [["audit", "desk", "--store", store, "--earlier", folder], "cannot be read"],
      [["audit", "desk", "--store", store, "--html", same, "--file", same], "name the same file"],
      [["audit", "desk", "--store", store, "--html", folder], "is a folder"],
      [["audit", "desk", "--store", store, "--file", join(folder, "no", "audit.json")], "audit.json"],
      [["audit"], "missing required argument"],
    ] as const) {
      const { code, notes, out } = await troupe([...words]);
      expect(code, `${words.join(" ")}\n${[...out, ...notes].join("\n")}`).toBe(2);
      expect(notes.join("\n")).toContain(reason);
    }
    expect(existsSync(same)).toBe(false);
  });
});
