import { describe, expect, it, onTestFinished } from "vitest";
import type { Runtime } from "../../src/index.ts";
import { startInspector } from "../../src/inspector/index.ts";
import { watched } from "../inspector/team.ts";
import { axe, browserProgram, openBrowser, screenshot } from "../support/browser.ts";

const browser = openBrowser();

describe.skipIf(!browserProgram)("the inspector's page", () => {
  it.each(["light", "dark"] as const)(
    "M7: shows the actors of a team that works while one looks, %s",
    async (colorScheme) => {
      const { url, runtime, ask } = await team();
      const page = await browser.newPage({ colorScheme });
      const response = await page.goto(url);
      expect(response?.headers()["content-security-policy"]).toContain("default-src 'none'");
      await page.getByText("desk").first().waitFor();
      await page.goto(`${url.split("#")[0]}#/run/desk`);
      expect(await ask()).toBe("done");
      await page.getByText("reader").first().waitFor();
      expect((await runtime.list()).length).toBe(2);
      await screenshot(page, `inspector-${colorScheme}`);
      expect((await axe(page)).filter(({ impact }) => impact === "critical")).toEqual([]);
    },
  );
});

async function team(): Promise<{ url: string; runtime: Runtime; ask: () => Promise<string> }> {
  const inspector = await startInspector();
  onTestFinished(() => inspector.close());
  const { runtime, ask } = await watched(inspector);
  onTestFinished(() => runtime.shutdown());
  inspector.watch(runtime);
  return { url: inspector.url, runtime, ask };
}
