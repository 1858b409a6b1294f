import { describe, expect, it, onTestFinished } from "vitest";
import { bundled, deskRuntime, serveChat } from "../../examples/browser/serve.ts";
import { axe, browserProgram, openBrowser } from "../support/browser.ts";

const browser = openBrowser();

async function served(): Promise<string> {
  const runtime = await deskRuntime();
  const server = await serveChat(runtime);
  onTestFinished(async () => {
    await server.close();
    await runtime.shutdown();
  });
  return (await server.listen()).url;
}

it("the client and its hook can be bundled for browsers without the runtime", async () => {
  const script = await bundled();
  expect(script).not.toMatch(/from "node:|require\("node:|src\/(?:runtime|state|server|errors)\//);
  expect(script).toContain("TroupeClientError");
});

describe.skipIf(!browserProgram)("a page with useAgent, under StrictMode and with a session cookie", () => {
  it("shows a turn, survives a reload, and approves", async () => {
    const url = await served();
    const page = await browser.newPage();
    await page.goto(url);
    const status = page.getByRole("status");
    const conversation = page.getByRole("list", { name: "Conversation" }).getByRole("listitem");
    const send = async (text: string): Promise<void> => {
      await page.getByLabel("Message").fill(text);
      await page.getByRole("button", { name: "Send" }).click();
    };
    await status.getByText("ready").waitFor();
    await send("Hello.");
    await page.getByText("assistant: You said: Hello.").waitFor();
    await status.getByText("ready").waitFor();
    expect(await conversation.allTextContents()).toEqual(["user: Hello.", "assistant: You said: Hello."]);

    await send("Order paper.");
    await status.getByText("waiting").waitFor();
    await page.reload();
    await status.getByText("waiting").waitFor();
    expect(await axe(page)).toEqual([]);
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByText("assistant: It is done.").waitFor();
    await status.getByText("ready").waitFor();
    expect(await page.getByRole("button", { name: "Approve" }).count()).toBe(0);
    expect((await conversation.allTextContents()).at(-1)).toBe("assistant: It is done.");
  });

  it("shows no data of another visitor", async () => {
    const url = await served();
    const first = await browser.newPage();
    await first.goto(url);
    await first.getByLabel("Message").fill("Hello.");
    await first.getByRole("status").getByText("ready").waitFor();
    await first.getByRole("button", { name: "Send" }).click();
    await first.getByText("assistant: You said: Hello.").waitFor();
    const other = await browser.newPage();
    await other.goto(url);
    await other.getByRole("status").getByText("ready").waitFor();
    expect(await other.getByRole("listitem").count()).toBe(0);
  });
});
