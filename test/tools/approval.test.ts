import { describe, expect, test } from "vitest";
import { z } from "zod";
import { InvalidInputError } from "../../src/errors/index.ts";
import { defineTool, type RunContext, type Tool } from "../../src/tools/index.ts";

const base = {
  name: "transfer",
  description: "Moves money.",
  parameters: z.object({ amount: z.number(), to: z.string().default("savings") }),
  execute: () => "done",
};
const run = { callId: "t-1:1:0", actorId: "ada" } as RunContext;

async function asks(tool: Tool<never>, args: Parameters<typeof tool.describeCall>[0]): Promise<boolean> {
  return typeof tool.needsApproval === "boolean" ? tool.needsApproval : await tool.needsApproval(args, run);
}

describe("approval", () => {
  test("no tool needs it, expires or needs credentials by default", () => {
    const tool = defineTool(base);
    expect(tool.needsApproval).toBe(false);
    expect("approvalExpiresAfterMs" in tool).toBe(false);
    expect("auth" in tool).toBe(false);
  });

  test("the tool has the fields of its definition", () => {
    const waits = { needsApproval: true, approvalExpiresAfterMs: 60_000, auth: "required" } as const;
    expect(defineTool({ ...base, ...waits })).toMatchObject(waits);
  });

  test("a function decides by the checked arguments and the run, synchronously or not", async () => {
    const large = defineTool({ ...base, needsApproval: ({ amount }) => amount > 100 });
    expect(await asks(large, { amount: 101, to: "x" })).toBe(true);
    expect(await asks(large, { amount: 100, to: "x" })).toBe(false);
    const byActor = defineTool({ ...base, needsApproval: async (_args, { actorId }) => actorId !== "ada" });
    expect(await asks(byActor, { amount: 1, to: "x" })).toBe(false);
  });

  test("it keeps its definition as `this`", async () => {
    const definition = {
      ...base,
      limit: 5,
      needsApproval({ amount }: { amount: number }) {
        return amount > this.limit;
      },
    };
    expect(await asks(defineTool(definition), { amount: 6, to: "x" })).toBe(true);
    expect(await asks(defineTool(definition), { amount: 5, to: "x" })).toBe(false);
  });

  test("its changes to the arguments have no effect", async () => {
    const args = { amount: 1, to: "x" };
    const tool = defineTool({
      ...base,
      needsApproval: (given) => (given.amount += 10) > 5,
      describeCall: (given) => `${(given.amount += 10)}`,
    });
    expect([await asks(tool, args), tool.describeCall(args)]).toEqual([true, "11"]);
    expect(args).toEqual({ amount: 1, to: "x" });
  });

  test.each([undefined, null, "no", 0])("an answer of %j is a fault, and runs nothing", async (answer) => {
    const tool = defineTool({ ...base, needsApproval: () => answer as unknown as boolean });
    await expect(asks(tool, { amount: 1, to: "x" })).rejects.toThrow(/needsApproval returned \w+, not true or false/);
  });

  test.each<[string, object, RegExp]>([
    ["needsApproval as a text", { needsApproval: "always" }, /needsApproval must be true, false or a function/],
    ["an expiry of 0", { needsApproval: true, approvalExpiresAfterMs: 0 }, /approvalExpiresAfterMs is 0; use/],
    ["half a millisecond", { needsApproval: true, approvalExpiresAfterMs: 0.5 }, /is 0.5; use a whole number/],
    ["an infinite expiry", { needsApproval: true, approvalExpiresAfterMs: Infinity }, /leave it out for never/],
    ["an expiry beyond all calendars", { needsApproval: true, approvalExpiresAfterMs: 9e15 }, /use a whole number/],
    ["an expiry without needsApproval", { approvalExpiresAfterMs: 5 }, /set needsApproval as well/],
    ["a description that is not a function", { describeCall: "Pay?" }, /describeCall must be a function, not string/],
    ["an invalid auth", { auth: "optional" }, /auth is the text "optional"; use "required", or leave it out/],
  ])("%s is refused", (_name, change, message) => {
    const define = () => defineTool({ ...base, ...change });
    expect(define).toThrow(InvalidInputError);
    expect(define).toThrow(message);
  });
});

describe("the text of an approval", () => {
  test("is the tool's own, from its checked arguments", () => {
    const tool = defineTool({ ...base, describeCall: ({ amount, to }) => `Move ${amount} to ${to}?` });
    expect(tool.describeCall({ amount: 5, to: "savings" })).toBe("Move 5 to savings?");
  });

  test("is the name and the arguments by default", () => {
    expect(defineTool(base).describeCall({ amount: 5, to: "savings" })).toBe('transfer({"amount":5,"to":"savings"})');
  });

  test("cuts long arguments at 500 characters, and never within a character", () => {
    const shown = defineTool(base).describeCall({ to: `${"a".repeat(492)}😀${"b".repeat(1_000)}` });
    expect(shown).toBe(`transfer({"to":"${"a".repeat(492)}…)`);
    expect(shown.isWellFormed()).toBe(true);
  });

  test.each<[string, () => unknown]>([
    [
      "throws",
      () =>
        []
          .map((value: string) => value.length)
          .at(0)!
          .toFixed(),
    ],
    ["returns no text", () => 5],
    ["returns an empty text", () => " "],
  ])("a description that %s does not block the decision: the arguments are shown", (_name, describeCall) => {
    const tool = defineTool({ ...base, describeCall: describeCall as () => string });
    expect(tool.describeCall({ amount: 5 })).toBe('transfer({"amount":5})');
  });
});
