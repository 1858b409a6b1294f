import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { PostgresServer } from "./postgres-server.ts";

const keeper = fileURLToPath(new URL("postgres-keeper.ts", import.meta.url));
const STARTED_MS = 120_000;

let shared: Promise<PostgresServer> | undefined;

/**
 * One Postgres for all test processes of a run, which the first test that needs it starts. Tests use schemas and prefixes of their own;
 * those that kill or configure a server start their own.
 */
export function sharedPostgres(): Promise<PostgresServer> {
  shared ??= findOrStart();
  return shared;
}

async function findOrStart(): Promise<PostgresServer> {
  const folder = join(tmpdir(), `troupe-shared-postgres-${process.ppid}`);
  const portFile = join(folder, "port");
  for (const end = performance.now() + STARTED_MS; performance.now() < end; await delay(20)) {
    if (isMine(folder)) {
      const args = ["--conditions=troupe-source", keeper, folder, String(process.ppid)];
      spawn(process.execPath, args, { detached: true, stdio: "ignore" }).unref();
    }
    if (!existsSync(portFile)) continue;
    const server = PostgresServer.at(Number(readFileSync(portFile, "utf8")));
    if (await server.answers()) return server;
    // Left over by a run that had the same process id.
    rmSync(folder, { recursive: true, force: true });
  }
  throw new Error(`the Postgres of the tests did not start within ${STARTED_MS} ms`);
}

/** Whether this process creates the folder, and so starts the server. */
function isMine(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch {
    return false;
  }
}
