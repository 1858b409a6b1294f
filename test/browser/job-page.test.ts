import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { allotment, question, workFolder } from "../e2e/cli-process.ts";
import { browserProgram, openBrowser, screenshot } from "../support/browser.ts";
import { startOnTerminal } from "../support/on-terminal.ts";

const browser = openBrowser();
const pageAddress = /^Inspect the agents at (\S+)$/m;

function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = workFolder(files);
  onTestFinished(() => folder.remove());
  return folder.path;
}

describe.skipIf(!browserProgram)("the page of a job on a terminal", () => {
  test("opens at the run, and after the job its agent still accepts messages until Ctrl-C", async () => {
    const folder = folderWith({});
    writeFileSync(
      join(folder, "agent.ts"),
      `import { defineAgent } from ${JSON.stringify(join(repositoryRoot, "src/index.ts"))};
import { scriptedModel } from ${JSON.stringify(join(repositoryRoot, "src/testing/index.ts"))};
const model = scriptedModel(({ messages }) => "You said: " + messages.at(-1).content);
export const agent = defineAgent({ name: "parrot", model });
`,
    );
    const job = startOnTerminal(folder, ["run", "agent.ts", "Good day.", "--inspect"]);
    const [, url = ""] = await job.said(pageAddress);
    const page = await browser.newPage();
    await page.goto(url);
    await page.getByRole("heading", { name: "parrot" }).waitFor();
    expect(page.url()).toContain("#/run/");
    await job.said(/The page stays open until Ctrl-C/);
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Talk" }).click();
    await page.getByRole("textbox", { name: "Write to parrot" }).fill("And now?");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("You said: And now?").first().waitFor();
    await page.getByRole("link", { name: "troupe" }).click();
    await page.getByRole("row").filter({ hasText: "Good day." }).waitFor();
    expect(await page.getByText("not started").count()).toBe(0);
    job.signal("SIGINT");
    expect(await job.ended).toBe(0);
    // The browser logs the closed connection.
    await page.context().close();
    page.errors.length = 0;
  });

  test("shows the team of a question while it thinks, waits and writes", async () => {
    const folder = folderWith(allotment);
    const words = ["ask", "--files", "notes", "--question", question, "--inspect"];
    const job = startOnTerminal(folder, words, { TROUPE_OFFLINE_SPEED: "15" });
    const [, url = ""] = await job.said(pageAddress);
    const page = await browser.newPage();
    await page.goto(url);
    const tree = page.getByRole("treegrid", { name: "Agents" });
    await tree.getByText("waits for").first().waitFor();
    await tree.getByText("reader").first().waitFor();
    await screenshot(page, "job-page-waits");
    await tree.locator(".writing").first().waitFor();
    await screenshot(page, "job-page-writes");
    await job.said(/The page stays open until Ctrl-C/);
    await page.locator(".pill.done").first().waitFor();
    job.signal("SIGINT");
    expect(await job.ended).toBe(0);
    await page.context().close();
    page.errors.length = 0;
  });
});
