import { describe, expect, it } from "vitest";
import { axe, browserProgram, openBrowser } from "../support/browser.ts";

const browser = openBrowser();

describe.skipIf(!browserProgram)("a page of the tests", () => {
  it.each([
    ["a name", "http://elsewhere.example/"],
    ["an address", "http://192.0.2.1/"],
    ["an address of IPv6", "http://[2001:db8::1]/"],
  ])("requests no other server, neither under %s", async (_what, address) => {
    const page = await browser.newPage();
    const answer = await page.evaluate(`fetch("${address}").then(() => "came", () => "failed")`);
    expect(answer).toBe("failed");
    expect(page.foreignRequests.splice(0)).toEqual([address]);
    expect(page.errors.splice(0).join()).toContain("ERR_NAME_NOT_RESOLVED");
  });

  it("reports sockets to other hosts, script errors and console errors", async () => {
    const page = await browser.newPage();
    await page.evaluate(`new Promise((resolve) => { new WebSocket("ws://elsewhere.example/").onerror = resolve; })`);
    expect(page.foreignRequests.splice(0)).toEqual(["ws://elsewhere.example/"]);
    expect(page.errors.splice(0).join()).toContain("ERR_NAME_NOT_RESOLVED");
    await page.evaluate(`console.error("said")`);
    const thrown = page.waitForEvent("pageerror");
    await page.evaluate(`setTimeout(() => { throw new Error("thrown"); })`);
    await thrown;
    expect(page.errors.splice(0).map((text) => text.split("\n")[0])).toEqual(["said", "Error: thrown"]);
  });

  it("has a fixed width, arrows, and the requested colours", async () => {
    const page = await browser.newPage({ colorScheme: "dark" });
    await page.setContent(`<meta name="color-scheme" content="light dark">
      <code id="narrow">iiii</code><br><code id="wide">mmmm</code><br><span id="plain">iiii</span>`);
    const width = async (id: string): Promise<number> => (await page.locator(`#${id}`).boundingBox())?.width ?? 0;
    expect(await width("narrow")).toBe(await width("wide"));
    expect(await width("plain")).toBeLessThan(await width("narrow"));
    expect(await page.evaluate(`matchMedia("(prefers-color-scheme: dark)").matches`)).toBe(true);
  });

  it("is checked by axe", async () => {
    const page = await browser.newPage();
    await page.setContent(`<html lang="en"><title>t</title><main><h1>h</h1><img src="data:,"></main></html>`);
    expect(await axe(page)).toMatchObject([{ id: "image-alt", impact: "critical", targets: ["img"] }]);
  });
});
