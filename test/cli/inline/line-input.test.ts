import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { ReadlineInput } from "../../../src/cli/inline/line-input.ts";

function opened(isTerminal: boolean, onUnasked?: (line: string) => boolean) {
  const input = new PassThrough();
  const output = new PassThrough();
  let interrupts = 0;
  const lines = new ReadlineInput({ input, output, isTerminal, onInterrupt: () => (interrupts += 1), onUnasked });
  return { input, lines, written: () => String(output.read() ?? ""), interrupts: () => interrupts };
}

describe("lines of a pipe", () => {
  test("arrive in order, each once, and then the end", async () => {
    const { input, lines, written } = opened(false);
    input.end("one\ntwo\nthree");
    const reads = [];
    for (let index = 0; index < 5; index += 1) reads.push(await lines.next(`${index}> `));
    expect(reads).toEqual([{ line: "one" }, { line: "two" }, { line: "three" }, "ended", "ended"]);
    expect(written()).toBe("0> one\n1> two\n2> three\n");
  });

  test("are not lost if the waiting reader is cancelled", async () => {
    const { input, lines } = opened(false);
    const controller = new AbortController();
    const waiting = lines.next("? ", { signal: controller.signal });
    controller.abort();
    expect(await waiting).toBe("aborted");
    expect(await lines.next("? ", { signal: controller.signal })).toBe("aborted");
    input.write("one\n");
    expect(await lines.next("? ")).toEqual({ line: "one" });
    lines.close();
  });
});

describe("lines of a terminal", () => {
  test("are requested with a prompt, and may start with text to edit", async () => {
    const { input, lines, written } = opened(true);
    const waiting = lines.next("Arguments: ", { prefill: '{"a":1}' });
    input.write("\r");
    expect(await waiting).toEqual({ line: '{"a":1}' });
    expect(written()).toContain("Arguments: ");
    lines.close();
  });

  test("that were not requested are kept, unless they are taken immediately", async () => {
    const { input, lines } = opened(true, (line) => line === "/now");
    input.write("first\r/now\rsecond\r");
    expect([await lines.next("> "), await lines.next("> ")]).toEqual([{ line: "first" }, { line: "second" }]);
    lines.close();
  });

  test("that are half-typed go on in the next process", async () => {
    const before = opened(true);
    const waiting = before.lines.next("> ");
    before.input.write("half");
    const draft = before.lines.draft();
    before.lines.close();
    expect(await waiting).toBe("ended");
    const after = opened(true);
    after.lines.restore(draft);
    after.input.write(" a line\r");
    expect(await after.lines.next("> ")).toEqual({ line: "half a line" });
    after.lines.close();
  });

  test("are for the caller that came last, and then for the one before it", async () => {
    const { input, lines, written } = opened(true);
    const message = lines.next("> ");
    const reply = lines.next("Approve? ");
    input.write("y\r");
    expect(await reply).toEqual({ line: "y" });
    expect(written()).toMatch(/> [^]*Approve\? [^]*> /);
    input.write("Hello\r");
    expect(await message).toEqual({ line: "Hello" });
    lines.close();
  });

  test("keep what was typed before their prompt", async () => {
    const { input, lines } = opened(true);
    input.write("before ");
    const waiting = lines.next("> ");
    input.write("and after\r");
    expect(await waiting).toEqual({ line: "before and after" });
    lines.close();
  });

  test("Ctrl-C is reported and ends nothing, Ctrl-D ends the input", async () => {
    const { input, lines, interrupts } = opened(true);
    const waiting = lines.next("> ");
    input.write("\u0003");
    input.write("\u0004");
    expect(await waiting).toBe("ended");
    expect(interrupts()).toBe(1);
  });

  test("output is printed above the line being typed", async () => {
    const { input, lines, written } = opened(true);
    const waiting = lines.next("> ");
    input.write("Hel");
    written();
    lines.write("told\n");
    expect(written()).toMatch(/^\r.*told\n[\s\S]*> [\s\S]*$/);
    input.write("lo\r");
    expect(await waiting).toEqual({ line: "Hello" });
    lines.close();
  });
});
