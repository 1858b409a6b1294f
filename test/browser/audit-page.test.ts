import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { memoryStores } from "../../src/index.ts";
import { type AuditFile, pageOfAudit, withoutContent } from "../../src/inspector/index.ts";
import { auditOfTree } from "../../src/inspector/feed/audit-run.ts";
import { playAuditedTeam } from "../inspector/audited-team.ts";
import { axe, browserProgram, openBrowser, type WatchedPage } from "../support/browser.ts";

const browser = openBrowser();
const hostile = `</script><script>document.title = "taken"</script><img src=x onerror='document.title = "taken"'>`;

/** The audit of a run with a hostile text. */
async function hostileAudit(): Promise<AuditFile> {
  const tree = await playAuditedTeam(memoryStores());
  const messages = tree.rows.flatMap((row) => row.messages);
  for (const message of messages) if (message.role === "tool") Object.assign(message, { content: hostile });
  return await auditOfTree(tree);
}

async function open(html: string): Promise<WatchedPage> {
  const folder = mkdtempSync(join(tmpdir(), "troupe-audit-page-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "audit.html");
  writeFileSync(path, html);
  const page = await browser.newPage();
  await page.goto(pathToFileURL(path).href);
  return page;
}

describe.skipIf(!browserProgram)("the page of an audit", () => {
  it("verifies itself from a disk, with and without contents, and shows hostile texts as text", async () => {
    const audit = await hostileAudit();
    for (const file of [audit, withoutContent(audit)]) {
      const page = await open(await pageOfAudit(file));
      await page.getByText("Consistent", { exact: true }).waitFor();
      await page.getByText("approved", { exact: true }).waitFor();
      const head = page.getByLabel("Head that was kept elsewhere");
      await head.fill(audit.head ?? "");
      await page.getByText("Verified", { exact: true }).waitFor();
      await head.fill("0".repeat(64));
      await page.getByText("Broken", { exact: true }).waitFor();
      await page.getByText("the run does not have the given head", { exact: false }).waitFor();
      expect(await page.evaluate("document.title")).toBe("Audit of a run");
      expect((await axe(page)).filter(({ impact }) => impact === "critical" || impact === "serious")).toEqual([]);
    }
  });

  it("names the entry that was changed", async () => {
    const html = await pageOfAudit(await hostileAudit());
    const page = await open(html.replaceAll('"by":"ann"', '"by":"eve"'));
    await page.getByText("Broken", { exact: true }).waitFor();
    await page.getByText("the entry, a message of it or the entry before it was changed", { exact: false }).waitFor();
    expect(await page.evaluate("document.querySelectorAll('.entries li.broken').length")).toBe(1);
  });
});
