import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it, onTestFinished } from "vitest";
import { repositoryRoot, sourceCondition } from "../../scripts/run-command.ts";
import { axe, browserProgram, openBrowser, screenshot } from "../support/browser.ts";
import { first, rows } from "../support/full.ts";

const browser = openBrowser();

const agentFile = `
import { defineAgent, defineTool } from ${JSON.stringify(join(repositoryRoot, "src/index.ts"))};
import { scriptedModel } from ${JSON.stringify(join(repositoryRoot, "src/testing/index.ts"))};
import { z } from ${JSON.stringify(join(repositoryRoot, "node_modules/zod/index.js"))};
const pay = defineTool({
  name: "pay", description: "Pays.", parameters: z.object({ to: z.string() }), effect: "keyed",
  needsApproval: true, execute: () => "paid",
});
const model = (answer) => scriptedModel(({ messages }) =>
  messages.at(-1).role === "tool" ? answer : { toolCalls: [{ name: "pay", arguments: { to: "Ann" } }] });
export const agents = [
  defineAgent({ name: "greeter", model: scriptedModel("Good day.") }),
  defineAgent({ name: "clerk", model: model("Ann is paid."), tools: [pay] }),
];
`;

/** The reasons themselves are a table in test/cli/serve/served-page.test.ts; the first one shows that the server keeps to them. */
const without = [
  ["--no-page", ["--no-page"], "Page: none here (--no-page)"],
  ["a proxy", ["--proxies", "1"], "Page: none here (there is a proxy in front)"],
  ["other machines", ["--host", "0.0.0.0"], "Page: none here (the server listens for other machines)"],
] as const;

describe.skipIf(!browserProgram)("the page of `troupe serve`", () => {
  it("is at the printed address: one picks a definition, writes, approves and reads the answer", async () => {
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

  it("lets nobody in without the token, under another name, or from another origin", async () => {
    const { url } = await served([]);
    const [address = "", token = ""] = url.split("/#token=");
    const bearer = { authorization: `Bearer ${token}` };
    const statusOf = async (path: string, headers: Readonly<Record<string, string>>): Promise<number> =>
      (await fetch(address + path, { headers })).status;
    expect(await statusOf("/inspector/api/info", bearer)).toBe(200);
    expect(await statusOf("/inspector/api/info", {})).toBe(401);
    expect(await statusOf("/inspector/api/info", { ...bearer, origin: "http://elsewhere.example" })).toBe(403);
    // The API beside it stays as it is.
    expect(await statusOf("/api/agents", bearer)).toBe(200);
    expect(await statusOf("/healthz", {})).toBe(200);
  });

  it.each(rows(without, first))("is not there with %s", async (_what, words, line) => {
    const { lines } = await served(words);
    expect(lines.join("\n")).toContain(line);
    const [, port = ""] = /:(\d+);/.exec(lines[0] ?? "") ?? [];
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(404);
    expect((await fetch(`http://127.0.0.1:${port}/inspector/api/info`)).status).toBe(404);
  });
});

/** A server in a process of its own, until the test ends, which it leaves with 0. */
async function served(words: readonly string[]): Promise<{ readonly url: string; readonly lines: readonly string[] }> {
  const folder = mkdtempSync(join(tmpdir(), "troupe-served-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "agents.ts");
  writeFileSync(file, agentFile);
  const main = join(repositoryRoot, "src/cli/main.ts");
  const env = { ...process.env, TROUPE_SERVE_TOKEN: undefined, TROUPE_REDIS: undefined };
  const all = [`--conditions=${sourceCondition}`, main, "serve", file, "--port", "0", "--store", "serve.db", ...words];
  const server = spawn(process.execPath, all, { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(async () => expect(await left(server)).toBe(0));
  const lines: string[] = [];
  for await (const line of createInterface(server.stdout)) {
    lines.push(line);
    if (line === "Try:") break;
  }
  const url = lines.find((line) => line.startsWith("  Page: "))?.slice("  Page: ".length) ?? "";
  return { url, lines };
}

async function left(server: ChildProcess): Promise<number | null> {
  const ended = new Promise<number | null>((resolve) => server.once("exit", resolve));
  server.kill("SIGTERM");
  return await ended;
}
