import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import {
  askUser,
  createRuntime,
  defineAgent,
  defineTool,
  type LanguageModel,
  memoryStores,
  type Runtime,
} from "../../src/index.ts";
import { Feed, runtimeActor, serveFeed } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { axe, browserProgram, openBrowser, screenshot, showView, type WatchedPage } from "../support/browser.ts";

const browser = openBrowser();

/** The arguments of the calls of `pay`. */
let paid: unknown[] = [];

const pay = defineTool({
  name: "pay",
  description: "Pays an invoice.",
  parameters: z.object({
    to: z.string().min(2).describe("Who gets the money."),
    euros: z.number().max(100),
    way: z.enum(["bank", "cash"]),
    isUrgent: z.boolean(),
    note: z.string().optional(),
    address: z.object({ town: z.string(), street: z.string().nullable() }),
    lines: z.array(z.object({ what: z.string(), euros: z.number().positive() })),
    more: z.record(z.string(), z.number()),
  }),
  effect: "once",
  needsApproval: true,
  execute: (input) => {
    paid.push(input);
    return `paid ${input.to}`;
  },
});

/** Needs a visit to a page before it runs. */
const visit = defineTool({
  name: "visit",
  description: "Needs a login.",
  parameters: z.object({ url: z.string() }),
  execute: ({ url }, run) => {
    if (run.answer === null) return run.ask({ kind: "auth", prompt: "Log in first.", arguments: { url } });
    paid.push(run.answer.verdict);
    return "visited";
  },
});

const payment = (to: string) => ({
  to,
  euros: 60,
  way: "bank",
  isUrgent: false,
  address: { town: "Ulm", street: null },
  lines: [{ what: "paper", euros: 60 }],
  more: { discount: 3 },
});

const calls = (...names: string[]) => names.map((to) => ({ name: "pay", arguments: payment(to) }));

/** The page over an agent with open requests. */
async function place(model: LanguageModel, count: number): Promise<{ runtime: Runtime; page: WatchedPage }> {
  paid = [];
  const stores = memoryStores();
  const clerk = defineAgent({ name: "clerk", tools: [pay, askUser(), visit], model });
  const runtime = await createRuntime({ agents: [clerk], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("clerk", { agentId: "desk" });
  await agent.start();
  const turn = agent.executeTurn("Close the month.");
  turn.result.catch(() => undefined);
  let open = 0;
  for await (const event of turn) {
    if (event.type === "request.opened") open += 1;
    if (open === count) break;
  }
  const feed = new Feed({ run: "desk" });
  feed.add({ stores, tenant: "default", runtime, actor: runtimeActor(runtime, "the page") });
  const server = await serveFeed(feed, { mayAct: true });
  onTestFinished(() => server.close());
  const page = await browser.newPage({ viewport: { width: 1_440, height: 900 } });
  await page.goto(`${server.url}&/run/desk?view=requests`);
  await page.getByRole("region", { name: "Requests" }).waitFor();
  return { runtime, page };
}

const secondsIn = async (page: WatchedPage): Promise<number> =>
  Number(/waits (\d+) s/.exec((await page.getByRole("article").first().textContent()) ?? "")?.[1] ?? Number.NaN);

describe.skipIf(!browserProgram)("requests", () => {
  test("show the model's preceding text and their waiting time, and are counted in the title of the page", async () => {
    const said = "The invoice is **due today**.";
    const { page, runtime } = await place(
      scriptedModel([{ text: said, toolCalls: calls("ACME", "Bolt") }, "Paid."]),
      2,
    );
    const group = page.getByRole("group", { name: "What the model said" }).first();
    await group.locator("b", { hasText: "due today" }).waitFor();
    await expect.poll(() => page.title()).toBe("(2) clerk · troupe");
    const icon = (): Promise<string> => page.evaluate("document.querySelector('link[rel=icon]').href");
    const marked = await icon();
    const first = await secondsIn(page);
    await expect.poll(() => secondsIn(page)).toBeGreaterThan(first);
    await screenshot(page, "requests-context");
    // At an earlier time the waiting time is that of then.
    await page.keyboard.press("[");
    await page.getByRole("status").filter({ hasText: "You look at" }).waitFor();
    const then = await page.locator("article.request .figures").last().textContent();
    const [one, other] = await runtime.requests();
    await runtime.decide(one?.requestId ?? "", { verdict: "approved", by: "Ada" });
    await expect.poll(() => page.title()).toBe("(1) clerk · troupe");
    expect(await page.locator(`article.request .figures`).allTextContents()).toContain(then);
    await runtime.decide(other?.requestId ?? "", { verdict: "rejected", by: "Ada" });
    await expect.poll(() => page.title()).toBe("clerk · troupe");
    expect(await icon()).not.toBe(marked);
    await page.keyboard.press("l");
    await page
      .getByText(/waited \d+ s/)
      .first()
      .waitFor();
  });

  test("that are questions offer their options as buttons", async () => {
    const question = { name: "ask_user", arguments: { question: "Which year?", options: ["2025", "2026"] } };
    const { page, runtime } = await place(scriptedModel([{ toolCalls: [question] }, "Noted."]), 1);
    const focused = page.locator(":focus");
    await page.getByRole("button", { name: "2026" }).waitFor();
    await screenshot(page, "requests-options");
    await page.keyboard.press("a");
    await expect.poll(() => focused.textContent()).toBe("2025");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await expect.poll(() => focused.textContent()).toBe("Answer “2026”");
    expect(await runtime.requests()).toHaveLength(1);
    await page.keyboard.press("Enter");
    await page.getByRole("group", { name: "Answer" }).getByText("2026").waitFor();
  });

  test("that need a visit link its page if that is safe to open, and continue when the person has been there", async () => {
    const urls = [
      "https://login.example.com/a?state=1",
      "http://127.0.0.1:4000/b",
      "http://login.example.com/",
      "javascript:1",
    ];
    const visits = urls.map((url) => ({ name: "visit", arguments: { url } }));
    const { page, runtime } = await place(scriptedModel([{ toolCalls: visits }, "Done."]), urls.length);
    const links = page.locator(".request-page a");
    await expect.poll(() => links.allTextContents()).toEqual(urls.slice(0, 2));
    for (const link of await links.all()) {
      expect(await link.getAttribute("rel")).toBe("noopener noreferrer");
      expect(await link.getAttribute("href")).toBe(await link.textContent());
    }
    await screenshot(page, "requests-visit");
    expect(await axe(page)).toEqual([]);
    await page.getByRole("button", { name: "Done …" }).first().click();
    expect(await runtime.requests()).toHaveLength(urls.length);
    await page.getByRole("button", { name: "Continue visit" }).click();
    await expect.poll(() => paid).toEqual(["provided"]);
  });

  test("are edited in a form from their schema, with errors next to the field", async () => {
    const { page } = await place(scriptedModel([{ toolCalls: calls("ACME") }, "Paid."]), 1);
    await page.getByRole("button", { name: "Edit and approve …" }).click();
    const field = (name: string) => page.getByRole("textbox", { name, exact: true });
    await expect.poll(() => page.locator(":focus").inputValue()).toBe("ACME");
    await page.getByText("Who gets the money.").waitFor();
    await field("euros").first().fill("250");
    await field("to").fill("B");
    await page.getByRole("button", { name: "+ lines 2" }).click();
    await field("what").last().fill("ink");
    await field("euros").last().fill("-1");
    await screenshot(page, "requests-form");
    const run = page.getByRole("button", { name: "Run pay with the edited arguments" });
    await run.click();
    await page.getByRole("alert").waitFor();
    // The browser logs the answer 400.
    page.errors.length = 0;
    for (const wrong of [field("to"), field("euros").first(), field("euros").last()]) {
      expect(await wrong.getAttribute("aria-invalid")).toBe("true");
      const id = (await wrong.getAttribute("aria-describedby")) ?? "";
      expect(await page.locator(`[id="${id}"]`).textContent()).not.toBe("");
    }
    expect(await field("what").last().getAttribute("aria-invalid")).toBe("false");
    await screenshot(page, "requests-form-wrong");
    expect((await axe(page)).filter(({ impact }) => impact !== "minor")).toEqual([]);
    expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
    await field("to").fill("Bolt");
    await field("euros").first().fill("99.5");
    await field("euros").last().fill("2");
    await page.getByRole("combobox", { name: "way" }).selectOption("cash");
    await page.getByRole("checkbox", { name: "isUrgent" }).check();
    await page.getByRole("button", { name: "+ note" }).click();
    await field("note").fill("thanks");
    await field("street").fill('"Main Street"');
    await field("more").fill("{");
    await page.getByText("This is not valid JSON yet.").waitFor();
    expect(await run.isDisabled()).toBe(true);
    await field("more").fill('{"discount":4}');
    await page.getByRole("button", { name: "Remove lines 1" }).click();
    expect(await field("what").inputValue()).toBe("ink");
    await run.click();
    await page.getByText("approved with other arguments by the page").waitFor();
    await expect
      .poll(() => paid)
      .toEqual([
        {
          ...payment("Bolt"),
          euros: 99.5,
          way: "cash",
          isUrgent: true,
          note: "thanks",
          address: { town: "Ulm", street: "Main Street" },
          lines: [{ what: "ink", euros: 2 }],
          more: { discount: 4 },
        },
      ]);
  });

  test("keep typed input while another view is open", async () => {
    const { page } = await place(scriptedModel([{ toolCalls: calls("ACME") }, "Paid."]), 1);
    const field = (name: string) => page.getByRole("textbox", { name, exact: true });
    const lookElsewhere = async (): Promise<void> => {
      await showView(page, "Timeline");
      await showView(page, "Requests");
    };
    await page.getByRole("button", { name: "Edit and approve …" }).click();
    await field("to").fill("Bolt");
    await field("more").fill("{");
    await page.getByText("This is not valid JSON yet.").waitFor();
    await lookElsewhere();
    await expect.poll(() => field("to").inputValue()).toBe("Bolt");
    // The invalid JSON is gone, and the button is enabled.
    expect(JSON.parse(await field("more").inputValue())).toEqual({ discount: 3 });
    const run = page.getByRole("button", { name: "Run pay with the edited arguments" });
    await expect.poll(() => run.isDisabled()).toBe(false);
    await page.getByRole("button", { name: "Edit as JSON" }).click();
    const json = page.getByRole("textbox", { name: "Arguments as JSON" });
    await json.fill(JSON.stringify(payment("Cito")));
    await lookElsewhere();
    await expect.poll(() => json.inputValue()).toBe(JSON.stringify(payment("Cito")));
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Reject …" }).click();
    await field("Reason, for the model").fill("not this month");
    await lookElsewhere();
    await page.getByRole("button", { name: "Reject pay" }).click();
    await page.getByText("rejected by the page").waitFor();
    await page.getByText("not this month").first().waitFor();
    expect(paid).toEqual([]);
  });

  test("of the same tool are approved together, each by its own decision, and those decided by another person are named", async () => {
    const { page, runtime } = await place(
      scriptedModel([{ toolCalls: calls("ACME", "Bolt", "Cord", "Dash") }, "Paid."]),
      4,
    );
    await page.getByRole("button", { name: "Approve all 4 of pay …" }).click();
    const box = page.getByRole("region", { name: "Approve all of pay" });
    await expect.poll(() => box.getByRole("listitem").count()).toBe(4);
    await expect.poll(() => page.locator(":focus").textContent()).toBe("Run pay 4 times with these arguments");
    await screenshot(page, "requests-alike");
    await page.keyboard.press("Escape");
    expect(await box.count()).toBe(0);
    expect(await runtime.requests()).toHaveLength(4);
    await page.getByRole("button", { name: "Approve all 4 of pay …" }).click();
    const open = await runtime.requests();
    const idOf = (to: string): string =>
      open.find(({ arguments: given }) => JSON.stringify(given).includes(to))?.requestId ?? "";
    // Ada decides one before the confirmation, and one while the decisions of the page are on their way.
    await runtime.decide(idOf("Bolt"), { verdict: "rejected", by: "Ada" });
    await box.getByText("rejected by Ada").waitFor();
    await page.route("**/decision", async (route) => {
      if (decodeURIComponent(route.request().url()).includes(idOf("Cord"))) {
        await runtime.decide(idOf("Cord"), { verdict: "rejected", by: "Ada" });
      }
      await route.continue();
    });
    await page.getByRole("button", { name: "Run pay 3 times with these arguments" }).click();
    const alert = box.getByRole("alert");
    await alert.getByText("2 of 4 requests approved. Your decision was not taken on:").waitFor();
    expect(await alert.getByRole("listitem").allTextContents()).toEqual([
      "clerk desk: rejected by Ada",
      "clerk desk: rejected by Ada",
    ]);
    // The browser logs the refused call.
    page.errors.length = 0;
    await screenshot(page, "requests-alike-missed");
    await expect.poll(() => paid).toEqual([payment("ACME"), payment("Dash")]);
    await page.getByRole("button", { name: "OK" }).click();
    expect(await box.count()).toBe(0);
  });
});
