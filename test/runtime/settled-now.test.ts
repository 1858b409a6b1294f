import { expect, it } from "vitest";
import {
  askUser,
  createAgentLoop,
  defineAgent,
  type Runtime,
  type Stores,
  type Turn,
  type TurnRest,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { startAgent } from "../support/deciding.ts";
import { elapse, loopTurns, toolTexts } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const asked = (name: string) => ({ name: "ask_user", arguments: { question: name } });

/** Asks two questions at once and then a third one. */
function clerk() {
  const model = scriptedModel(({ messages }) => {
    const answers = toolTexts(messages);
    if (answers.length === 0) return calling(asked("one"), asked("two"));
    return answers.length === 2 ? calling(asked("three")) : answers.join();
  });
  return defineAgent({ name: "clerk", model, tools: [askUser()] });
}

const MOST = 20;

/** Answers one open request after another while the turn waits. Returns how many were open each time. */
async function answerAll(turn: Turn, answer: (requestId: string, prompt: string) => Promise<unknown>) {
  const open: number[] = [];
  let rest: TurnRest;
  while ((rest = await turn.settled).status === "waiting" && open.length < MOST) {
    if (rest.reason !== "request") throw new Error(`expected a wait for a request, not ${rest.reason}`);
    open.push(rest.requests.length);
    const [request] = rest.requests;
    if (request) await answer(request.requestId, request.prompt);
  }
  return { open, status: rest.status };
}

const answering = (runtime: Runtime) => (requestId: string) =>
  runtime.decide(requestId, { verdict: "answered", result: "yes" });

describeRuntimes("turn.settled, read repeatedly", (stage) => {
  it("returns the open requests once per decision, and then always the result", async () => {
    const runtime = await stage().open({ agents: [clerk()] });
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = agent.executeTurn("go");
    expect(await answerAll(turn, answering(runtime))).toEqual({ open: [2, 1, 1], status: "completed" });
    expect([(await turn.settled).status, (await agent.turn("c#1").settled).status]).toEqual(["completed", "completed"]);
  });

  it("does the same if another process decides and reads it", async () => {
    const runtime = await stage().open({ agents: [clerk()] });
    const agent = await startAgent(runtime, "clerk", "c");
    await agent.executeTurn("go").id;
    const other = await stage().open({ agents: [] });
    const turn = (await other.find("c")).turn("c#1");
    const answered = answerAll(turn, answering(other));
    expect(await elapse(stage().clock, answered)).toEqual({ open: [2, 1, 1], status: "completed" });
  });

  it("omits a request that is decided but not processed yet, and ignores a pause that was cancelled", async () => {
    const first = await stage().openProcess({ agents: [clerk()] });
    const agent = await startAgent(first.runtime, "clerk", "c");
    const turn = agent.executeTurn("go");
    await turn.settled;
    const other = await stage().open({ agents: [] });
    first.freeze();
    const [request] = await other.requests({ status: "open" });
    await other.decide(request?.requestId ?? "", { verdict: "answered", result: "yes" });
    const seen: string[] = [];
    const rest = (await other.find("c")).turn("c#1").settled;
    rest.then(
      (at) => seen.push(at.status),
      (error: unknown) => seen.push(String(error)),
    );
    await loopTurns(30);
    expect(seen).toEqual([]);
    first.thaw();
    const settled = await elapse(stage().clock, rest);
    expect(settled).toMatchObject({ status: "waiting", requests: [{ prompt: "two" }] });
    await agent.pause();
    expect(await turn.settled).toMatchObject({ status: "waiting" });
    await agent.resume();
    expect(await answerAll(turn, answering(first.runtime))).toEqual({ open: [1, 1], status: "completed" });
  });

  it("returns a pause once, and again if the turn was resumed and paused again", async () => {
    const runtime = await stage().open({ agents: [clerk()] });
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = agent.executeTurn("go");
    await turn.settled;
    await agent.pause();
    for (const { requestId } of await runtime.requests({ status: "open" }))
      await runtime.decide(requestId, { verdict: "answered", result: "yes" });
    expect(await turn.settled).toMatchObject({ status: "waiting", reason: "paused" });
    const seen: string[] = [];
    const next = turn.settled.then((rest) => seen.push(rest.status === "waiting" ? rest.reason : rest.status));
    await loopTurns(30);
    expect(seen).toEqual([]);
    expect(await agent.turn("c#1").settled).toMatchObject({ status: "waiting", reason: "paused" });
    await agent.resume();
    await next;
    expect(seen).toEqual(["request"]);
    await agent.pause();
    expect(await turn.settled).toMatchObject({ status: "waiting" });
    await agent.resume();
    expect(await answerAll(turn, answering(runtime))).toEqual({ open: [1], status: "completed" });
  });

  it("a loop that only waits makes no reads while nothing changes, in the same process and in another", async () => {
    let reads = 0;
    const counted = (stores: Stores): Stores => ({
      ...stores,
      treeActivity: (...given) => {
        reads += 1;
        return stores.treeActivity(...given);
      },
    });
    const runtime = await stage().open({ agents: [clerk()], through: counted });
    const agent = await startAgent(runtime, "clerk", "c");
    const started = agent.executeTurn("go");
    const rests: TurnRest[] = [];
    const loop = async (turn: Turn): Promise<string> => {
      let rest = await turn.settled;
      while (rest.status === "waiting") {
        rests.push(rest);
        rest = await turn.settled;
      }
      return rest.status;
    };
    const other = await stage().open({ agents: [], through: counted });
    await started.settled;
    const ends = [loop(started), loop((await other.find("c")).turn("c#1"))];
    await loopTurns(100);
    expect(rests.length).toBeLessThanOrEqual(1);
    const before = reads;
    await loopTurns(100);
    expect(reads).toBe(before);
    await agent.abort();
    expect(await elapse(stage().clock, Promise.all(ends))).toEqual(["stopped", "stopped"]);
  });

  it("returns a pause for a queued turn while its agent is paused within another turn", async () => {
    const runtime = await stage().open({ agents: [clerk()] });
    const agent = await startAgent(runtime, "clerk", "c");
    const first = agent.executeTurn("go");
    await first.settled;
    const second = agent.executeTurn("then", { ifBusy: "queue" });
    await second.id;
    await agent.pause();
    expect(await second.settled).toEqual({ status: "waiting", turnId: "c#2", reason: "paused" });
    expect(await second.current()).toMatchObject({ status: "queued" });
    const next = second.settled;
    await agent.resume();
    await first.abort();
    expect(await next).toMatchObject({ status: "waiting", reason: "request" });
  });
});

it("settled of a stateless loop's turn returns the open requests, and its result even after its runtime has closed", async () => {
  const turn = createAgentLoop(clerk()).executeTurn([{ role: "user", content: "go" }]);
  const answer = (requestId: string) => turn.decide(requestId, { verdict: "answered", result: "yes" });
  expect(await answerAll(turn, answer)).toEqual({ open: [2, 1, 1], status: "completed" });
  await turn.result;
  await loopTurns(20);
  expect((await turn.settled).status).toBe("completed");
});
