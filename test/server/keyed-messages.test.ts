import { askUser, createRuntime, defineAgent, defineTool, type Runtime, textOf } from "troupe";
import { scriptedModel, type ScriptedToolCall } from "troupe/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { temporaryFile } from "../stores/temporary-file.ts";
import { plainSurface } from "./plain-surface.ts";
import { type Served, serve } from "./served.ts";

const remove = defineTool({
  name: "remove",
  description: "Removes a file",
  parameters: z.object({ path: z.string() }),
  needsApproval: true,
  execute: () => "removed",
});

/** Asks as often as the user's message names it: "ask ask", "remove remove"; then the same again for "twice". */
const model = scriptedModel(({ messages }) => {
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const words = textOf(messages[asked]?.content ?? "").split(" ");
  const rounds = messages.slice(asked + 1).filter(({ role }) => role === "assistant").length;
  const calls = words.flatMap((word): ScriptedToolCall[] => {
    if (word === "ask") return [{ name: "ask_user", arguments: { question: "who?" } }];
    return word === "remove" ? [{ name: "remove", arguments: { path: "a" } }] : [];
  });
  const isAsking = rounds < (words.includes("twice") ? 2 : 1) && calls.length > 0;
  return isAsking ? { toolCalls: calls } : { text: `said ${words.join(" ")}` };
});
const desk = defineAgent({ name: "desk", model, tools: [remove, askUser()] });

interface Node extends Served {
  readonly runtime: Runtime;
  say(text: string, key?: string): Promise<Said>;
}

interface Said {
  readonly status: number;
  readonly isReplayed: boolean;
  readonly body: { turn?: string; text?: string | null; waitsFor?: string[]; error?: { code: string } };
}

/** A separate server over the file, as in another process. */
async function nodeOn(path: string): Promise<Node> {
  const runtime = await createRuntime({ agents: [desk], stores: sqliteStores(path) });
  onTestFinished(() => runtime.shutdown());
  const served = serve(runtime, { surfaces: [plainSurface] });
  const say = async (text: string, key?: string): Promise<Said> => {
    const headers = key === undefined ? {} : { "idempotency-key": key };
    const response = await served.ask("/plain", { method: "POST", body: { text, conversation: "c" }, headers });
    const body = (await response.json()) as Said["body"];
    return { status: response.status, isReplayed: response.headers.get("idempotency-replayed") === "true", body };
  };
  return { ...served, runtime, say };
}

async function decisionsOf({ runtime }: Node): Promise<unknown[]> {
  const decided = await runtime.requests({ status: "decided" });
  return decided.map(({ decision }) => decision?.result?.text ?? decision?.reason);
}

async function turnsOf({ runtime }: Node): Promise<number> {
  return (await runtime.turns()).length;
}

describe("a message that answered a waiting turn, sent again with its key", () => {
  it("has the same outcome after the turn's end, and starts no turn", async () => {
    const node = await nodeOn(temporaryFile());
    const { body: first } = await node.say("ask");
    const answered = await node.say("ann", "k");
    expect(answered).toMatchObject({ status: 200, isReplayed: false, body: { turn: first.turn, text: "said ask" } });
    for (let time = 0; time < 2; time += 1)
      expect(await node.say("ann", "k")).toEqual({ ...answered, isReplayed: true });
    expect([await turnsOf(node), await decisionsOf(node)]).toEqual([1, ["ann"]]);
    const next = await node.say("ann", "l");
    expect(next).toMatchObject({ isReplayed: false, body: { text: "said ann" } });
    expect(next.body.turn).not.toBe(first.turn);
    expect(await node.say("ann", "k")).toEqual({ ...answered, isReplayed: true });
  });

  it("does not answer a second question", async () => {
    const node = await nodeOn(temporaryFile());
    const { body: first } = await node.say("ask twice");
    const answered = await node.say("ann", "k");
    expect(answered.body).toMatchObject({ turn: first.turn, waitsFor: [expect.anything()] });
    expect(answered.body.waitsFor).not.toEqual(first.waitsFor);
    expect(await node.say("ann", "k")).toEqual({ ...answered, isReplayed: true });
    expect(await decisionsOf(node)).toEqual(["ann"]);
    expect((await node.say("bob", "l")).body).toMatchObject({ turn: first.turn, text: "said ask twice" });
    expect((await node.say("ann", "k")).body).toMatchObject({ turn: first.turn, text: "said ask twice" });
    expect([await turnsOf(node), await decisionsOf(node)]).toEqual([1, ["ann", "bob"]]);
  });

  it.each([
    ["while the turn waits", "ask twice", 422],
    ["after its end", "ask", 422],
  ])("is refused with other content, %s", async (_, text, status) => {
    const node = await nodeOn(temporaryFile());
    await node.say(text);
    await node.say("ann", "k");
    const refused = await node.say("bob", "k");
    expect([refused.status, refused.body.error?.code]).toEqual([status, "key_reused"]);
    expect([await turnsOf(node), await decisionsOf(node)]).toEqual([1, ["ann"]]);
  });

  it("has one outcome if it reaches two servers at once", async () => {
    const path = temporaryFile();
    const nodes = [await nodeOn(path), await nodeOn(path)] as const;
    const { body: first } = await nodes[0].say("ask twice");
    const said = await Promise.all(Array.from({ length: 10 }, (_, index) => nodes[index % 2 ? 0 : 1].say("ann", "k")));
    expect(said.map(({ status, body }) => [status, body.turn])).toEqual(said.map(() => [200, first.turn]));
    expect(said.filter(({ isReplayed }) => !isReplayed)).toHaveLength(1);
    expect([await turnsOf(nodes[0]), await decisionsOf(nodes[0])]).toEqual([1, ["ann"]]);
    const last = await Promise.all(nodes.map((node) => node.say("bob", "l")));
    expect(last.map(({ status, body }) => [status, body.text])).toEqual(last.map(() => [200, "said ask twice"]));
    expect([await turnsOf(nodes[1]), await decisionsOf(nodes[1])]).toEqual([1, ["ann", "bob"]]);
  });
});

describe("a message that rejected approvals, sent again with its key", () => {
  it("rejects what the first attempt left open, and no later requests", async () => {
    const path = temporaryFile();
    const node = await nodeOn(path);
    const { body: first } = await node.say("remove remove twice");
    const [one = "", two = ""] = first.waitsFor ?? [];
    // The state after the process rejected the first approval.
    await node.runtime.decide(one, { verdict: "rejected", by: "ann", reason: "no", key: "plain.send/k" });
    const other = await nodeOn(path);
    const again = await other.say("no", "k");
    expect(again).toMatchObject({ status: 200, isReplayed: true, body: { turn: first.turn } });
    expect(await decisionsOf(other)).toEqual(["no", "no"]);
    expect(again.body.waitsFor).toHaveLength(2);
    expect(again.body.waitsFor).not.toContain(two);
    expect(await other.say("no", "k")).toEqual(again);
    expect(await other.runtime.requests()).toHaveLength(2);
    expect((await other.say("yes", "k")).status).toBe(422);
  });

  it("has the same outcome after the turn's end", async () => {
    const node = await nodeOn(temporaryFile());
    await node.say("remove remove");
    const rejected = await node.say("no", "k");
    expect(rejected).toMatchObject({ status: 200, isReplayed: false, body: { text: "said remove remove" } });
    expect(await node.say("no", "k")).toEqual({ ...rejected, isReplayed: true });
    expect([await turnsOf(node), await decisionsOf(node)]).toEqual([1, ["no", "no"]]);
  });
});

describe("the key of a message that started a turn", () => {
  it.each(["ask", "remove", "ask ask", "ask remove"])(
    "returns that turn, which waits for %j, and answers nothing",
    async (text) => {
      const node = await nodeOn(temporaryFile());
      const started = await node.say(text, "k");
      expect([started.status, started.isReplayed, started.body.waitsFor?.length]).toEqual([
        200,
        false,
        text.split(" ").length,
      ]);
      expect(await node.say(text, "k")).toEqual({ ...started, isReplayed: true });
      expect((await node.say("another", "k")).status).toBe(422);
      expect([await turnsOf(node), await decisionsOf(node)]).toEqual([1, []]);
    },
  );
});
