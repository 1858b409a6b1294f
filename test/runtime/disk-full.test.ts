import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const module = (path: string): string => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href);
/** A turn whose answer does not fit. The program prints each warning and the outcome, one per line. */
const program = `
  import { createRuntime, defineAgent } from ${module("index.ts")};
  import { sqliteStores } from ${module("stores/sqlite.ts")};
  import { scriptedModel } from ${module("testing/index.ts")};
  const model = scriptedModel(() => "parcel ".repeat(200_000));
  const agents = [defineAgent({ name: "clerk", model })];
  const runtime = await createRuntime({ agents, stores: sqliteStores(process.argv[2]) });
  const agent = await runtime.agent("clerk", { agentId: "clerk-1" });
  await agent.start();
  const turn = agent.executeTurn("go");
  const end = turn.result.catch((error) => error.code);
  for await (const event of turn) if (event.type === "warning") { console.log(event.code, event.message); break; }
  console.log("problems", (await runtime.health()).problems.length);
  await runtime.shutdown({ timeoutMs: 1_000 });
  console.log("end", await end);
`;

/** Mounts a file system of one megabyte. Returns false if mounting is not permitted. */
function isMounted(folder: string): boolean {
  return spawnSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]).status === 0;
}

const told = (code: string): RegExp =>
  new RegExp(`^store_unavailable .*${code}.*\nproblems 1\nend turn_interrupted\n$`);

describe.skipIf(process.platform === "win32")("a full disk in mid-turn", () => {
  let folder: string;
  let script: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "troupe-disk-"));
    script = mkdtempSync(join(tmpdir(), "troupe-program-"));
    writeFileSync(join(script, "program.mts"), program);
  });
  afterEach(() => {
    for (const one of [folder, script]) rmSync(one, { recursive: true, force: true });
  });

  const run = (limit: string): string =>
    execFileSync(
      "bash",
      [
        "-c",
        `${limit} exec "$0" "$@"`,
        process.execPath,
        "--no-warnings",
        "--conditions=troupe-source",
        join(script, "program.mts"),
        join(folder, "a.db"),
      ],
      { encoding: "utf8", timeout: 60_000, stdio: ["ignore", "pipe", "ignore"] },
    );

  it("warns the turn's stream, and shutdown() still ends, if files may not grow", () => {
    expect(run("ulimit -f 600;")).toMatch(told("SQLITE_(?:IOERR|FULL)"));
  }, 70_000);

  it("warns the turn's stream, and shutdown() still ends, if the file system is full", ({ skip }) => {
    if (!isMounted(folder)) skip("mount -t tmpfs was refused");
    try {
      expect(run("")).toMatch(told("no space is left for the store .*a\\.db.*SQLITE_FULL.*free space on its disk"));
    } finally {
      spawnSync("umount", [folder]);
    }
  }, 70_000);
});
