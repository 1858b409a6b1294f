import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { repositoryRoot, sourceCondition } from "../../scripts/run-command.ts";
import { tokens } from "./served.ts";
import { fullAgents, type WorstRequest, worstRequests } from "./worst-bodies.ts";

/** The maximum processor time, in milliseconds, for which one request may block all others. */
const LONGEST_GAP_MS = 200;
/** Other work on the machine slows the same code down, so the best of this many attempts counts. */
const MOST_TRIES = 3;

interface Gap {
  readonly cpu: number;
}

/** The first message of the process. */
interface Opened {
  readonly url: string;
  readonly inspector: { readonly url: string; readonly token: string };
  /** Paths of all routes of the surfaces with a body, with their parameters in braces. */
  readonly routes: readonly string[];
}

/** A server in its own process, so that only its requests are measured. */
class WatchedServer {
  readonly #process: ChildProcess;
  #opened: Opened | undefined;
  #requests = 0;
  readonly #agents: Record<string, string> = {};

  constructor(path: string | undefined) {
    this.#process = fork(join(import.meta.dirname, "watched-server.ts"), path === undefined ? [] : [path], {
      execArgv: [`--conditions=${sourceCondition}`],
      cwd: repositoryRoot,
    });
  }

  async open(): Promise<void> {
    const [opened] = (await once(this.#process, "message")) as [Opened];
    this.#opened = opened;
    for (const [name, body] of Object.entries({ agent: () => '{"definition":"desk"}', ...fullAgents })) {
      const response = await this.#post("/api/agents", body(), {});
      this.#agents[name] = ((await response.json()) as { readonly agentId: string }).agentId;
    }
  }

  /** Paths of all routes with a body, with their parameters in braces. */
  get routes(): readonly string[] {
    return this.#opened?.routes ?? [];
  }

  close(): void {
    this.#process.disconnect();
  }

  /** Sends the request and returns the longest block of the event loop until the answer. */
  async gapOf({ path, body, before, headers }: WorstRequest): Promise<Gap> {
    this.#requests += 1;
    const names: Readonly<Record<string, string>> = {
      ...this.#agents,
      thread: `t${this.#requests}`,
      run: `r${this.#requests}`,
    };
    const filled = (text: string): string =>
      text.replaceAll(/\{(agent|full|long|idle|thread|run)\}/g, (_, name: string) => names[name] ?? "");
    const sent = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, filled(value)]));
    const url = filled(path);
    if (before !== undefined) await (await this.#post(url, filled(before()), sent)).text();
    const text = body && filled(body());
    await this.#longest();
    const response = text === undefined ? await this.#get(url) : await this.#post(url, text, sent);
    await response.text();
    return await this.#longest();
  }

  async #longest(): Promise<Gap> {
    this.#process.send({});
    const [{ longest }] = (await once(this.#process, "message")) as [{ readonly longest: Gap }];
    return longest;
  }

  async #get(path: string): Promise<Response> {
    const { url, token } = this.#at(path);
    return await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  }

  async #post(path: string, body: string, headers: WorstRequest["headers"]): Promise<Response> {
    const { url, token } = this.#at(path);
    const own = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    return await fetch(url, { method: "POST", headers: { ...own, ...headers }, body });
  }

  #at(path: string): { readonly url: string; readonly token: string } {
    if (!this.#opened) throw new Error("open() comes first");
    const { url, inspector } = this.#opened;
    const below = path.replace(/^inspector:/, "");
    return below === path ? { url: url + path, token: tokens.ann } : { ...inspector, url: inspector.url + below };
  }
}

/** Whether a path matches a route with parameters in braces. */
function isOf(path: string, route: string): boolean {
  const parts = path.split("/");
  const wanted = route.split("/");
  return parts.length === wanted.length && wanted.every((part, at) => part.startsWith("{") || part === parts[at]);
}

describe.each(["memory", "SQLite"])("on %s no request blocks all others for long", (stores) => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-gap-"));
  const server = new WatchedServer(stores === "SQLite" ? join(folder, "troupe.db") : undefined);
  beforeAll(() => server.open());
  afterAll(() => {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it("are tried on every route with a body", () => {
    const tried = [...worstRequests()].map(({ path }) => path);
    const untried = server.routes.filter((route) => !tried.some((path) => isOf(path, route)));
    expect(untried).toEqual([]);
  });

  it.each([...worstRequests()])("$path, $shape", { timeout: 120_000 }, async (request) => {
    let least = Number.POSITIVE_INFINITY;
    for (let tries = 0; tries < MOST_TRIES && least > LONGEST_GAP_MS; tries += 1) {
      least = Math.min(least, (await server.gapOf(request)).cpu);
    }
    expect(least).toBeLessThan(LONGEST_GAP_MS);
  });
});
