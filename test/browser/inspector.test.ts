import { describe, expect, it, onTestFinished } from "vitest";
import type { Runtime } from "../../src/index.ts";
import { startInspector } from "../../src/inspector/index.ts";
import { watched } from "../inspector/team.ts";
import { browserProgram, inBothSchemes, openBrowser } from "../support/browser.ts";

const browser = openBrowser();

describe.skipIf(!browserProgram)("the inspector's page", () => {
  it("M7: shows the actors of a working team in both colour schemes", async () => {
    const { url, runtime, ask } = await team();
    const page = await browser.newPage();
    const response = await page.goto(url);
    expect(response?.headers()["content-security-policy"]).toContain("default-src 'none'");
    await page
      .getByRole("row", { name: /lead desk/ })
      .getByText("ready")
      .waitFor();
    expect(await ask()).toBe("done");
    await page
      .getByRole("row", { name: /lead desk/ })
      .getByText("done")
      .waitFor();
    await page.getByRole("link", { name: /lead desk/ }).click();
    const child = (await runtime.list()).find(({ parentAgentId }) => parentAgentId === "desk")?.agentId ?? "";
    await page.getByTitle(child).first().waitFor();
    await page.getByRole("link", { name: "Events" }).click();
    await page.getByRole("table", { name: "Events" }).getByText("turn 1 completed").first().waitFor();
    const faults = await inBothSchemes(page, "inspector");
    expect(faults.filter(({ impact }) => impact === "critical")).toEqual([]);
  });
});

async function team(): Promise<{ url: string; runtime: Runtime; ask: () => Promise<string> }> {
  const inspector = await startInspector();
  onTestFinished(() => inspector.close());
  const { runtime, ask } = await watched(inspector);
  onTestFinished(() => runtime.shutdown());
  return { url: inspector.url, runtime, ask };
}
