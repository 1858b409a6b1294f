/**
 * `node --conditions=troupe-source bench/page-figures.ts [CHILDREN]`: measures the inspector's page in a real browser and
 * prints JSON: first an exported run of 2,001 agents and 120,000 events, then a lead whose subagents work while the page is
 * open. Times are wall-clock milliseconds; `processor` is the processor time of the page's main thread.
 */
import { setTimeout as delay } from "node:timers/promises";
import { type Browser, chromium, type Page } from "playwright-core";
import type { createRuntime } from "../src/index.ts";
import { Feed, serveFeed } from "../src/inspector/index.ts";
import { findBrowser } from "../test/support/browser-program.ts";
import { largeRun, pageWith, servePages } from "../test/support/large-run.ts";
import { largeTurn } from "./ours/large-team.ts";

const children = Number(process.argv[2] ?? 2_000);
const viewport = { width: 1_400, height: 860 };

interface Watched {
  readonly page: Page;
  /** Milliseconds of processor time of the page's main thread so far. */
  readonly processor: () => Promise<number>;
  /** Tasks of more than 50 ms since the last call, the longest first. */
  readonly longTasks: () => Promise<readonly number[]>;
  readonly heapMegabytes: () => Promise<number>;
}

async function opened(browser: Browser): Promise<Watched> {
  const page = await browser.newPage({ viewport });
  const client = await page.context().newCDPSession(page);
  await client.send("Performance.enable");
  await page.addInitScript(`window.longTasks = []; new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.longTasks.push(duration);
  }).observe({ type: "longtask", buffered: true });`);
  return {
    page,
    async processor() {
      const { metrics } = await client.send("Performance.getMetrics");
      return (metrics.find(({ name }) => name === "ThreadTime")?.value ?? 0) * 1_000;
    },
    async longTasks() {
      const tasks = await page.evaluate<number[]>("window.longTasks.splice(0)");
      return tasks.map((ms) => Math.round(ms)).toSorted((one, other) => other - one);
    },
    async heapMegabytes() {
      await client.send("HeapProfiler.collectGarbage");
      return Math.round((await client.send("Runtime.getHeapUsage")).usedSize / 1e6);
    },
  };
}

/** Repeats an action, each time until the next frame is shown. */
async function acted({ page, processor, longTasks }: Watched, act: string, times = 40) {
  await longTasks();
  const before = await processor();
  const taken = await page.evaluate<number[]>(`(async () => {
    const frame = () => new Promise((shown) => requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => shown();
      channel.port2.postMessage(0);
    }));
    const act = ${act};
    const taken = [];
    for (let turn = 0; turn < ${times}; turn += 1) {
      const before = performance.now();
      act(turn);
      await frame();
      taken.push(performance.now() - before);
    }
    return taken;
  })()`);
  const each = ((await processor()) - before) / times;
  const sorted = taken.map((ms) => Math.round(ms)).toSorted((one, other) => one - other);
  const [p50, p95] = [sorted[times >> 1], sorted[Math.floor(times * 0.95)]];
  return { p50, p95, processor: Math.round(each * 10) / 10, longest: (await longTasks())[0] ?? 0 };
}

const scrub = `(turn) => document.querySelector(".track").dispatchEvent(
  new KeyboardEvent("keydown", { key: turn % 2 === 0 ? "Home" : "PageDown", bubbles: true }))`;
const jump = `(turn) => {
  const track = document.querySelector(".track");
  const { left, width, top } = track.getBoundingClientRect();
  track.setPointerCapture = () => {};
  const clientX = left + width * ((turn * 37 % 100) / 100);
  track.dispatchEvent(new PointerEvent("pointerdown", { clientX, clientY: top + 5, bubbles: true, pointerId: 1 }));
}`;
const scroll = `(turn) => { document.querySelector(".view .virtual").scrollTop -= 700 + turn; }`;
const filter = `(turn) => {
  const field = document.querySelector(".view input[type=search]");
  field.value = "look reader settled ~1f".slice(0, turn % 20);
  field.dispatchEvent(new Event("input", { bubbles: true }));
}`;

async function exportedRun(browser: Browser) {
  const { data, entries } = await largeRun();
  const server = await servePages({ "/": pageWith(data) });
  const watched = await opened(browser);
  const { page } = watched;
  const begun = performance.now();
  await page.goto(`${server.origin}/#/run/large?view=events`);
  await page.getByText(`/ ${entries.toLocaleString("en")}`).waitFor();
  const ready = Math.round(performance.now() - begun);
  const figures = {
    entries,
    ready,
    processor: Math.round(await watched.processor()),
    longest: (await watched.longTasks())[0] ?? 0,
    scrub: await acted(watched, scrub),
    jump: await acted(watched, jump),
  };
  await page.getByRole("button", { name: "Live" }).click();
  const more = { scroll: await acted(watched, scroll), filter: await acted(watched, filter, 20) };
  const elements = await page.evaluate<number>(`document.querySelectorAll("*").length`);
  const heapMegabytes = await watched.heapMegabytes();
  await page.close();
  server.close();
  return { ...figures, ...more, elements, heapMegabytes };
}

/** The page of a lead while its subagents work; their model takes 0.3 to 0.6 s per answer. */
async function liveRun(browser: Browser, view: string) {
  const feed = new Feed();
  const server = await serveFeed(feed);
  const watched = await opened(browser);
  const { page } = watched;
  await page.goto(server.url);
  await page.getByText("There is no run yet.").waitFor();
  const runtimes: Awaited<ReturnType<typeof createRuntime>>[] = [];
  await largeTurn(
    {},
    {
      children,
      answersAfterMs: () => 300 + Math.random() * 300,
      watch(runtime) {
        runtimes.push(runtime);
        feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
        void page.goto(`${server.origin}/#/run/desk?view=${view}`);
        return () => {};
      },
    },
  );
  const rows = (await runtimes[0]?.stores.readTree("default", "desk", 0, 1_000_000)) ?? [];
  const entries = rows.reduce((sum, row) => sum + row.entries.length, 0);
  const ended = performance.now();
  await page.getByText(`/ ${entries.toLocaleString("en")}`).waitFor({ timeout: 120_000 });
  const behind = Math.round(performance.now() - ended);
  const tasks = await watched.longTasks();
  const processor = Math.round(await watched.processor());
  await page.close();
  await server.close();
  return { view, entries, behind, processor, longest: tasks[0] ?? 0, tasksAbove50: tasks.length };
}

const program = await findBrowser();
if (!program) process.exit(1);
const browser = await chromium.launch({
  executablePath: program.path,
  chromiumSandbox: false,
  args: ["--disable-gpu"],
  env: { ...process.env, ...program.environment },
});
const exported = await exportedRun(browser);
await delay(500);
const live = [];
for (const view of ["timeline", "events", "budgets"]) live.push(await liveRun(browser, view));
await browser.close();
console.log(JSON.stringify({ exported, children, live }, null, 2));
