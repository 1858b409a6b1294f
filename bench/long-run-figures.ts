/**
 * `node --conditions=troupe-source bench/long-run-figures.ts [FILE]`: opens a run of a million events with `troupe inspect`
 * in a separate process and views it in a real browser. Prints, line by line: wall-clock milliseconds, processor time of
 * the server and of the page's main thread, and the memory of both. Creates FILE if it does not exist.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium, type Page } from "playwright-core";
import type { SearchPage } from "../src/inspector/index.ts";
import { findBrowser } from "../test/support/browser-program.ts";
import { writeLongRun } from "./ours/long-run.ts";
import { join } from "node:path";
import { temporaryFolder } from "./temporary-folder.ts";

const longest = { timeout: 600_000 };
const temporary = process.argv[2] === undefined ? temporaryFolder() : undefined;
const file = process.argv[2] ?? join(temporary?.folder ?? "", "long.db");
if (!existsSync(file)) await writeLongRun(file);

const main = fileURLToPath(new URL("../src/cli/main.ts", import.meta.url));
const server = fork(main, ["inspect", "desk", "--read-only", "--store", file], {
  stdio: ["ignore", "pipe", "inherit", "ipc"],
});
if (server.stdout === null) throw new Error("The inspector has no standard output.");
const [line] = (await once(createInterface({ input: server.stdout }), "line")) as [string];
const { origin, hash } = new URL(line.slice(line.lastIndexOf("http://")));
const token = hash.slice("#token=".length);

/** The server's processor time so far in milliseconds and its memory in megabytes. Linux only. */
function serverNow(): { readonly processor: number; readonly megabytes: number } {
  const [user = 0, system = 0] = (readFileSync(`/proc/${server.pid}/stat`, "utf8").split(") ")[1] ?? "")
    .split(" ")
    .slice(11, 13)
    .map(Number);
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8")) ?? [];
  return { processor: (user + system) * 10, megabytes: Math.round(Number(kilobytes) / 1_000) };
}

const program = await findBrowser();
if (!program) process.exit(1);
const browser = await chromium.launch({
  executablePath: program.path,
  chromiumSandbox: false,
  args: ["--disable-gpu"],
  env: { ...process.env, ...program.environment },
});
const page: Page = await browser.newPage({ viewport: { width: 1_400, height: 860 } });
const client = await page.context().newCDPSession(page);
await client.send("Performance.enable");

async function pageProcessor(): Promise<number> {
  const { metrics } = await client.send("Performance.getMetrics");
  return Math.round((metrics.find(({ name }) => name === "ThreadTime")?.value ?? 0) * 1_000);
}

/** Runs an action and prints its cost. */
async function measured(what: string, act: () => Promise<unknown>): Promise<void> {
  const before = { at: performance.now(), server: serverNow().processor, page: await pageProcessor() };
  await act();
  const elapsed = Math.round(performance.now() - before.at);
  const { processor, megabytes } = serverNow();
  const ofPage = (await pageProcessor()) - before.page;
  await client.send("HeapProfiler.collectGarbage");
  const heap = Math.round((await client.send("Runtime.getHeapUsage")).usedSize / 1e6);
  const figures = {
    elapsed,
    server: processor - before.server,
    page: ofPage,
    serverMegabytes: megabytes,
    pageHeap: heap,
  };
  console.log(JSON.stringify({ what, ...figures }));
}

async function searched(text: string): Promise<number> {
  let hits = 0;
  for (let after: number | null = 0; after !== null; ) {
    const address = `${origin}/api/runs/desk/search?text=${encodeURIComponent(text)}&after=${after}`;
    const answer = await fetch(address, { headers: { authorization: `Bearer ${token}` } });
    const found = (await answer.json()) as SearchPage;
    hits += found.hits.length;
    after = found.next;
  }
  return hits;
}

const connected = (): Promise<void> => page.getByText("connected").waitFor(longest);
await measured("first sight", async () => {
  await page.goto(`${origin}/#token=${token}&/run/desk?view=events`);
  await page.locator(".scrub-count").waitFor(longest);
});
await measured("all of it read", connected);
console.log(await page.locator(".scrub-count").textContent(), await page.locator(".cut-off").textContent());
await measured("earlier events", async () => {
  await page.getByRole("button", { name: "Earlier events" }).click();
  await page.getByRole("button", { name: "Later events" }).waitFor(longest);
});
await measured("a moment at the start", async () => {
  await page.goto(`${origin}/#/run/desk?view=timeline&at=5000`);
  await page.getByText(/^Events 1 to/).waitFor(longest);
});
await measured("newest events", async () => {
  await page.getByRole("button", { name: "Newest events" }).click();
  await connected();
});
await measured("a search through everything", () => searched("nowhere to be found"));
await browser.close();
server.kill("SIGTERM");
temporary?.remove();
