import { vi } from "vitest";
import type { RedisServer } from "../support/redis-server.ts";
import { ownPrefix } from "../support/redis-stores.ts";
import { type CliProcess, startCli, workFolder } from "./cli-process.ts";
import { stampsIn } from "./working-agents.ts";

/** A folder and an empty prefix on a Redis, with the processes that a test starts there. */
export class WorkPlace {
  readonly url: string;
  readonly prefix = ownPrefix();
  readonly started: CliProcess[] = [];
  readonly #folder: ReturnType<typeof workFolder>;

  constructor(server: RedisServer, files: Readonly<Record<string, string>>) {
    this.url = server.url;
    this.#folder = workFolder(files);
  }

  get path(): string {
    return this.#folder.path;
  }

  start(words: readonly string[], environment: Readonly<Record<string, string>> = {}): CliProcess {
    const process = startCli(this.path, [...words, "--redis", this.url, "--prefix", this.prefix], environment);
    this.started.push(process);
    return process;
  }

  /** A worker that has reported that it is ready. */
  async worker(words: readonly string[], environment: Readonly<Record<string, string>> = {}) {
    const process = this.start(["worker", ...words], environment);
    return { process, line: await process.line((line) => line.startsWith("Worker ")) };
  }

  /** The process that stamps first. */
  async firstAtWork(): Promise<CliProcess> {
    const { pid } = await vi.waitUntil(() => stampsIn(this.path)[0], { timeout: 60_000 });
    const found = this.started.find((process) => process.pid === pid);
    if (found === undefined) throw new Error(`process ${pid} is not a worker of this test`);
    return found;
  }

  async close(): Promise<void> {
    for (const process of this.started) process.signal("SIGKILL");
    await Promise.all(this.started.map(({ ended }) => ended));
    this.#folder.remove();
  }
}
