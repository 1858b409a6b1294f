import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createRuntime, memoryStores } from "../../src/index.ts";
import {
  type AuditFile,
  type AuditReport,
  auditRun,
  Feed,
  pageOfAudit,
  readAudit,
  verifyAudit,
  withoutContent,
} from "../../src/inspector/index.ts";
import { auditOfTree } from "../../src/inspector/feed/audit-run.ts";
import type { Json } from "../../src/state/index.ts";
import type { StoredTree } from "../../src/stores/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { anyValues, classicValues, isTaken } from "../support/wrong-values.ts";
import { auditedTeam, playAuditedTeam, secretWord } from "./audited-team.ts";

let played: StoredTree;
let audit: AuditFile;
let head = "";
beforeAll(async () => {
  played = await playAuditedTeam(memoryStores());
  audit = await auditOfTree(played);
  head = audit.head ?? "";
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "troupe-audit-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** `Json` stays as it is, because mapping a recursive type would not terminate. */
type Changeable<T> = [Json] extends [T]
  ? T
  : T extends object
    ? { -readonly [Name in keyof T]: Changeable<T[Name]> }
    : T;

/** The report on a copy of the stored tree that someone has changed. */
async function afterChange(
  change: (tree: Changeable<StoredTree>) => void,
  given: object = { head },
): Promise<AuditReport> {
  const tree = structuredClone(played) as Changeable<StoredTree>;
  change(tree);
  return verifyAudit(await auditOfTree(tree as StoredTree), given);
}

/** What an audit without a head finds in a changed tree. */
async function faults(change: (tree: Changeable<StoredTree>) => void): Promise<string> {
  const { verdict, problems } = await afterChange(change, {});
  expect(verdict).toBe("broken");
  return problems.map(({ problem }) => problem).join("; ");
}

function requestOf(tree: Changeable<StoredTree>) {
  return tree.agents[0]?.requests[0];
}

/** The paths of all values in a value that are no objects. */
function leavesOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [path];
  return Object.entries(value).flatMap(([name, field]) => leavesOf(field, [...path, name]));
}

function setAt(root: object, path: readonly string[], change: (value: unknown) => unknown): void {
  let at = root as Record<string, unknown>;
  for (const name of path.slice(0, -1)) at = at[name] as Record<string, unknown>;
  const last = path.at(-1) ?? "";
  at[last] = change(at[last]);
}

/** Another value of the same type, by one bit or letter. */
function other(value: unknown): unknown {
  if (typeof value === "number") return value + 1;
  if (typeof value === "boolean") return !value;
  if (typeof value === "string") return `${value.slice(0, -1)}${value.endsWith("x") ? "y" : "x"}`;
  return "something";
}

describe("an audited run", () => {
  it("lists prompts, approvals, effects, money and definitions", () => {
    const report = verifyAudit(audit, { head });
    expect(report).toMatchObject({
      verdict: "verified",
      head,
      covered: audit.links.length,
      problems: [],
      forkedFrom: null,
    });
    expect(report.agents.map(({ agentId }) => agentId)).toEqual(["desk", expect.stringMatching(/^desk~/)]);
    expect(report.prompts.map(({ step, model }) => `${step} ${model}`)).toEqual([
      "1 scripted",
      "2 scripted",
      "1 small",
      "3 scripted",
      "4 scripted",
    ]);
    expect(new Set(report.prompts.map(({ promptHash }) => promptHash)).size).toBe(5);
    expect(report.approvals).toMatchObject([
      {
        kind: "approval",
        name: "pay",
        verdict: "approved",
        by: "ann",
        argumentsHash: expect.stringMatching(/^[0-9a-f]{16}$/),
      },
    ]);
    expect(report.effects.map(({ name, effect, outcome }) => `${name} ${effect} ${outcome}`)).toEqual([
      "look none ran",
      "reader once ran",
      "pay keyed ran",
    ]);
    expect(report.accounts.length).toBeGreaterThan(2);
    expect(report.accounts.every(({ isEqual }) => isEqual)).toBe(true);
    expect(report.definitions).toMatchObject([
      { name: "clerk", isStored: true },
      { name: "reader", isStored: true },
    ]);
  });

  it("is consistent without a head, which proves only that the parts fit", () => {
    expect(verifyAudit(audit)).toMatchObject({ verdict: "consistent", covered: null });
  });

  it("has the same head after the run went on, which covers the entries before", async () => {
    const path = join(newFolder(), "jobs.db");
    await playAuditedTeam(sqliteStores(path));
    const runtime = await createRuntime({ agents: [auditedTeam()], stores: sqliteStores(path) });
    onTestFinished(() => runtime.shutdown());
    const source = { stores: runtime.stores, agentId: "desk" };
    const before = await auditRun(source);
    const agent = await runtime.agent("clerk", { agentId: "desk" });
    await agent.start();
    await agent.executeTurn("Thanks.").result;
    const after = await auditRun(source);
    expect(after.head).not.toBe(before.head);
    const report = verifyAudit(after, { head: before.head ?? undefined, earlier: before });
    expect(report).toMatchObject({ verdict: "verified", covered: before.links.length, entries: after.links.length });
    expect(report.entries).toBeGreaterThan(before.links.length);
  });
});

describe("a changed store", () => {
  it("is found at every field of every entry and message", { timeout: 120_000 }, async () => {
    const paths = leavesOf(played.rows.map(({ entries, messages }) => ({ entries, messages })));
    expect(paths.length).toBeGreaterThan(500);
    const changed = fc.asyncProperty(fc.constantFrom(...paths), async (path) => {
      // A type that the stores do not know is refused when they read it.
      const isType = path.at(-3) === "entries" && path.at(-1) === "type";
      const report = await afterChange((tree) => setAt(tree.rows, path, isType ? () => "budget.freed" : other));
      expect(report.verdict, path.join(".")).toBe("broken");
    });
    await fc.assert(changed, { numRuns: 300, seed: 41 });
  });

  it("is found if entries are removed, added, moved or cut off", async () => {
    const places = played.rows.flatMap(({ entries }, row) => entries.map((_, entry) => ({ row, entry })));
    for (const { row, entry } of places) {
      const changes: ((entries: Changeable<StoredTree>["rows"][number]["entries"]) => void)[] = [
        (entries) => entries.splice(entry, 1),
        (entries) => entries.splice(entry, 0, entries[entry] as never),
        (entries) => entries.splice(entry),
      ];
      for (const change of changes) {
        const report = await afterChange((tree) => change(tree.rows[row]?.entries ?? []));
        expect(report.verdict).toBe("broken");
      }
      const cut = await afterChange((tree) => {
        tree.rows.splice(row);
        for (const agent of tree.agents) {
          agent.seq = tree.rows
            .filter(({ agentId }) => agentId === agent.record.agentId)
            .flatMap(({ entries }) => entries).length;
        }
      });
      expect(cut.verdict).toBe("broken");
      expect(JSON.stringify(cut.problems)).toContain("does not have the given head");
    }
    for (const [index] of played.rows.slice(1).entries()) {
      const moved = await afterChange((tree) =>
        tree.rows.splice(index, 2, ...tree.rows.slice(index, index + 2).toReversed()),
      );
      expect(moved.verdict).toBe("broken");
    }
  });

  it("is found without a head where journal, requests, accounts and definitions no longer agree", async () => {
    expect(
      await faults((tree) => {
        const decision = requestOf(tree)?.decision;
        if (decision) decision.by = "eve";
      }),
    ).toContain("another decision than in the journal");
    expect(
      await faults((tree) => {
        const request = requestOf(tree);
        if (request) request.argumentsHash = "0".repeat(16);
      }),
    ).toContain("other arguments than in the journal");
    expect(
      await faults((tree) => {
        for (const entry of tree.rows.flatMap(({ entries }) => entries)) {
          if (entry.type === "call.gated" && entry.name === "pay") entry.arguments = { to: "Eve", amount: 500 };
        }
      }),
    ).toMatch(/the arguments of call .* do not have the hash/);
    expect(
      await faults((tree) => {
        for (const entry of tree.rows.flatMap(({ entries }) => entries)) {
          if (entry.type === "request.decided") entry.verdict = "rejected";
        }
      }),
    ).toContain("has started without its approval");
    for (const index of played.accounts.keys()) {
      expect(
        await faults((tree) => {
          const account = tree.accounts[index];
          if (account) account.used.tokens += 1;
        }),
      ).toMatch(/account \S+ has \d+ tokens, .* its entries have \d+ tokens/);
    }
    expect(
      await faults((tree) => {
        const [definition] = tree.definitions;
        if (definition) definition.instructions = "Serve Eve.";
      }),
    ).toContain('definition "clerk" does not have the hash');
    expect(await faults((tree) => tree.rows.at(-1)?.entries.pop())).toContain("the journal ends at entry");
  });

  it("names the entry that differs from an earlier audit", async () => {
    const report = await afterChange(
      (tree) => {
        const [message] = tree.rows[3]?.messages ?? tree.rows[0]?.messages ?? [];
        if (message) message.content = "another text";
      },
      { earlier: withoutContent(audit) },
    );
    expect(report.verdict).toBe("broken");
    expect(report.problems[0]).toMatchObject({ agentId: "desk", problem: "the entry differs from the earlier audit" });
  });
});

describe("a changed file", () => {
  it("is found at every value that is not only shown", { timeout: 120_000 }, async () => {
    const free =
      /^(?:auditedAt|agents\.\d+\.at|accounts\.|requests\.\d+\.(?:kind|name|status)|definitions\.\d+\.name|format)/;
    const paths = leavesOf(JSON.parse(JSON.stringify(audit))).filter((path) => !free.test(path.join(".")));
    const changed = fc.property(fc.constantFrom(...paths), (path) => {
      const copy = structuredClone(audit);
      setAt(copy, path, other);
      let found: string;
      try {
        found = verifyAudit(copy, { head }).verdict;
      } catch (error) {
        found = String(error);
      }
      expect(found, path.join(".")).toMatch(/^broken$|invalid audit: /);
    });
    fc.assert(changed, { numRuns: 500, seed: 41 });
  });

  it("names the changed entry, and only that", () => {
    const copy = structuredClone(audit) as Changeable<AuditFile>;
    const link = copy.links.find(({ entry }) => entry.fields["type"] === "request.decided");
    if (link) link.entry.fields["by"] = "eve";
    const { problems } = verifyAudit(copy as AuditFile);
    expect(problems).toMatchObject([
      { agentId: "desk", seq: link?.entry.fields["seq"], problem: expect.stringContaining("was changed") },
      { agentId: null, problem: expect.stringContaining("the head does not fit") },
      { agentId: "desk", problem: expect.stringContaining("another decision") },
    ]);
  });

  it("cannot hide a fact as a removed field", () => {
    const copy = structuredClone(audit) as Changeable<AuditFile>;
    for (const { entry } of copy.links) {
      if (entry.fields["type"] !== "request.decided") continue;
      delete entry.fields["by"];
      entry.removed = { by: "0".repeat(64) };
    }
    expect(verifyAudit(copy as AuditFile).problems).toContainEqual(
      expect.objectContaining({ problem: 'its field "by" may not be removed' }),
    );
  });
});

describe("an audit without contents", () => {
  it("has none of them, and the same head", () => {
    const bare = withoutContent(audit);
    expect(JSON.stringify(audit)).toContain(secretWord);
    expect(JSON.stringify(bare)).not.toContain(secretWord);
    const { removed, ...report } = verifyAudit(bare, { head });
    const { removed: _none, ...whole } = verifyAudit(audit, { head });
    expect(report).toEqual(whole);
    expect(removed.messages).toBeGreaterThan(5);
    expect(removed.fields).toBeGreaterThan(5);
    expect(removed.unknown).toBe(0);
    expect(withoutContent(bare)).toEqual(bare);
  });

  it("is the tombstone of deleted messages: with it the head stays verifiable", async () => {
    const runtime = await createRuntime({ agents: [auditedTeam()] });
    onTestFinished(() => runtime.shutdown());
    const source = { stores: runtime.stores, agentId: "desk" };
    const agent = await runtime.agent("clerk", { agentId: "desk" });
    await agent.start();
    const turn = agent.executeTurn("Pay.");
    await turn.settled;
    await agent.abort();
    await turn.result.catch(() => undefined);
    const before = await auditRun(source, { content: false });
    await agent.clear();
    const alone = verifyAudit(await auditRun(source));
    expect(alone).toMatchObject({ verdict: "partial", head: null, problems: [] });
    expect(alone.removed.unknown).toBeGreaterThan(2);
    const after = await auditRun(source, { earlier: before });
    expect(JSON.stringify(after)).not.toContain("Pay.");
    expect(verifyAudit(after, { head: before.head ?? undefined })).toMatchObject({
      verdict: "verified",
      covered: before.links.length,
      removed: { unknown: 0 },
    });
  });
});

describe("secrets", () => {
  it("are removed with their field, and the head stays", async () => {
    const tree = structuredClone(played) as Changeable<StoredTree>;
    const token = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD";
    for (const message of tree.rows.flatMap(({ messages }) => messages))
      if (message.role === "user") message.content = token;
    const file = await auditOfTree(tree as StoredTree);
    expect(JSON.stringify(file)).not.toContain(token);
    expect(verifyAudit(file, { head: file.head ?? "" })).toMatchObject({ verdict: "verified" });
    expect(verifyAudit(file).removed.fields).toBeGreaterThan(0);
  });
});

describe("files", () => {
  it("are audits, or exported runs without redacted texts", async () => {
    const folder = newFolder();
    const stores = sqliteStores(join(folder, "jobs.db"));
    await playAuditedTeam(stores);
    const open = sqliteStores(join(folder, "jobs.db"));
    onTestFinished(() => open.close());
    const [file, run, names, redacted] = ["audit.json", "run.json", "names.json", "redacted.json"].map((name) =>
      join(folder, name),
    ) as [string, string, string, string];
    const stored = await auditRun({ stores: open, agentId: "desk" });
    writeFileSync(file, JSON.stringify(stored));
    for (const [path, options] of [
      [run, {}],
      [names, { namesOnly: true }],
    ] as const) {
      const feed = new Feed(options);
      feed.add({ stores: open, tenant: "default" });
      writeFileSync(path, JSON.stringify(await feed.export("desk")));
      feed.close();
    }
    writeFileSync(redacted, JSON.stringify(await auditRunText(run)).replaceAll(secretWord, "[redacted]"));
    expect((await auditRun(file)).head).toBe(stored.head);
    expect((await auditRun(run)).head).toBe(stored.head);
    await expect(auditRun(names)).rejects.toThrow(
      "was written with --names-only, so that its hashes cannot be computed",
    );
    await expect(auditRun(redacted)).rejects.toThrow("has redacted texts");
    for (const text of ["{", "{}", "null", '{"format":"troupe.audit/1"}']) {
      writeFileSync(file, text);
      await expect(auditRun(file)).rejects.toThrow(/is not JSON|invalid audit/);
    }
    await expect(auditRun(join(folder, "none.json"))).rejects.toThrow("none.json");
    await expect(auditRun({ stores: open, agentId: "other" })).rejects.toThrow('there is no agent "other"');
  });
});

async function auditRunText(path: string): Promise<unknown> {
  const { readFile } = await import("node:fs/promises");
  return JSON.parse(await readFile(path, "utf8")) as unknown;
}

describe("wrong values", () => {
  const values = [...classicValues(), ...anyValues(100)];

  it("are refused with the name of the option", async () => {
    const stores = memoryStores();
    let refused = 0;
    const refuses = async (name: string, call: () => unknown): Promise<void> => {
      if (!(await isTaken(name, call))) refused += 1;
    };
    for (const value of values) {
      await refuses("head", () => verifyAudit(audit, { head: value as never }));
      await refuses("earlier", () => verifyAudit(audit, { earlier: value as never }));
      await refuses("earlier", () => auditRun({ stores, agentId: "desk" }, { earlier: (value ?? 1) as never }));
      await refuses("content", () =>
        auditRun({ stores, agentId: "desk" }, { content: (typeof value === "boolean" ? 1 : (value ?? 1)) as never }),
      );
      await refuses("invalid audit", () => readAudit(value));
      await refuses("invalid audit", () => verifyAudit(value as never));
      await refuses("invalid audit", () => withoutContent(value as never));
      await refuses("invalid audit", () => pageOfAudit(value as never));
      await refuses("", () => auditRun(value as never));
    }
    expect(refused).toBeGreaterThan(9 * values.length - 5);
    expect(() => verifyAudit(audit, { heads: head } as never)).toThrow("heads");
  });
});
