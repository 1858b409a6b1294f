import { describe, expect, it } from "vitest";
import { served } from "../cli/support/served.ts";
import { axe, browserProgram, openBrowser, screenshot } from "../support/browser.ts";

const browser = openBrowser();

describe.skipIf(!browserProgram)("the page of `troupe serve`", () => {
  it("opens at the printed address: a user picks a definition, writes, approves and reads the answer", async () => {
    const { url, lines } = await served([]);
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#token=[\w-]{32}$/);
    expect(lines).toContain(`Token: ${url.split("=")[1]}`);
    const page = await browser.newPage();
    await page.goto(url);
    await page.getByLabel("Agent", { exact: true }).selectOption("clerk");
    await page.getByLabel("Write to a new clerk").fill("Pay Ann.");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("button", { name: "Approve …" }).first().click();
    await screenshot(page, "served-approval");
    await page.getByRole("button", { name: "Run pay with these arguments" }).first().click();
    await page.getByText("Ann is paid.").first().waitFor();
    expect((await axe(page)).filter(({ impact }) => impact === "critical" || impact === "serious")).toEqual([]);
    await page.getByRole("link", { name: "API" }).click();
    await page.getByText("/api/openapi.json").first().waitFor();
  });
});
