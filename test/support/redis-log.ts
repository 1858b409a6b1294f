import { readdirSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import type { RedisServer } from "./redis-server.ts";

/** The sizes of the write logs at one time, by their paths. */
export type LogSizes = ReadonlyMap<string, number>;

/** The sizes for every server with a folder inside this one. */
export function logSizes(folder: string): LogSizes {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true });
  const logs = files.filter((file) => file.isFile() && file.name.endsWith(".aof"));
  return new Map(
    logs.map(({ parentPath, name }) => {
      const path = join(parentPath, name);
      return [path, statSync(path).size];
    }),
  );
}

/**
 * Simulates a power cut of a server that does not sync each write: the logs are truncated to these sizes. The server must not
 * run; at its start it drops an incomplete command or script. Returns the number of removed bytes.
 */
export function cutLogs(folder: string, then: LogSizes): number {
  let cut = 0;
  for (const [path, size] of logSizes(folder)) {
    const left = Math.min(size, then.get(path) ?? size);
    truncateSync(path, left);
    cut += size - left;
  }
  return cut;
}

/** A power cut that removes all later writes, and the server's restart. */
export async function cutPower(server: RedisServer, folder: string, then: LogSizes): Promise<void> {
  await server.kill();
  if (cutLogs(folder, then) === 0) throw new Error("nothing was written since then, so nothing would be lost");
  await server.launch();
}
