// One conversation over all protocols: begun on one, it continues, is answered, approved, cancelled and followed on the others.
import { askUser, createRuntime, defineAgent, defineTool, type Runtime, type RuntimeOptions, textOf } from "troupe";
import { a2aSurface, agUiSurface, aiSdkSurface, apiSurface, openaiSurface, tealSurface } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { amount } from "../support/full.ts";
import { slowSpeaker } from "../support/slow-speaker.ts";
import { serve, type Served } from "./served.ts";
import { type ConversationTurn, readUntil, type Wire, wires } from "./wires.ts";

interface ServedAgent extends Served {
  readonly runtime: Runtime;
  readonly removed: string[];
}

async function servedAgent(options: Partial<RuntimeOptions> = {}): Promise<ServedAgent> {
  const removed: string[] = [];
  const remove = defineTool({
    name: "remove",
    description: "Removes a file.",
    parameters: z.object({ path: z.string() }),
    needsApproval: true,
    execute: ({ path }) => {
      removed.push(path);
      return `removed ${path}`;
    },
  });
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    const said = textOf(last?.content ?? "");
    if (last?.role === "tool") return `so: ${said}`;
    if (said === "remove") return { toolCalls: [{ name: "remove", arguments: { path: "a.txt" } }] };
    if (said === "ask") return { toolCalls: [{ name: "ask_user", arguments: { question: "your name?" } }] };
    return `${messages.filter(({ role }) => role === "user").length}: ${said}`;
  });
  const definition = defineAgent({ name: "desk", model, tools: [remove, askUser()] });
  const runtime = await createRuntime({ agents: [definition], ...options });
  onTestFinished(() => runtime.shutdown());
  return { ...(await servedOn(runtime)), runtime, removed };
}

/** Behind every surface at once. */
async function servedOn(runtime: Runtime): Promise<Served> {
  const agents = [...runtime.definitions.values()].map((definition) => ({ definition, version: "1.0" }));
  const surfaces = [
    apiSurface(),
    tealSurface({ agents }),
    await a2aSurface(),
    agUiSurface(),
    aiSdkSurface(),
    openaiSurface(),
  ];
  return serve(runtime, { surfaces });
}

/** The only conversation. */
async function turnOfConversation(
  { runtime }: Pick<ServedAgent, "runtime">,
  conversation: string,
): Promise<ConversationTurn> {
  const agents = await runtime.list({ rootsOnly: true });
  expect(agents).toHaveLength(1);
  const [turn] = await runtime.turns();
  return { conversation, agentId: agents[0]?.agentId ?? "", turn: turn?.number ?? 0 };
}

const conversation = "the garden, 7/3";

describe.each(wires)("a conversation that begins on $name", (first: Wire) => {
  const others = wires.filter((wire) => wire !== first);

  it("continues on all others, and is one conversation", async () => {
    const served = await servedAgent();
    const answers: (string | null)[] = [];
    for (const wire of [first, ...others, first]) {
      answers.push(await wire.say(served, { conversation, text: "hello" }));
    }
    expect(answers).toEqual([1, 2, 3, 4, 5, 6, 7].map((number) => `${number}: hello`));
    expect(await turnOfConversation(served, conversation)).toMatchObject({ turn: 7 });
  });

  it("asks a question there, which is answered on any other", async () => {
    for (const other of others) {
      const served = await servedAgent();
      await first.say(served, { conversation, text: "ask" });
      const [request] = await served.runtime.requests();
      expect(request?.kind).toBe("question");
      const answer = { conversation, text: "Ann", requestId: request?.requestId ?? "" };
      expect([other.name, await other.answer(served, answer)]).toEqual([other.name, "so: Ann"]);
      expect(await turnOfConversation(served, conversation)).toMatchObject({ turn: 1 });
      expect(await first.say(served, { conversation, text: "hello" })).toBe("2: hello");
    }
  });

  it("does not exist for another caller, on any protocol", async () => {
    const served = await servedAgent();
    await first.say(served, { conversation, text: "a secret" });
    const heard: (string | null)[] = [];
    for (const wire of wires) heard.push(await wire.say(served, { as: "bob", conversation, text: "hello" }));
    expect(heard).toEqual(wires.map((_, index) => `${index + 1}: hello`));
    expect(await served.runtime.list({ ownerId: "ann" })).toHaveLength(1);
    const [agent] = await served.runtime.list({ ownerId: "ann" });
    const asBob: Served = { ...served, ask: (path, asked) => served.ask(path, { ...asked, as: "bob" }) };
    const place = { conversation, agentId: agent?.agentId ?? "", turn: 1 };
    const seen = wires.map(async ({ look }) => {
      const response = await look?.(asBob, place);
      return response?.status === 404 ? "" : ((await response?.text()) ?? "");
    });
    expect((await Promise.all(seen)).join("\n")).not.toContain("a secret");
  });
});

describe("an approval that was requested over A2A", () => {
  it("is decided by troupe's own API and by AG-UI concurrently: the first counts, and the other is told", async () => {
    const [, a2a] = wires;
    for (let round = 0; round < amount(20, 4); round += 1) {
      const served = await servedAgent();
      await a2a?.say(served, { conversation, text: "remove" });
      const [request] = await served.runtime.requests();
      const { requestId = "", argumentsHash = "" } = request ?? {};
      const isApproval = round % 2 === 0;
      const overApi = () =>
        served.ask(`/api/requests/${requestId.replace("#", ".")}`, {
          method: "POST",
          body: { verdict: isApproval ? "approved" : "rejected", argumentsHash },
        });
      const overAgUi = () => {
        const resume = [{ interruptId: requestId, status: "resolved", payload: { approved: !isApproval } }];
        const body = { threadId: conversation, runId: "r", messages: [], resume };
        return served.ask("/ag-ui/desk", { method: "POST", body });
      };
      const both = round % 4 < 2 ? [overApi(), overAgUi()] : [overAgUi(), overApi()].toReversed();
      const [byApi, byAgUi] = await Promise.all(both.map(async (answer) => await answer));
      const texts = await Promise.all([byApi?.text(), byAgUi?.text()]);
      const { agentId } = await turnOfConversation(served, conversation);
      await (await served.runtime.find(agentId)).turn(`${agentId}#1`).result;
      const [decided] = await served.runtime.requests({ status: "decided" });
      const isApproved = decided?.decision?.verdict === "approved";
      const apiWon = isApproved === isApproval;
      expect([byApi?.status, byAgUi?.status]).toEqual(apiWon ? [200, 409] : [409, 200]);
      expect(texts[apiWon ? 1 : 0]).toContain(`${isApproved ? "approved" : "rejected"} by ann`);
      expect(served.removed).toEqual(isApproved ? ["a.txt"] : []);
      expect(await a2a?.say(served, { conversation, text: "hello" })).toBe("2: hello");
    }
  });
});

describe.each(wires.filter(({ cancel }) => cancel !== undefined))("cancelling over $name", (wire: Wire) => {
  it.each(wires)("ends what $name has begun, and all surfaces show it", async (first: Wire) => {
    const served = await servedAgent();
    await first.say(served, { conversation, text: "remove" });
    const place = await turnOfConversation(served, conversation);
    const response = await wire.cancel?.(served, place);
    expect(response?.status).toBeLessThan(300);
    await response?.text();
    const { agentId } = place;
    await (await served.runtime.find(agentId)).turn(`${agentId}#1`).result;
    const turn = await (await served.ask(`/api/agents/${agentId}/turns/1`)).json();
    const task = await (await served.ask(`/a2a/desk/tasks/${agentId}.1`, { headers: { "a2a-version": "1.0" } })).json();
    expect(turn).toMatchObject({ status: "stopped", result: { stopReason: "user_requested" } });
    expect(task).toMatchObject({ status: { state: "TASK_STATE_CANCELED" } });
    expect(served.removed).toEqual([]);
    expect(await served.runtime.requests()).toEqual([]);
    for (const [index, next] of wires.entries()) {
      expect(await next.say(served, { conversation, text: "hello" })).toBe(`${index + 2}: hello`);
    }
  });
});

it("a text is sent on every other stream while it is written", async () => {
  const goOn = Promise.withResolvers<void>();
  const said = Promise.withResolvers<void>();
  const { model } = slowSpeaker({ said: said.resolve, goOn: goOn.promise, whole: goOn.promise });
  const runtime = await createRuntime({ agents: [defineAgent({ name: "desk", model })], streaming: "always" });
  onTestFinished(() => runtime.shutdown());
  const served = await servedOn(runtime);
  const first = wires.map(({ say }) => say)[0]?.(served, { conversation, text: "speak" });
  await said.promise;
  const place = await turnOfConversation({ runtime }, conversation);
  const looks = wires.flatMap(({ look }) => (look ? [look] : []));
  const streams = await Promise.all(looks.map((look) => look(served, place)));
  const readers = streams.map((response) => {
    if (response.body === null) throw new Error(`no stream: ${response.status}`);
    return response.body[Symbol.asyncIterator]();
  });
  await Promise.all(readers.map((reader) => readUntil(reader, "The first half, ")));
  goOn.resolve();
  await Promise.all(readers.map((reader) => readUntil(reader, "and the second.")));
  expect(await first).toBe("The first half, and the second.");
  for (const reader of readers) await reader.return?.();
});

it("a task of Teal, whose name its client does not choose, is the same agent in troupe's own API", async () => {
  const served = await servedAgent();
  const begun = await served.ask("/desk/1.0", { method: "POST", body: { items: [{ content: "remove" }] } });
  const { task_id: taskId } = (await begun.json()) as { readonly task_id: string };
  const [request] = await served.runtime.requests();
  const { requestId = "", argumentsHash = "" } = request ?? {};
  const approval = { method: "POST", body: { verdict: "approved", argumentsHash } };
  expect((await served.ask(`/api/requests/${requestId.replace("#", ".")}`, approval)).status).toBe(200);
  await (await served.runtime.find(taskId)).turn(`${taskId}#1`).result;
  expect(served.removed).toEqual(["a.txt"]);
  const headers = { prefer: "wait=30" };
  const next = await served.ask(`/api/agents/${taskId}/turns`, { method: "POST", body: { input: "hello" }, headers });
  expect(await next.json()).toMatchObject({ result: { text: "2: hello" } });
  const body = { task_id: taskId, items: [{ content: "again" }] };
  const again = await served.ask("/desk/1.0", { method: "POST", body });
  expect(await again.json()).toMatchObject({ content: { output: "3: again" } });
});
