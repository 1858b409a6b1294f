import { EventEmitter } from "node:events";
import { describe, expect, test } from "vitest";
import { recentLines } from "../../../src/cli/chat/chat-agent.ts";
import { chatLineOf, helpLines } from "../../../src/cli/chat/chat-session.ts";
import { ChatInterrupts } from "../../../src/cli/job/interrupts.ts";
import type { Message } from "../../../src/state/index.ts";

describe("a typed line", () => {
  test.each([
    ["Hello", { type: "message", text: "Hello" }],
    ["  Hello there ", { type: "message", text: "Hello there" }],
    ["//pause is a word", { type: "message", text: "/pause is a word" }],
    ["/pause", { type: "command", command: "pause" }],
    [" /exit now", { type: "command", command: "exit" }],
    ["/nope", { type: "unknown", name: "nope" }],
    ["/", { type: "unknown", name: "" }],
    ["/toString", { type: "unknown", name: "toString" }],
    ["   ", { type: "blank" }],
  ])("%j", (line, expected) => {
    expect(chatLineOf(line)).toEqual(expected);
  });

  test("every command is in the help", () => {
    const help = helpLines().join("\n");
    for (const name of ["pause", "resume", "abort", "budget", "tree", "requests", "help", "exit"]) {
      expect(help).toContain(`/${name} `);
    }
  });
});

function watched() {
  const heard: (string | number)[] = [];
  const interrupts = new ChatInterrupts({ abort: () => heard.push("abort"), leave: (code) => heard.push(code) });
  return { heard, interrupts };
}

describe("Ctrl-C in a chat", () => {
  test("aborts first and exits at the second, however soon that comes", () => {
    const { heard, interrupts } = watched();
    interrupts.interrupt();
    interrupts.interrupt();
    expect(heard).toEqual(["abort", 130]);
  });

  test("arrives twice under npm, and counts once", () => {
    const { heard, interrupts } = watched();
    const source = new EventEmitter();
    const stop = interrupts.watch(source, { now: () => 0, isForwarded: true });
    for (const expected of [["abort"], ["abort"], ["abort", 130]]) {
      source.emit("SIGINT");
      expect(heard).toEqual(expected);
    }
    stop();
    expect(source.eventNames()).toEqual([]);
  });

  test("counts as the first again after typing", () => {
    const { heard, interrupts } = watched();
    interrupts.interrupt();
    interrupts.typed();
    interrupts.interrupt();
    expect(heard).toEqual(["abort", "abort"]);
  });
});

function message(parts: Partial<Message> & Pick<Message, "role" | "origin">): Message {
  return { id: "m", createdAt: 0, content: "", callId: "c", providerId: "p", ...parts } as Message;
}

test("a short history contains the messages, each cut to one line", () => {
  const said = [
    message({ role: "user", origin: "user", content: "One\ntwo" }),
    message({ role: "assistant", origin: "model", content: "" }),
    message({ role: "tool", origin: "tool", content: "secret" }),
    message({ role: "user", origin: "hook:trust", content: "by a hook" }),
    message({ role: "assistant", origin: "model", content: "x".repeat(500) }),
  ];
  const lines = recentLines(said);
  expect(lines[0]).toBe("you: One two");
  expect(lines[1]).toMatch(/^agent: x{50,160}…$/);
  expect(lines).toHaveLength(2);
  expect(recentLines([...said, ...said, ...said, ...said])[0]).toBe("… 2 earlier messages");
  expect(recentLines([])).toEqual([]);
});
