import { fork } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export interface PageFigures {
  readonly entries: number;
  /** Number of batches that began at or before the previous row; must be 0. */
  readonly doubles: number;
  readonly head: number;
  /** Bytes received over the socket, compressed. */
  readonly bytes: number;
  /** Delay between entry and reception, in milliseconds. */
  readonly p50: number;
  readonly p95: number;
}

export interface PageReading {
  /** Resolves when the first rows are received. */
  readonly begun: Promise<void>;
  /** Ends the process and returns its figures. */
  end(): Promise<PageFigures>;
}

/** Starts a reader of a run in a separate process, like a page. It waits for the run. */
export async function startPageReading(origin: string, token: string, run: string): Promise<PageReading> {
  const child = fork(fileURLToPath(new URL("page-reader.ts", import.meta.url)), [origin, token, run], {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
    execArgv: [],
  });
  if (child.stdout === null) throw new Error("The reader has no standard output.");
  const lines = createInterface({ input: child.stdout });
  const said: string[] = [];
  const begun = Promise.withResolvers<void>();
  lines.on("line", (line) => {
    said.push(line);
    if (line === "begun") begun.resolve();
  });
  await once(lines, "line");
  return {
    begun: begun.promise,
    async end() {
      const closed = once(lines, "close");
      child.kill("SIGTERM");
      await closed;
      return JSON.parse(said.at(-1) ?? "") as PageFigures;
    },
  };
}
