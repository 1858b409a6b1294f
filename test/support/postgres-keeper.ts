// Runs one Postgres for all test processes of a run: `node postgres-keeper.ts FOLDER PID`. Writes the port into the folder and stops when
// the process PID, which started the test processes, has ended, however that was.
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { PostgresServer } from "./postgres-server.ts";

const [folder = "", pid = ""] = process.argv.slice(2);

function isAlive(): boolean {
  try {
    process.kill(Number(pid), 0);
    return true;
  } catch {
    return false;
  }
}

const server = await PostgresServer.start({ settings: { max_connections: "400", shared_buffers: "64MB" } });
// Renamed at the end, so that no test process reads half of it.
writeFileSync(join(folder, "port.new"), String(server.port));
renameSync(join(folder, "port.new"), join(folder, "port"));
while (isAlive()) await delay(250);
await server.stop();
rmSync(folder, { recursive: true, force: true });
