import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { InvalidInputError } from "../../src/errors/index.ts";
import { renderAnswer, askUser, clientTool, createToolRegistry, type UserQuestion } from "../../src/tools/index.ts";

const base = {
  name: "pick_file",
  description: "Lets the user pick a file.",
  parameters: z.object({ kind: z.enum(["image", "text"]), count: z.number().default(1) }),
};

describe("a tool that the caller executes", () => {
  test("is a client tool that is never repeated, with the model's view of its parameters", () => {
    const tool = clientTool(base);
    expect(tool).toMatchObject({ kind: "client", requestKind: "client", name: "pick_file", effect: "once" });
    expect(tool.jsonSchema).toMatchObject({ type: "object", required: ["kind"] });
    expect("expiresAfterMs" in tool).toBe(false);
    expect("execute" in tool).toBe(false);
    expect(Object.isFrozen(tool)).toBe(true);
    expect(clientTool({ ...base, expiresAfterMs: 60_000 }).expiresAfterMs).toBe(60_000);
  });

  test("reads its arguments as every tool does, also by a JSON Schema text", async () => {
    const tool = clientTool(base);
    expect(await tool.parse('{"kind":"text"}')).toMatchObject({ ok: true, json: { kind: "text", count: 1 } });
    expect(await tool.parse('{"kind":"sound"}')).toMatchObject({
      ok: false,
      message: expect.stringContaining("kind: "),
    });
    const text = clientTool({ ...base, parameters: '{"type":"object","required":["a"]}' });
    expect(await text.parse("{}")).toMatchObject({ ok: false });
  });

  test("describes the request", () => {
    expect(clientTool(base).describeCall({ kind: "text", count: 1 })).toBe('pick_file({"kind":"text","count":1})');
    const inWords = clientTool({ ...base, describeCall: ({ kind, count }) => `Pick ${count} ${kind}` });
    expect(inWords.describeCall({ kind: "text", count: 2 })).toBe("Pick 2 text");
  });

  test.each<[string, object, RegExp]>([
    ["a name with a space", { name: "pick file" }, /letters, digits/],
    ["no description", { description: "" }, /Tool "pick_file": description is empty/],
    ["an execute", { execute: () => "file" }, /its caller executes it; use defineTool/],
    ["an expiry of 0", { expiresAfterMs: 0 }, /expiresAfterMs is 0/],
    ["parameters that are not an object", { parameters: z.string() }, /Tool "pick_file": The parameters must describe/],
    ["a description of calls that is not a function", { describeCall: 1 }, /describeCall must be a function/],
  ])("%s is refused", (_name, change, message) => {
    const define = () => clientTool({ ...base, ...change });
    expect(define).toThrow(InvalidInputError);
    expect(define).toThrow(message);
  });

  test("can be registered with others", () => {
    expect(createToolRegistry([clientTool(base), askUser()]).definitions()).toHaveLength(2);
    expect(() => createToolRegistry([askUser(), askUser()])).toThrow(/Two tools are named "ask_user"/);
  });
});

describe("asking the user", () => {
  test("is a client tool whose request is a question", () => {
    expect(askUser()).toMatchObject({ kind: "client", requestKind: "question", name: "ask_user", effect: "once" });
    const named = askUser({ name: "clarify", description: "Asks for details.", expiresAfterMs: 5_000 });
    expect(named).toMatchObject({ name: "clarify", description: "Asks for details.", expiresAfterMs: 5_000 });
    expect(() => askUser({ expiresAfterMs: -1 })).toThrow(/expiresAfterMs is -1/);
  });

  test("accepts a question and optional answers to choose from", async () => {
    const tool = askUser();
    expect(await tool.parse('{"question":"Which one?"}')).toMatchObject({ ok: true, json: { question: "Which one?" } });
    expect((await tool.parse('{"question":"Which?","options":["a","b"]}')).ok).toBe(true);
    expect(await tool.parse('{"question":" \\n"}')).toMatchObject({
      ok: false,
      message: expect.stringContaining("not be empty"),
    });
    expect((await tool.parse('{"question":""}')).ok).toBe(false);
    expect(await tool.parse('{"options":["a"]}')).toMatchObject({
      ok: false,
      message: expect.stringContaining("is missing"),
    });
    expect((await tool.parse('{"question":"Which?","options":"a"}')).ok).toBe(false);
    expectTypeOf<UserQuestion>().toEqualTypeOf<{ question: string; options?: string[] | undefined }>();
  });

  test("the question is passed unchanged, with its options", () => {
    expect(askUser().describeCall({ question: "Which one?" })).toBe("Which one?");
    expect(askUser().describeCall({ question: "Which?", options: ["tea", "milk"] })).toBe("Which?\n- tea\n- milk");
    expect(askUser().describeCall({ question: "w".repeat(5_000) })).toHaveLength(5_000);
  });
});

describe("the caller's answer for the model", () => {
  test.each<[unknown, string]>([
    ["tea", "tea"],
    [{ picked: ["a.txt"] }, '{"picked":["a.txt"]}'],
    [undefined, ""],
    [false, "false"],
  ])("%j is shown as %s", (value, text) => {
    expect(renderAnswer(askUser(), value)).toEqual({ text });
  });

  test("an answer without a JSON form is an error that names the reason", () => {
    const answer = renderAnswer(clientTool(base), { picked: new Map() });
    expect(answer).toEqual({
      error: "unreadable",
      text: 'The answer to "pick_file" cannot be shown: it has no JSON form ("picked" is a Map).',
    });
  });
});
