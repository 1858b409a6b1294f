import { mkdtempSync, rmSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createRuntime, defineAgent, memoryStores, type Stores } from "../../src/index.ts";
import { Feed, type FeedServer, serveFeed, storeActor } from "../../src/inspector/index.ts";
import { redisStores } from "../../src/stores/redis.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { browserProgram, inBothSchemes, openBrowser, screenshot, type WatchedPage } from "../support/browser.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix } from "../support/redis-stores.ts";
import { startProgram } from "../support/waiting-process.ts";

const browser = openBrowser();
const tenant = "default";
const program = new URL("clerk-program.ts", import.meta.url).pathname;

interface TestStore {
  /** Arguments of the program. */
  readonly words: readonly string[];
  readonly open: () => Stores;
}

interface Clerk {
  readonly pid: number;
  readonly stores: Stores;
  readonly kill: () => void;
}

/** A clerk in a separate process, in the middle of its turn. */
async function clerkAt({ words, open }: TestStore, work: "thinking" | "asking"): Promise<Clerk> {
  const child = startProgram(program, [...words, work]);
  onTestFinished(() => child.kill());
  const pid = Number(await child.firstLine);
  const stores = open();
  onTestFinished(() => stores.close());
  return { pid, stores, kill: () => child.kill() };
}

async function opened(url: string): Promise<WatchedPage> {
  const page = await browser.newPage();
  await page.goto(url);
  await page.getByRole("treegrid", { name: "Agents" }).waitFor();
  return page;
}

async function pageOver(stores: Stores): Promise<WatchedPage> {
  const feed = new Feed({ run: "desk" });
  feed.add({ stores, tenant, actor: storeActor({ stores, tenant, by: "the page" }) });
  const server = await serveFeed(feed, { mayAct: true });
  onTestFinished(() => server.close());
  return await opened(server.url);
}

/** The duration of the run in seconds, as the page shows it. */
async function seconds(page: WatchedPage): Promise<number> {
  return Number.parseFloat((await page.locator(".scrub-time").textContent()) ?? "");
}

/** Accessibility faults in both schemes, and whether the page is too wide for a phone. */
async function serious(page: WatchedPage, name: string): Promise<readonly unknown[]> {
  const faults = (await inBothSchemes(page, name)).filter(
    ({ impact }) => impact === "serious" || impact === "critical",
  );
  await page.setViewportSize({ width: 390, height: 800 });
  await screenshot(page, `${name}-narrow`);
  const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
  await page.setViewportSize({ width: 1_280, height: 800 });
  return overflow > 0 ? [...faults, { overflow }] : faults;
}

/** Resolves this many seconds after a time. */
async function passed(since: number, wanted: number): Promise<void> {
  await expect.poll(() => Date.now() - since, { timeout: 20_000 }).toBeGreaterThan(wanted * 1_000);
}

const kinds = redisProgram ? (["sqlite", "redis"] as const) : (["sqlite"] as const);

describe.skipIf(!browserProgram)("failures", () => {
  let redis: RedisServer | undefined;
  const folder = mkdtempSync(join(tmpdir(), "troupe-failures-"));
  beforeAll(async () => {
    if (redisProgram) redis = await RedisServer.start();
  });
  afterAll(async () => {
    await redis?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  function storeLocation(kind: "sqlite" | "redis", server = redis): TestStore {
    if (kind === "redis" && server) {
      const { url } = server;
      const prefix = ownPrefix();
      return { words: ["redis", url, prefix], open: () => redisStores({ url, prefix }) };
    }
    const path = join(folder, `${ownPrefix().slice(0, -1)}.db`);
    return { words: ["sqlite", path], open: () => sqliteStores(path) };
  }

  test.each(kinds)("a killed process: its agents are shown as interrupted, and their clock stops, %s", async (kind) => {
    const { pid, stores, kill } = await clerkAt(storeLocation(kind), "thinking");
    const page = await pageOver(stores);
    await page.locator(".agent-head .pill.thinking").waitFor();
    await page.getByText(`run by process ${pid}`).waitFor();
    const { createdAt = 0 } = (await stores.readAgent({ tenant, agentId: "desk" })) ?? {};
    await page.getByRole("link", { name: `process ${pid}` }).click();
    const worker = page.getByRole("row").filter({ hasText: String(pid) });
    await worker.getByText("alive").waitFor();
    expect(await worker.textContent()).toContain(hostname());
    expect(await serious(page, `failures-workers-${kind}`)).toEqual([]);
    await worker.getByRole("link", { name: "clerk desk" }).click();
    await page.locator(".agent-head .pill.thinking").waitFor();
    const killedAt = Date.now();
    kill();
    const banner = page.getByRole("alert").filter({ hasText: `1 agent interrupted: process ${pid} is dead.` });
    await banner.waitFor({ timeout: 5_000 });
    await page.locator(".agent-head .pill.lost").waitFor();
    expect(await page.getByText("run by process").count()).toBe(0);
    expect(await page.locator(".run-figures").textContent()).not.toContain("busy");
    await passed(killedAt, 3);
    expect(await seconds(page)).toBeLessThanOrEqual((killedAt - createdAt) / 1_000 + 0.3);
    expect(await serious(page, `failures-dead-${kind}`)).toEqual([]);
    await page.getByRole("link", { name: "troupe" }).click();
    await page.locator(".run-table .pill.lost").getByText("interrupted").waitFor();
    await page.getByRole("link", { name: "Workers" }).click();
    await worker.getByText("dead").waitFor();
    await worker.getByRole("link", { name: "clerk desk" }).click();
    await banner.waitFor();
    // Another process takes it over.
    const definition = defineAgent({ name: "clerk", model: scriptedModel("Done by another one.") });
    const runtime = await createRuntime({ agents: [definition], stores });
    onTestFinished(() => runtime.shutdown());
    await page.locator(".agent-head .pill.done").waitFor();
    expect(await banner.count()).toBe(0);
  });

  test.skipIf(!redisProgram)(
    "a store that does not answer is reported within 5 seconds, and the clock stops",
    async () => {
      const server = await RedisServer.start();
      onTestFinished(() => server.stop());
      const { stores } = await clerkAt(storeLocation("redis", server), "thinking");
      const page = await pageOver(stores);
      await page.locator(".link-mark.open").waitFor();
      await expect.poll(() => seconds(page), { timeout: 10_000 }).toBeGreaterThan(1);
      const killedAt = Date.now();
      await server.kill();
      const banner = page.getByRole("alert").filter({ hasText: "The store has not answered since" });
      await banner.waitFor({ timeout: 5_000 });
      await page.locator(".link-mark.cut").getByText("store does not answer").waitFor();
      expect(await page.locator("button.live.on").count()).toBe(0);
      const then = await seconds(page);
      await passed(killedAt, 6);
      expect(await seconds(page)).toBe(then);
      expect(await serious(page, "failures-store")).toEqual([]);
      await server.launch();
      await page.locator(".link-mark.open").waitFor();
      expect(await banner.count()).toBe(0);
      await expect.poll(() => seconds(page), { timeout: 10_000 }).toBeGreaterThan(then);
      // The browser logs the failed response of the server.
      await page.context().close();
      page.errors.length = 0;
    },
  );

  test.each(kinds)(
    "an approved card disappears immediately, before its agent has received the decision, %s",
    async (kind) => {
      const { pid, stores } = await clerkAt(storeLocation(kind), "asking");
      const [page, other] = [await pageOver(stores), await pageOver(stores)];
      for (const one of [page, other]) {
        await one.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Requests" }).click();
        await one.getByRole("button", { name: "Approve …", exact: true }).waitFor();
      }
      process.kill(pid, "SIGSTOP");
      await page.getByRole("button", { name: "Approve …", exact: true }).click();
      const answered = page.waitForResponse(/decision$/);
      await page.getByRole("button", { name: "Run pay with these arguments" }).click();
      await answered;
      await page.getByText("approved by the page").waitFor({ timeout: 1_000 });
      await other.getByText("approved by the page").waitFor({ timeout: 3_000 });
      for (const one of [page, other])
        expect(await one.getByRole("button", { name: /^Approve|^Run pay/ }).count()).toBe(0);
      process.kill(pid, "SIGCONT");
      await page.locator(".agent-head .pill.done").waitFor();
    },
  );

  test("a restarted server: an open page reports that its token is no longer valid", async () => {
    const stores = memoryStores();
    const runtime = await createRuntime({
      agents: [defineAgent({ name: "clerk", model: scriptedModel("Noted.") })],
      stores,
    });
    onTestFinished(() => runtime.shutdown());
    const agent = await runtime.agent("clerk", { agentId: "desk" });
    await agent.start();
    await agent.executeTurn("Note it.").result;
    const feed = new Feed({ run: "desk" });
    feed.add({ stores, tenant, runtime });
    const servers: FeedServer[] = [await serveFeed(feed)];
    onTestFinished(() => servers.at(-1)?.close());
    const page = await opened(servers[0]?.url ?? "");
    await servers[0]?.close();
    await page.getByRole("alert").getByText("Trying again").waitFor();
    servers.push(await serveFeed(feed, { port: Number(new URL(servers[0]?.origin ?? "").port) }));
    const banner = page.getByRole("alert").filter({ hasText: "no longer valid. Open the address" });
    await banner.waitFor();
    expect(await banner.textContent()).not.toContain("Trying again");
    await page.locator(".link-mark.cut").getByText("not connected").waitFor();
    await screenshot(page, "failures-token");
    // The browser logs each refused connection.
    await page.context().close();
    page.errors.length = 0;
  });
});
