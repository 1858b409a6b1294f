import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { liveReporter } from "../../../src/cli/view/live-reporter.ts";
import { paintFor } from "../../../src/cli/view/terminal-text.ts";
import { createFakeClock } from "../../../src/testing/index.ts";
import {
  agentSample,
  completedSample,
  decidedSample,
  deltaSample,
  eventSample,
  openedSample,
} from "../support/samples.ts";

function started(size = { columns: 100, rows: 20 }) {
  const clock = createFakeClock(1_000);
  const written: string[] = [];
  const write = (text: string): boolean => written.push(text) > 0;
  const stream = Object.assign(new PassThrough(), { ...size, write });
  const reporter = liveReporter({
    stream,
    clock,
    paint: paintFor({ NO_COLOR: "1" }),
    rootAgentId: "ask-mibodu",
    accounts: async () => [],
  });
  reporter.begin(["Question: What is it?"]);
  reporter.past([eventSample({ type: "turn.started", number: 1, prompt: "What is it?" })]);
  return { clock, written, reporter, stream };
}

test("draws events, and leaves the answer and the table on the screen", () => {
  const { clock, written, reporter } = started();
  reporter.event(deltaSample("It is"));
  clock.advance(100);
  expect(written.at(-1)).toMatch(/lead ask-mibodu.*thinking/);
  expect(written.at(-1)).toContain("It is");
  reporter.notice("Pausing at the next safe point.");
  clock.advance(100);
  expect(written.at(-1)).toContain("Pausing");
  reporter.end({ end: completedSample(), agents: [agentSample()], accounts: [], now: 2_000, remarks: ["Look again."] });
  const last = written.at(-1) ?? "";
  expect(last).toContain("It is so. (a.md:1)");
  expect(last).toMatch(/^AGENT +PARENT/m);
  expect(last.endsWith("Look again.\n")).toBe(true);
});

test("a crash leaves a usable terminal, and nothing is drawn after it", () => {
  const { clock, written, reporter } = started();
  clock.advance(100);
  reporter.close();
  expect(written.at(-1)).toContain("\u001B[?25h");
  const count = written.length;
  reporter.event(deltaSample("late"));
  clock.advance(10_000);
  expect(written).toHaveLength(count);
});

test("shows the agent that waits for a decision until it is made", () => {
  const { clock, written, reporter } = started();
  reporter.event(openedSample());
  clock.advance(100);
  expect(written.at(-1)).toContain("waits: approve pay");
  reporter.event(decidedSample());
  clock.advance(100);
  expect(written.at(-1)).not.toContain("waits: approve pay");
});

test("the tree stays above a question, without the cursor hidden", () => {
  const { clock, written, reporter } = started();
  reporter.event(openedSample());
  clock.advance(100);
  const count = written.length;
  reporter.hold();
  const held = written.slice(count).join("");
  expect(held).toMatch(/lead ask-mibodu.*waits: approve pay/);
  expect(held.endsWith("\u001B[?25h")).toBe(true);
});

test("the URL of the page stays visible above a tree that fills the terminal", () => {
  const { clock, written, reporter } = started({ columns: 40, rows: 12 });
  const address = `Inspect the agents at http://127.0.0.1:40001/#token=${"x".repeat(40)}`;
  reporter.event(deltaSample("line\n".repeat(50)));
  reporter.keep([address]);
  expect(written.at(-1)).toBe(`${address}\n`);
  clock.advance(1_000);
  const drawn = (written.at(-1) ?? "").trimEnd().split("\n");
  // The URL takes 3 rows, the cursor 1.
  expect(drawn.length).toBeLessThanOrEqual(12 - 3 - 1);
});

test("is redrawn soon after the terminal changes its size", () => {
  const { clock, written, reporter, stream } = started();
  clock.advance(100);
  const count = written.length;
  stream.columns = 60;
  stream.emit("resize");
  clock.advance(100);
  expect(written.length).toBeGreaterThan(count);
  reporter.close();
  expect(stream.listenerCount("resize")).toBe(0);
});

test("is silent while a person is asked, and then continues", () => {
  const { clock, written, reporter } = started();
  clock.advance(100);
  const release = reporter.hold();
  expect(written.at(-1)).toContain("\u001B[?25h");
  const count = written.length;
  reporter.event(deltaSample("It is"));
  clock.advance(10_000);
  expect(written).toHaveLength(count);
  release();
  clock.advance(1_000);
  expect(written.slice(count).join("")).toContain("It is");
});
