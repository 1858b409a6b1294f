import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import { findRedis, type RedisProgram } from "./redis-program.ts";

/** The Redis program of these tests; `undefined` if they must be skipped. */
export const redisProgram: RedisProgram | undefined = await findRedis();

export interface RedisServerOptions {
  /** Additional settings, as on the command line: `["--maxmemory", "20mb"]`. */
  readonly settings?: readonly string[];
  /** The password that clients must send. */
  readonly password?: string;
  /** The parent of the server's folder. Default: in memory, if the system has such a folder. */
  readonly folder?: string;
  /** Whether the server logs every write before it answers, so that the write survives a kill. Default: true. */
  readonly isLogged?: boolean;
}

const READY_MS = 20_000;
/** In memory if the system has such a folder: its files survive a kill of the server, and nothing waits for a disk. */
const place = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
/** Ends the server with the process that started it, however that ends, if the system supports this. */
const parentDeathSignal = existsSync("/usr/bin/setpriv") ? ["/usr/bin/setpriv", "--pdeathsig", "KILL"] : [];

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** A Redis server for one test, on a free loopback port, with its own folder. */
export class RedisServer {
  readonly port: number;
  readonly #folder: string;
  readonly #program: RedisProgram;
  readonly #settings: readonly string[];
  readonly #password: string | undefined;
  #process: ChildProcess | undefined;

  private constructor(port: number, program: RedisProgram, options: RedisServerOptions) {
    this.port = port;
    this.#program = program;
    const { isLogged = true, settings = [], password, folder = place } = options;
    this.#folder = mkdtempSync(join(folder, "troupe-redis-server-"));
    const log = isLogged ? ["--appendonly", "yes", "--appendfsync", "always"] : ["--appendonly", "no"];
    this.#password = password;
    this.#settings = ["--save", "", ...log, ...settings, ...(password ? ["--requirepass", password] : [])];
  }

  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    if (!redisProgram) throw new Error("redis-server is not available; the test should have been skipped");
    for (let attempt = 1; ; attempt += 1) {
      const server = new RedisServer(await freePort(), redisProgram, options);
      try {
        await server.launch();
        return server;
      } catch (error) {
        await server.stop();
        // Another process may have taken the port in between.
        if (attempt === 5) throw error;
      }
    }
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts the process, also again after `kill`, and waits until it answers. `port`: a different port. */
  async launch(port = this.port): Promise<void> {
    const settings = ["--port", String(port), "--bind", "127.0.0.1", "--dir", this.#folder, ...this.#settings];
    const [program = "", ...args] = [...parentDeathSignal, this.#program.path, ...settings];
    const child = spawn(program, args, { stdio: "ignore", env: { ...process.env, ...this.#program.environment } });
    this.#process = child;
    running.add(child);
    child.once("exit", () => running.delete(child));
    const client = this.client(port);
    try {
      const end = performance.now() + READY_MS;
      while ((await client.ping().catch(() => undefined)) !== "PONG") {
        if (child.exitCode !== null) throw new Error(`redis-server ended with code ${child.exitCode}`);
        if (performance.now() > end) throw new Error(`redis-server did not answer within ${READY_MS} ms`);
        await delay(10);
      }
    } finally {
      client.disconnect();
    }
  }

  /** A connection for reading and tampering, which the test closes. */
  client(port = this.port): Redis {
    const client = new Redis(port, "127.0.0.1", {
      maxRetriesPerRequest: 0,
      retryStrategy: () => 20,
      ...(this.#password ? { password: this.#password } : {}),
    });
    client.on("error", () => undefined);
    return client;
  }

  /** As a crash: nothing more is written. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  freeze(): void {
    this.#process?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#process?.kill("SIGCONT");
  }

  /** All its log files. */
  stored(): string {
    const files = readdirSync(this.#folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
    return files.map((file) => readFileSync(join(file.parentPath, file.name), "latin1")).join("");
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Below the ports whose bus port, which is 10,000 higher, would be invalid. */
export async function freePort(): Promise<number> {
  for (;;) {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    await new Promise((resolve) => server.close(resolve));
    if (address !== null && typeof address === "object" && address.port < 55_000) return address.port;
  }
}
