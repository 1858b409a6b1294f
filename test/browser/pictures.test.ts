// The pictures of the inspector in the README and in docs: `npm run pictures` renders them and writes them to docs/pictures,
// with the hash of the page they show. The test of that hash fails if the page has changed since.
import { createHash } from "node:crypto";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { evalFilesSource } from "../../src/cli/eval/eval-files.ts";
import { reportJson } from "../../src/cli/eval/eval-report.ts";
import { createRuntime, defineAgent, defineTool, memoryStores, run, type Runtime } from "../../src/index.ts";
import { Feed, type FeedServer, runtimeActor, serveFeed } from "../../src/inspector/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { fork, type ScriptedModel, scriptedModel } from "../../src/testing/index.ts";
import { attempt, no, reportOf, yes } from "../cli/eval/reports.ts";
import { troupe } from "../cli/support/in-process.ts";
import { browserProgram, openBrowser, screenshot } from "../support/browser.ts";
import { combinedRows } from "../support/full.ts";
import { payTool } from "../support/pay-tool.ts";

const browser = openBrowser();
const folder = join(repositoryRoot, "docs", "pictures");
const pageFile = join(folder, "inspector-page.json");
const mostBytes = 180 * 1024;
const isWanted = process.env["TROUPE_PICTURES"] === "1";
const views = [
  ["timeline", "light"],
  ["timeline", "dark"],
  ["summary", "light"],
  ["chart", "light"],
  ["messages", "light"],
  ["messages", "dark"],
  ["budgets", "light"],
  ["requests", "light"],
  ["forks", "light"],
  ["compare", "light"],
  ["evals", "light"],
] as const;
type View = (typeof views)[number][0];
type Scene = "job" | "clerk" | "desk" | "evals";

/** The hash of the page's script and style, as the browser receives them. */
function pageHash(): string {
  const hash = createHash("sha256");
  for (const name of ["app.js", "app.css"]) {
    hash.update(readFileSync(join(repositoryRoot, "src", "inspector", "assets", name)));
  }
  return hash.digest("hex");
}

function inspectorPictures(text: string): string[] {
  return [...text.matchAll(/pictures\/(inspector-[\w-]+)\.png/g)].map(([, name]) => name as string);
}

describe.skipIf(isWanted)("the pictures in docs/pictures", () => {
  it("show the current page", () => {
    const { page } = JSON.parse(readFileSync(pageFile, "utf8")) as { page: string };
    expect(page, "the page has changed since its pictures were taken; take them again: npm run pictures").toBe(
      pageHash(),
    );
  });

  it("are those that the README and docs show", () => {
    const docs = join(repositoryRoot, "docs");
    const guides = readdirSync(docs).flatMap((name) => (name.endsWith(".md") ? [join(docs, name)] : []));
    const shown = [join(repositoryRoot, "README.md"), ...guides].flatMap((file) =>
      inspectorPictures(readFileSync(file, "utf8")),
    );
    const listed = views.map(([view, colorScheme]) => `inspector-${view}-${colorScheme}`);
    const kept = readdirSync(folder).flatMap((name) => /^(inspector-.*)\.png$/.exec(name)?.[1] ?? []);
    expect(new Set(shown)).toEqual(new Set(listed));
    expect(new Set(kept)).toEqual(new Set(listed));
  });
});

/** The main job as it is stored after its end. */
async function mainJob(
  folderOfJob: string,
): Promise<{ readonly stores: Stores; readonly feed: Feed; readonly runId: string }> {
  const store = join(folderOfJob, "jobs.db");
  // As slow as a remote model, so that the pictures show realistic times.
  const pace = isWanted ? { TROUPE_OFFLINE_SPEED: "80" } : {};
  const { code, notes } = await troupe(["ask", "--model", "offline", "--quiet", "--store", store], pace);
  if (code !== 0) throw new Error(notes.join("\n"));
  const stores = sqliteStores(store);
  const feed = new Feed();
  feed.add({ stores, tenant: "default" });
  const runId = (await feed.runs({})).items[0]?.runId ?? "";
  return { stores, feed, runId };
}

/** A clerk whose payments wait for a person. */
async function waitingClerk(): Promise<{ readonly runtime: Runtime; readonly feed: Feed; readonly runId: string }> {
  const payments = [
    { to: "ACME Paper", euros: 60 },
    { to: "Bolt Supplies", euros: 1_250 },
  ];
  const said = "Two invoices are **due today**; both are within the budget of the month.";
  const toolCalls = payments.map((payment) => ({ name: "pay", arguments: payment }));
  const model = scriptedModel([{ text: said, toolCalls }, "Both are paid."]);
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", model, tools: [payTool] })], stores });
  const clerk = await runtime.agent("clerk", { agentId: "month-end" });
  await clerk.start();
  const turn = clerk.executeTurn("Pay what is due today.");
  turn.result.catch(() => undefined);
  let open = 0;
  for await (const event of turn) {
    if (event.type === "request.opened") open += 1;
    if (open === payments.length) break;
  }
  const feed = new Feed();
  feed.add({ stores, tenant: "default", runtime, actor: runtimeActor(runtime, "Ada") });
  return { runtime, feed, runId: clerk.agentId };
}

/** A report in which a case has become worse, with the stored run of its first failure. */
async function evalReport(folderOfReport: string): Promise<{ readonly stores: Stores; readonly feed: Feed }> {
  const failures = [
    "expected the calls look_up_order, refund\n  the agent called look_up_order\n  1. look_up_order { order: 1742 }\n  answer: There is nothing to refund.",
    "the run cost $0.0121, more than $0.0100",
  ];
  const passes = (list: readonly boolean[]) =>
    list.map((passed, index) =>
      attempt(index + 1, passed, {
        failure: passed ? null : (failures[index] ?? failures[0] ?? ""),
        cost: 0.0024 + index / 5_000,
        tokens: 1_840 + 61 * index,
        durationMs: 2_300 + 90 * index,
        agents: [{ kind: "case", agentId: `case_refund-${index + 1}`, agentName: "support" }],
      }),
    );
  const written = (name: string, cases: Readonly<Record<string, readonly boolean[]>>): string => {
    const path = join(folderOfReport, name);
    const report = reportOf({}, { createdAt: Date.UTC(2026, 10, name === "now.json" ? 28 : 21, 9) });
    for (const [title, list] of Object.entries(cases)) {
      report.cases.push({ file: "evals/refunds.eval.ts", name: title, attempts: passes(list) });
    }
    writeFileSync(path, reportJson(report));
    return path;
  };
  const before = written("before.json", { "refunds a broken order": yes, "asks for the order": yes, "is polite": yes });
  const file = written("now.json", {
    "refunds a broken order": no,
    "asks for the order": [true, true, false, true, true],
    "is polite": yes,
    "answers in the language of the customer": yes,
  });
  const stores = memoryStores();
  await run(
    defineAgent({ name: "support", model: scriptedModel("There is nothing to refund.") }),
    "Order 1742 is broken.",
    {
      agentId: "case_refund-3",
      stores: { ...stores, close: async () => {} },
    },
  );
  const feed = new Feed({ evals: await evalFilesSource({ file, before }) });
  feed.add({ stores, tenant: "default" });
  return { stores, feed };
}

function supportModel(name: string): ScriptedModel {
  return scriptedModel(
    ({ messages }, { call }) => {
      const isPaid = JSON.stringify(messages).includes("never paid");
      if (call?.step === 1) return { toolCalls: [{ name: "look_up_order", arguments: { order: "1742" } }] };
      if (isPaid) return "Order 1742 was never paid, so there is nothing to refund. May I send a new invoice?";
      if (call?.step === 2) return { toolCalls: [{ name: "refund", arguments: { order: "1742" } }] };
      return "Your $40 for order 1742 are on their way.";
    },
    { name },
  );
}

/** A support desk whose turn was forked with another result of a tool. */
async function forkedDesk(): Promise<{
  readonly runtime: Runtime;
  readonly feed: Feed;
  readonly runId: string;
  readonly forkId: string;
}> {
  const named = z.object({ order: z.string() });
  const look = defineTool({
    name: "look_up_order",
    description: "Looks up an order.",
    parameters: named,
    effect: "none",
    execute: () => ({ state: "arrived broken", paid: 40 }),
  });
  const refund = defineTool({
    name: "refund",
    description: "Pays the money back.",
    parameters: named,
    effect: "once",
    execute: () => "Refunded $40.",
  });
  const tools = [look, refund];
  const price = { inputPerMillion: 2, outputPerMillion: 10 };
  const instructions = "You serve the customers of a shop. Be friendly and brief.";
  const desk = defineAgent({ name: "support", instructions, price, tools, model: supportModel("gpt-5-mini") });
  const careful = defineAgent({ name: "careful", price, tools, model: supportModel("gpt-5") });
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [desk, careful], stores });
  const agent = await runtime.agent("support", { agentId: "customer-4" });
  await agent.start();
  await agent.executeTurn("Order 1742 arrived broken. I want my money back.").result;
  const edit = { messages: { "customer-4#1:1:0": '{"state":"never paid","paid":0}' } };
  const made = await fork(
    { stores, agentId: agent.agentId },
    { at: { turn: 1, step: 2 }, runtime, model: supportModel("gpt-5"), edit },
  );
  await made.turn.result;
  const feed = new Feed();
  feed.add({ stores, tenant: "default", runtime, actor: runtimeActor(runtime, "Ada") });
  return { runtime, feed, runId: agent.agentId, forkId: made.agentId };
}

describe.skipIf(!browserProgram)("a picture of each main view", () => {
  const scratch = mkdtempSync(join(tmpdir(), "troupe-pictures-"));
  const taken = new Set<string>();
  const closings: (() => Promise<unknown>)[] = [];
  let forkId = "";
  let servers: Readonly<Record<Scene, { readonly server: FeedServer; readonly runId: string }>>;
  beforeAll(async () => {
    const [job, clerk, desk, evals] = await Promise.all([
      mainJob(scratch),
      waitingClerk(),
      forkedDesk(),
      evalReport(scratch),
    ]);
    ({ forkId } = desk);
    closings.push(
      () => job.stores.close(),
      () => clerk.runtime.shutdown(),
      () => desk.runtime.shutdown(),
    );
    const [ofJob, ofClerk] = [await serveFeed(job.feed), await serveFeed(clerk.feed, { mayAct: true })];
    const ofDesk = await serveFeed(desk.feed, { mayAct: true });
    const ofEvals = await serveFeed(evals.feed);
    closings.unshift(
      () => ofJob.close(),
      () => ofClerk.close(),
      () => ofDesk.close(),
      () => ofEvals.close(),
    );
    servers = {
      job: { server: ofJob, runId: job.runId },
      clerk: { server: ofClerk, runId: clerk.runId },
      desk: { server: ofDesk, runId: desk.runId },
      evals: { server: ofEvals, runId: "case_refund-3" },
    };
  });
  afterAll(async () => {
    for (const close of closings) await close();
    rmSync(scratch, { recursive: true, force: true });
  });

  it.each(isWanted ? views : combinedRows(views))("%s, %s", async (view, colorScheme) => {
    const { server, runId } = servers[sceneOf(view)];
    const page = await browser.newPage({ colorScheme, viewport: { width: 1_280, height: heightOf(view) } });
    await page.goto(server.url);
    if (view === "evals") {
      await page.getByRole("button", { name: "asks for the order" }).click();
      await page.getByRole("table", { name: "Runs of the case" }).waitFor();
    } else await page.getByText(runId.slice(-6)).first().waitFor();
    if (view === "compare") {
      await page.goto(`${server.origin}/#/compare/${runId}/${forkId}`);
      await page.getByRole("table", { name: "Since the fork" }).waitFor();
      await page.locator(".compared-steps").getByText("never paid").first().waitFor();
    } else if (view !== "evals") {
      await page.goto(`${server.origin}/#/run/${runId}?agent=${runId}&view=${view}&fork=1:2`);
      const shown = { job: "reader", clerk: "clerk", desk: "support", evals: "" }[sceneOf(view)];
      await page.getByRole("treegrid").getByText(shown).first().waitFor();
    }
    if (view === "forks") await page.getByLabel("Result of look_up_order").waitFor();
    if (view === "messages") {
      await page.getByRole("button", { name: "Prompts as sent" }).click();
      await page.getByText("exact", { exact: true }).first().waitFor();
    }
    if (view === "requests") await page.getByRole("button", { name: "Approve", exact: false }).first().waitFor();
    // Fonts and the canvas are drawn a frame or two after the data arrived.
    await page.waitForLoadState("networkidle");
    const name = `inspector-${view}-${colorScheme}`;
    const path = await screenshot(page, name);
    expect(statSync(path).size).toBeLessThan(mostBytes);
    if (!isWanted) return;
    mkdirSync(folder, { recursive: true });
    copyFileSync(path, join(folder, `${name}.png`));
    taken.add(name);
  });

  it.runIf(isWanted)("are all taken, so the hash of the page is saved with them", () => {
    expect(taken.size).toBe(views.length);
    writeFileSync(pageFile, `${JSON.stringify({ page: pageHash() }, null, 2)}\n`);
  });
});

function heightOf(view: View): number {
  if (view === "compare") return 620;
  return view === "chart" || view === "summary" || view === "forks" ? 900 : 680;
}

function sceneOf(view: View): Scene {
  if (view === "evals") return "evals";
  if (view === "requests") return "clerk";
  return view === "forks" || view === "compare" ? "desk" : "job";
}
