import { describe, expect, test } from "vitest";
import { editOf, replyOf, replyPrompt, resultOf } from "../../../src/cli/inline/reply.ts";
import { requestSample } from "../support/samples.ts";

const approval = requestSample();
const client = requestSample({ kind: "client" });
const question = requestSample({
  kind: "question",
  arguments: { question: "Which?", options: ["Monday", "Friday", "1"] },
});
const auth = requestSample({ kind: "auth" });

describe("a reply to an approval", () => {
  test.each([
    ["y", { verdict: "approved" }],
    [" YES ", { verdict: "approved" }],
    ["n", { verdict: "rejected" }],
    ["no  too much, really ", { verdict: "rejected", reason: "too much, really" }],
    ['e {"to":"Bo"}', { verdict: "edited", arguments: { to: "Bo" } }],
  ])("%j decides", (line, decide) => {
    expect(replyOf(approval, line)).toEqual({ type: "decide", decide });
  });

  test.each(["", "  ", "ye", "yes please", "ok", "approve", "yn"])("%j approves nothing", (line) => {
    expect(replyOf(approval, line)).toEqual({ type: "unclear", hint: "Type y, n, e or l." });
  });

  test("can be postponed, or edited in its own line", () => {
    expect(replyOf(approval, "l")).toEqual({ type: "later" });
    expect(replyOf(approval, "edit")).toEqual({ type: "edit" });
    expect(editOf("{to:1}")).toMatchObject({ type: "unclear", hint: expect.stringContaining("must be JSON") });
  });
});

describe("an answer", () => {
  test("to a question is the text as typed, or the option with the typed number", () => {
    expect(replyOf(question, " on Fridays ")).toEqual({
      type: "decide",
      decide: { verdict: "answered", result: "on Fridays" },
    });
    expect(["2", "1", "9", "0", "02"].map((text) => resultOf(question, text))).toEqual(["Friday", "1", "9", "0", "02"]);
    expect(resultOf(requestSample({ kind: "question" }), "2")).toBe("2");
  });

  test("of a client tool is JSON if it parses as JSON", () => {
    expect(['{"rows":3}', "7", '"7"', "7 rows", "{"].map((text) => resultOf(client, text))).toEqual([
      { rows: 3 },
      7,
      "7",
      "7 rows",
      "{",
    ]);
  });

  test.each([question, client])("of kind $kind can be rejected or postponed", (request) => {
    expect(replyOf(request, "/reject not mine")).toEqual({
      type: "decide",
      decide: { verdict: "rejected", reason: "not mine" },
    });
    expect(replyOf(request, "/reject")).toEqual({ type: "decide", decide: { verdict: "rejected" } });
    expect([replyOf(request, ""), replyOf(request, "/later")]).toEqual([{ type: "later" }, { type: "later" }]);
  });
});

test("a request for credentials that a tool's code asked, such as a login, can be done", () => {
  const login = requestSample({ kind: "auth", isAsked: true });
  expect(replyPrompt(login)).toContain("[y]es");
  expect(replyOf(login, "y")).toEqual({ type: "decide", decide: { verdict: "provided" } });
  expect(replyOf(login, "y maybe")).toEqual({ type: "unclear", hint: "Type y, n or l." });
  expect(replyOf(login, "").type).toBe("unclear");
});

test("credentials cannot be typed, only refused", () => {
  expect(replyOf(auth, "y")).toEqual({ type: "unclear", hint: "Type n or l." });
  expect(replyOf(auth, "e {}").type).toBe("unclear");
  expect(replyOf(auth, "n no key")).toEqual({ type: "decide", decide: { verdict: "rejected", reason: "no key" } });
  expect(replyPrompt(auth)).not.toContain("[y]es");
});
