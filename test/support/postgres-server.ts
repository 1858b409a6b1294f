import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import { findPostgres, type PostgresProgram } from "./postgres-program.ts";
import { freePort } from "./redis-server.ts";

/** The Postgres of these tests; `undefined` if they must be skipped. */
export const postgresProgram: PostgresProgram | undefined = await findPostgres();

export interface PostgresServerOptions {
  /** Additional settings: `{ max_connections: "20" }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The parent of the server's folder, which any user may enter. Default: in memory, if the system has such a folder. */
  readonly folder?: string;
}

const READY_MS = 30_000;
const USER = "troupe";
/** In memory if the system has such a folder: its files survive a kill of the server, and nothing waits for a disk. */
const place = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
/** The user and group 65534 of Debian, because Postgres refuses to run as root. */
const unprivileged = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined;
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** A Postgres server for one test, on a free loopback port, with its own folder. */
export class PostgresServer {
  readonly port: number;
  readonly #folder: string;
  readonly #program: PostgresProgram;
  readonly #settings: Readonly<Record<string, string>>;
  #process: ChildProcess | undefined;

  private constructor(
    port: number,
    program: PostgresProgram,
    { settings = {}, folder }: PostgresServerOptions & { readonly folder: string },
  ) {
    this.port = port;
    this.#program = program;
    this.#settings = settings;
    this.#folder = folder;
  }

  /** A server that another process has started, and stops. */
  static at(port: number): PostgresServer {
    return new PostgresServer(port, { folder: "", environment: {} }, { folder: "" });
  }

  static async start(options: PostgresServerOptions = {}): Promise<PostgresServer> {
    if (!postgresProgram) throw new Error("Postgres is not available; the test should have been skipped");
    for (let attempt = 1; ; attempt += 1) {
      const folder = mkdtempSync(join(options.folder ?? place, "troupe-postgres-server-"));
      if (unprivileged) chownSync(folder, unprivileged.uid, unprivileged.gid);
      const server = new PostgresServer(await freePort(), postgresProgram, { ...options, folder });
      try {
        server.#create();
        await server.launch();
        return server;
      } catch (error) {
        await server.stop();
        // Another process may have taken the port in between.
        if (attempt === 3) throw error;
      }
    }
  }

  get url(): string {
    return `postgres://${USER}@127.0.0.1:${this.port}/postgres`;
  }

  /** Starts the process, also again after `kill`, and waits until it answers. */
  async launch(): Promise<void> {
    for (const end = performance.now() + READY_MS; ; ) {
      const child = this.#spawn();
      while (child.exitCode === null && performance.now() < end) {
        if (await this.answers()) return;
        await delay(20);
      }
      // After a kill, other processes of the server may still have its memory; then a new one ends at once.
      if (child.exitCode === null || performance.now() > end) {
        throw new Error(`postgres did not answer within ${READY_MS} ms; it ended with code ${child.exitCode}`);
      }
      await delay(50);
    }
  }

  /** A connection for reading and tampering, which the test ends. */
  async client(): Promise<Client> {
    const client = new Client({ connectionString: this.url });
    client.on("error", () => undefined);
    await client.connect();
    return client;
  }

  /** Runs one statement on a connection of its own. */
  async query(text: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
    const client = await this.client();
    try {
      const { rows } = await client.query<Record<string, unknown>>(text, [...values]);
      return rows;
    } finally {
      await client.end();
    }
  }

  /** As a crash: connections break, and what was not acknowledged may be lost. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** As an operator stops it: running statements fail. */
  async shutDown(): Promise<void> {
    await this.#end("SIGINT");
  }

  /** All its files with data, and its log. */
  stored(): string {
    const files = ["base", "pg_wal"].flatMap((name) => {
      const folder = join(this.#folder, "data", name);
      return readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
    });
    return files.map((file) => readFileSync(join(file.parentPath, file.name), "latin1")).join("");
  }

  async stop(): Promise<void> {
    await this.#end("SIGQUIT");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #spawn(): ChildProcess {
    const settings = {
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      max_connections: "200",
      shared_buffers: "32MB",
      ...this.#settings,
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const child = spawn(
      join(this.#program.folder, "postgres"),
      ["-D", join(this.#folder, "data"), "-p", String(this.port), ...options],
      { stdio: "ignore", env: this.#environment(), cwd: this.#folder, ...unprivileged },
    );
    this.#process = child;
    running.add(child);
    child.once("exit", () => running.delete(child));
    return child;
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await ended;
  }

  #create(): void {
    const args = ["-D", join(this.#folder, "data"), "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
    const { status, stderr } = spawnSync(join(this.#program.folder, "initdb"), [...args, "--wal-segsize=1"], {
      env: this.#environment(),
      cwd: this.#folder,
      encoding: "utf8",
      ...unprivileged,
    });
    if (status !== 0) throw new Error(`initdb ended with code ${status}: ${stderr}`);
  }

  async answers(): Promise<boolean> {
    try {
      return (await this.query("SELECT 1 AS one")).length === 1;
    } catch {
      return false;
    }
  }

  #environment(): NodeJS.ProcessEnv {
    return { PATH: process.env["PATH"], LC_ALL: "C", HOME: this.#folder, ...this.#program.environment };
  }
}
