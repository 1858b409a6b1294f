import { createHash } from "node:crypto";
import { createContext, runInContext } from "node:vm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createInspector, type InspectorServer, serveInspector } from "../../src/inspector/index.ts";
import { watched } from "./team.ts";
import { visit } from "./visitors.ts";

let server: InspectorServer;
beforeAll(async () => {
  server = await serveInspector(createInspector(), { allowStately: true });
});
afterAll(async () => await server.close());

/** Just enough of a browser to run the page's script and read what it shows. */
class PageElement {
  textContent = "";
  className = "";
  children: (PageElement | string)[] = [];
  append(...added: (PageElement | string)[]): void {
    this.children.push(...added);
  }
  replaceChildren(...children: PageElement[]): void {
    this.children = children;
  }
  /** Lines, one for each list item, indented by depth. */
  outline(depth = 0): string[] {
    return this.children.flatMap((child) => {
      if (typeof child === "string") return [];
      const isLine = child.children.length > 0 && child.children.some((part) => typeof part === "string");
      return isLine ? ["  ".repeat(depth) + child.text()] : child.outline(depth + 1);
    });
  }
  budgets(): string[][] {
    return this.children.flatMap((child) => {
      if (typeof child === "string") return [];
      return child.className.startsWith("budget") ? [[child.className, child.textContent]] : child.budgets();
    });
  }
  text(): string {
    const parts = this.children.map((child) => (typeof child === "string" ? child : child.text()));
    return this.textContent + parts.join("");
  }
}

function openPage(html: string) {
  const script = /<script>([\s\S]*)<\/script>/.exec(html)?.[1] ?? "";
  const elements = new Map(["tree", "log", "status"].map((id) => [id, new PageElement()]));
  const sockets: { url: string; onmessage: (message: { data: string }) => void }[] = [];
  class Socket {
    onmessage: (message: { data: string }) => void = () => undefined;
    readonly url: string;
    constructor(url: string) {
      this.url = url;
      sockets.push(this);
    }
  }
  const draws: (() => void)[] = [];
  const browser = createContext({
    document: { getElementById: (id: string) => elements.get(id), createElement: () => new PageElement() },
    location: { host: "127.0.0.1:1", search: "?token=t" },
    WebSocket: Socket,
    setInterval: (draw: () => void) => draws.push(draw),
  });
  runInContext(script, browser);
  return {
    url: sockets[0]?.url,
    receive: (frame: object) => sockets[0]?.onmessage({ data: JSON.stringify(frame) }),
    draw: () => draws.forEach((draw) => draw()),
    tree: () => elements.get("tree")?.outline() ?? [],
    budgets: () => elements.get("tree")?.budgets() ?? [],
    log: () => elements.get("log")?.text() ?? "",
  };
}

it("M7: the page draws the tree of actors with their states from the frames", async () => {
  const page = openPage((await visit(server.url)).body);
  expect(page.url).toBe("ws://127.0.0.1:1/frames?token=t&budgets=1");
  const inspector = createInspector({ now: () => 0 });
  inspector.subscribe((frame) => page.receive(frame));
  const { runtime, ask } = await watched(inspector);
  await ask();
  const child = (await runtime.list()).find(({ parentAgentId }) => parentAgentId === "desk")?.agentId ?? "";
  page.draw();
  const lines = page.tree();
  expect(lines.find((line) => line.trim().startsWith("desk "))?.trim()).toMatch(/^desk ready.*turnCount 1/);
  expect(lines.some((line) => line.trim().startsWith("desk#1 done"))).toBe(true);
  const deskDepth = lines.find((line) => line.trim().startsWith("desk "))?.search(/\S/) ?? 0;
  const childDepth = lines.find((line) => line.trim().startsWith(`${child} `))?.search(/\S/) ?? 0;
  expect(childDepth).toBeGreaterThan(deskDepth);
  expect(page.log()).toContain("desk#1  turn.ended");
  await runtime.shutdown();
});

it("M7: the page shows each agent's budgets, and which of them are used up", async () => {
  const page = openPage((await visit(server.url)).body);
  expect(page.url).toContain("token=t&budgets=1");
  page.receive({
    type: "@xstate.actor",
    sessionId: "desk",
    name: "desk",
    snapshot: { status: "active", value: "busy" },
  });
  const row = { account: "turn 1", limit: "maxTokens", used: 1_234, reserved: 500, unconfirmed: 20, max: 20_000 };
  const none = { reserved: 0, unconfirmed: 0 };
  const rows = [
    row,
    { account: "whole life", limit: "maxCostMicros", used: 420, max: null, ...none },
    { account: "turn 1", limit: "maxActiveMs", used: 1_500, max: 60_000, ...none },
    { account: "turn 1", limit: "deadlineAt", used: 0, max: 0, ...none },
    { account: "<b>turn</b>", limit: "maxSteps", used: 2, max: 2, ...none },
  ];
  page.receive({ type: "troupe.budgets", sessionId: "desk", rows });
  page.draw();
  expect(page.budgets()).toEqual([
    ["budget", "turn 1: tokens 1,234 of 20,000, 500 reserved, 20 unconfirmed"],
    ["budget", "whole life: cost $0.00042 of unlimited"],
    ["budget", "turn 1: working time 1.5 s of 60.0 s"],
    ["budget", "turn 1: deadline 1970-01-01T00:00:00.000Z"],
    ["budget full", "<b>turn</b>: steps 2 of 2"],
  ]);
  page.receive({ type: "troupe.budgets", sessionId: "desk", rows: [{ ...row, used: 2_000 }] });
  page.draw();
  expect(page.budgets()).toEqual([["budget", "turn 1: tokens 2,000 of 20,000, 500 reserved, 20 unconfirmed"]]);
});

it("markup in a frame is shown as text", async () => {
  const { body } = await visit(server.url);
  expect(body).not.toMatch(/innerHTML|insertAdjacentHTML|document\.write|eval\(/);
});

it("the pages load nothing from elsewhere, and their policies allow just what they are made of", async () => {
  const page = await visit(server.url);
  const policy = String(page.headers["content-security-policy"]);
  const script = /<script>([\s\S]*)<\/script>/.exec(page.body)?.[1] ?? "";
  expect(policy).toContain(`script-src 'sha256-${createHash("sha256").update(script).digest("base64")}'`);
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain(`connect-src ws://${new URL(server.url).host};`);
  expect(policy).not.toMatch(/unsafe|https?:/);
  expect(page.body).not.toMatch(/(src|href)=|https?:|@import|url\(/);
  expect(page.headers).toMatchObject({ "cache-control": "no-store", "referrer-policy": "no-referrer" });
  const bridge = await visit(server.statelyUrl ?? "");
  expect(bridge.body.match(/https?:\/\/[\w./]+/g)?.every((url) => url.startsWith("https://stately.ai"))).toBe(true);
});
