import { readdirSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import type { RedisServer } from "./redis-server.ts";

/** How long the logs of writes were at one moment, by their paths. */
export type LogSizes = ReadonlyMap<string, number>;

/** Of every server whose folder is in this one. */
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
 * What a power cut does to a server that does not sync each write: the logs end where they did then. The server must not
 * run; a command or a script of which only a part is left it leaves out when it starts. Gives how many bytes went.
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

/** A power cut that takes all that was written since, and the server's restart. */
export async function cutPower(server: RedisServer, folder: string, then: LogSizes): Promise<void> {
  await server.kill();
  if (cutLogs(folder, then) === 0) throw new Error("nothing was written since then: nothing would be lost");
  await server.launch();
}
