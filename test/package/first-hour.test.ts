// docs/first-hour.md as its reader follows it: every command is typed, every file is written, in order, in one project of the built package.
// `TROUPE_TIMES=1` prints how long the machine takes for each step.
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { commandEnvironment, repositoryRoot, runCommand } from "../../scripts/run-command.ts";
import { blocksOf, type DocumentBlock } from "../support/document-blocks.ts";

const page = "docs/first-hour.md";
const markdown = readFileSync(join(repositoryRoot, page), "utf8");

interface Step {
  readonly title: string;
  readonly blocks: readonly DocumentBlock[];
}

/** The blocks below each heading with a number. */
const steps: readonly Step[] = markdown
  .split(/^## /m)
  .filter((section) => /^\d+\. /.test(section))
  .map((section) => ({ title: section.split("\n", 1)[0] ?? "", blocks: blocksOf(page, section) }));

// Inside the repository, where the project finds zod, vitest and the other packages that `npm install` would install.
mkdirSync(join(repositoryRoot, ".troupe"), { recursive: true });
const folder = mkdtempSync(join(repositoryRoot, ".troupe", "first-hour-"));
const installed = join(folder, "package");
const main = join(installed, "dist", "cli", "main.js");
const quiet = {
  NODE_OPTIONS: "",
  OPENAI_API_KEY: "",
  OPENAI_BASE_URL: "",
  TROUPE_REDIS: "",
  CI: "",
  npm_lifecycle_event: "",
  npm_config_update_notifier: "false",
} as const;

let directory = folder;
let port = 0;
/** The program in the reader's first terminal: `troupe dev` or a server. */
let open: Program | undefined;
/** Where the reader looks for what the page shows: at the open program, or at the output of the last command. */
let looked: { said(text: string): Promise<void> } | undefined;
/** Whether a file was saved that the open program has not reloaded yet. */
let isSaved = false;

beforeAll(async () => {
  const built = await runCommand("node", ["scripts/build.ts", "--code", "--to", installed]);
  if (!built.ok) throw new Error(built.output);
  chmodSync(main, 0o755);
  const server = createServer();
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  ({ port } = server.address() as AddressInfo);
  await new Promise<void>((resolve) => void server.close(() => resolve()));
});

afterAll(async () => {
  await open?.kill();
  rmSync(folder, { recursive: true, force: true });
});

/** A program that runs while the reader does something else. Its input and output look like a terminal. */
class Program {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #listener: (() => void) | undefined;
  /** What it has written, after the place up to which it was read. */
  #unread = "";

  constructor(command: string) {
    const terminal = "for (const stream of [process.stdin, process.stdout]) stream.isTTY = true;";
    const environment = { ...quiet, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(terminal)}` };
    this.#child = spawn("bash", ["-c", command], {
      cwd: directory,
      env: commandEnvironment(environment),
      stdio: ["pipe", "pipe", "pipe"],
      // A group of its own: npm, a shell and the program end together.
      detached: true,
    });
    this.#child.stdin?.on("error", () => undefined);
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#unread += stripVTControlCharacters(text);
        this.#listener?.();
      });
    }
    this.#ended = new Promise((resolve) => void this.#child.once("close", resolve));
  }

  type(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }

  /** Waits for a text, and reads up to its end. */
  async said(text: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    this.#listener = () => {
      if (this.#unread.includes(text)) resolve(undefined);
    };
    this.#listener();
    void this.#ended.then(() => reject(new Error(`It ended before it said ${JSON.stringify(text)}.\n${this.#unread}`)));
    await promise;
    this.#unread = this.#unread.slice(this.#unread.indexOf(text) + text.length);
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.pid !== undefined) process.kill(-this.#child.pid, "SIGKILL");
    await this.#ended;
  }
}

async function play({ language, text }: DocumentBlock): Promise<void> {
  const played = text.replaceAll("8080", `${port}`);
  if (language === "ts") return write(played);
  for (const line of played.split("\n")) await (language === "text" ? converse(line) : type(line));
}

/** Writes the file that the first line of a block names. */
function write(text: string): void {
  const [, path] = /^\/\/ (\S+)\n/.exec(text) ?? [];
  if (path === undefined) throw new Error(`A block does not name its file:\n${text}`);
  writeFileSync(join(directory, path), `${text}\n`);
  isSaved = open !== undefined;
  if (isSaved) looked = open;
}

/** Types a line that begins with `> `, or waits for the line. */
async function converse(line: string): Promise<void> {
  const typed = /^> (.*)$/.exec(line)?.[1];
  if (typed === undefined) return await looked?.said(line);
  if (isSaved) await open?.said("Reloaded");
  isSaved = false;
  open?.type(typed);
  if (typed === "/exit") open = undefined;
}

async function type(line: string): Promise<void> {
  // The package is not published yet; `npm create` runs this, and `npm install` makes these links.
  if (line.startsWith("npm create troupe@latest ")) return await run(`node ${main} init ${line.split(" ").at(-1)}`);
  if (line.startsWith("cd ")) directory = join(directory, line.slice("cd ".length));
  else if (line === "npm install") install();
  else if (/^npm run dev\b|\btroupe serve\b/.test(line)) await start(line);
  else await run(line);
}

function install(): void {
  const bin = join(directory, "node_modules", ".bin");
  mkdirSync(bin, { recursive: true });
  symlinkSync(installed, join(directory, "node_modules", "troupe"));
  symlinkSync(main, join(bin, "troupe"));
}

async function start(command: string): Promise<void> {
  await open?.kill();
  open = new Program(command);
  looked = open;
  isSaved = false;
  await open.said(command.includes("serve") ? "Try:" : "Loaded");
}

async function run(command: string): Promise<void> {
  const { ok, output } = await runCommand("bash", ["-c", command], { directory, environment: quiet });
  expect(ok, `${command}\n${output}`).toBe(true);
  looked = { said: async (text) => expect(output, command).toContain(text) };
}

test("the table of the page has its steps, with times", () => {
  const rows = [...markdown.matchAll(/^\| \[(\d+\. [^\]]+)\]\(#[^)]+\) \| \d+ min \| [\d.]+ s \|$/gm)];
  expect(rows.map(([, title]) => title)).toEqual(steps.map(({ title }) => title));
  expect(steps.length).toBeGreaterThan(5);
});

test.each(steps)("$title", async ({ title, blocks }) => {
  const begun = performance.now();
  expect(blocks.length).toBeGreaterThan(0);
  for (const block of blocks) await play(block);
  if (process.env["TROUPE_TIMES"] === "1") {
    process.stdout.write(`${title}: ${((performance.now() - begun) / 1_000).toFixed(1)} s\n`);
  }
});
