import { describe, expect, it, onTestFinished } from "vitest";
import { startInspector } from "../../src/inspector/index.ts";
import { watched } from "../inspector/team.ts";
import { browserProgram, openBrowser, type WatchedPage } from "../support/browser.ts";

const browser = openBrowser();

/** Stands in for Stately's site. */
const statelyPage = `<!doctype html><title>stand-in</title><ul id="seen"></ul><script>
addEventListener("message", ({ data }) => {
  const line = document.createElement("li");
  line.textContent = data.type + " " + data.sessionId + " " + (data.snapshot ? JSON.stringify(data.snapshot.value) : "");
  document.getElementById("seen").append(line);
});
parent.postMessage({ type: "@statelyai.connected" }, "*");
</script>`;

/** The page requests Stately's page, which other tests treat as a fault. */
function expectForeign(page: WatchedPage): void {
  expect(new Set(page.foreignRequests)).toEqual(new Set(["https://stately.ai/inspect"]));
  page.foreignRequests.length = 0;
}

async function team(): Promise<{ url: string; ask: () => Promise<string>; close: () => Promise<void> }> {
  const inspector = await startInspector({ allowStately: true });
  onTestFinished(() => inspector.close());
  const { runtime, ask } = await watched(inspector);
  onTestFinished(() => runtime.shutdown());
  return { url: inspector.statelyUrl ?? "", ask, close: () => inspector.close() };
}

describe.skipIf(!browserProgram)("the page with Stately's inspector", () => {
  it("sends the frames of the existing and later actors to Stately's page, and reports the end of the runtime", async () => {
    const { url, ask, close } = await team();
    expect(await ask()).toBe("done");
    const page = await browser.newPage();
    await page.route("https://stately.ai/inspect", (route) =>
      route.fulfill({ contentType: "text/html", body: statelyPage }),
    );
    await page.goto(url);
    const seen = page.frameLocator("#stately").locator("#seen");
    await seen.getByText('@xstate.actor desk "ready"').waitFor();
    await seen.getByText('@xstate.actor desk#1 "done"').waitFor();
    expect(await ask()).toBe("done");
    await seen.getByText('@xstate.snapshot desk#2 "done"').waitFor();
    expect(await page.getByRole("status").isHidden()).toBe(true);
    await close();
    await page.getByRole("status").getByText("The connection to the runtime has ended.").waitFor();
    expectForeign(page);
  });

  it("reports that Stately's page cannot be reached", async () => {
    const { url } = await team();
    const page = await browser.newPage();
    await page.clock.install();
    await page.goto(url);
    expect(await page.getByRole("status").isHidden()).toBe(true);
    await page.clock.fastForward(8_000);
    await page.getByRole("status").getByText("Stately's page has not answered.").waitFor();
    expectForeign(page);
    await page.context().close();
    page.errors.length = 0;
  });
});
