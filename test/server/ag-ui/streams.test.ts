// A run followed by others, at other servers, after a kill -9 and by several people at once; all with the official client.
import { type AgentDefinition, createRuntime, type RuntimeOptions } from "troupe";
import { agUiSurface } from "troupe/server";
import { redisStores } from "troupe/stores/redis";
import { sqliteStores } from "troupe/stores/sqlite";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { temporaryFile } from "../../stores/temporary-file.ts";
import { redisProgram, RedisServer } from "../../support/redis-server.ts";
import { slowSpeaker } from "../../support/slow-speaker.ts";
import { startProgram } from "../../support/waiting-process.ts";
import { serve } from "../served.ts";
import { deskServed } from "./ag-ui-served.ts";
import { type Reached, resumeWith, Thread } from "./official-client.ts";

const half = "The first half, ";
const whole = "The first half, and the second.";

async function node(definition: AgentDefinition, options: Partial<RuntimeOptions> = {}) {
  const runtime = await createRuntime({ agents: [definition], ...options });
  onTestFinished(() => runtime.shutdown());
  return { ...serve(runtime, { surfaces: [agUiSurface()] }), runtime };
}

/** Starts a run, and resolves when its client shows the first half; `done` is the end of the run. */
async function heardHalf(thread: Thread): Promise<{ readonly done: Promise<unknown> }> {
  const done = thread.run({ runId: "run" });
  done.catch(() => undefined);
  await expect.poll(() => thread.shown(), { timeout: 30_000 }).toEqual(["user: speak", `assistant: ${half}`]);
  return { done };
}

/** The events until the connection broke. The client itself does not report the error of a broken connection. */
async function* untilBroken(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  try {
    for await (const bytes of body ?? []) yield bytes;
  } catch {
    // It ends here.
  }
}

function speaking(server: Reached): Thread {
  const thread = new Thread(server, { agent: "speaker" });
  thread.client.addMessage({ id: "said", role: "user", content: "speak" });
  return thread;
}

test("the same run sent again in the middle: both clients get the whole text once", async () => {
  const goOn = Promise.withResolvers<void>();
  const { server, runtime } = await node(
    slowSpeaker({ said: () => undefined, goOn: goOn.promise, whole: goOn.promise }),
    { streaming: "always" },
  );
  const [one, other] = [speaking(server), speaking(server)];
  const first = await heardHalf(one);
  const second = await heardHalf(other);
  goOn.resolve();
  await Promise.all([first.done, second.done]);
  expect([one.shown(), one.isReplayed, one.outcome]).toEqual([
    ["user: speak", `assistant: ${whole}`],
    false,
    { success: [] },
  ]);
  expect([other.shown(), other.isReplayed, other.outcome]).toEqual([one.shown(), true, { success: [] }]);
  expect(await runtime.turns()).toHaveLength(1);
});

test("after kill -9 in the middle of a text its run continues at another server, without a duplicate piece", async () => {
  const path = temporaryFile();
  const process = startProgram(new URL("../killed-speaker.ts", import.meta.url).pathname, [path, "ag-ui"]);
  onTestFinished(() => process.kill());
  const base = await process.firstLine;
  const thread = speaking({
    fetch: async (request) => {
      const response = await fetch(new Request(`${base}${new URL(request.url).pathname}`, request));
      return new Response(ReadableStream.from(untilBroken(response.body)), response);
    },
  });
  const before = await heardHalf(thread);
  process.kill();
  await process.ended;
  await before.done;
  expect([thread.outcome, thread.shown()]).toEqual([undefined, ["user: speak", `assistant: ${half}`]]);
  const goOn = Promise.withResolvers<void>();
  const speaker = slowSpeaker({ said: () => undefined, goOn: goOn.promise, whole: goOn.promise });
  const after = await node(speaker, { stores: sqliteStores(path) });
  expect(await after.runtime.recover()).toHaveLength(1);
  thread.moveTo(after.server);
  goOn.resolve();
  await thread.run({ runId: "run" });
  expect([thread.isReplayed, thread.outcome]).toEqual([true, { success: [] }]);
  expect(thread.shown()).toEqual(["user: speak", `assistant: ${whole}`]);
  expect(await after.runtime.turns()).toHaveLength(1);
});

test("of two people who answer an interrupt at once the first counts, and the other is told", async () => {
  vi.spyOn(console, "error").mockReturnValue();
  const { server, removed } = await deskServed();
  const [ann, second] = await twoAtOneInterrupt(server, server);
  const outcomes = await Promise.allSettled([
    ann.run(resumeWith(ann, { approved: true })),
    second.run(resumeWith(second, { approved: false, reason: "no" })),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  expect(String((outcomes[1] as PromiseRejectedResult).reason)).toContain("approved by ann");
  expect(removed).toEqual(["a.txt"]);
});

/** Two pages of one user, which both show the same interrupt. */
async function twoAtOneInterrupt(one: Reached, other: Reached): Promise<readonly [Thread, Thread]> {
  const ann = await new Thread(one).say("remove");
  const second = new Thread(other);
  await second.run();
  expect(second.client.pendingInterrupts).toEqual(ann.client.pendingInterrupts);
  expect(second.shown()).toEqual(ann.shown());
  return [ann, second];
}

async function twoNodes() {
  const place = await RedisServer.start();
  onTestFinished(() => place.stop());
  const open = () => deskServed({ stores: redisStores({ url: place.url }) });
  return [await open(), await open()] as const;
}

describe.skipIf(!redisProgram)("two servers over one Redis", () => {
  test("a run that waits at one is resumed at the other", async () => {
    const [one, other] = await twoNodes();
    const thread = await new Thread(one.server).say("delegate remove");
    expect(thread.client.pendingInterrupts).toHaveLength(1);
    thread.moveTo(other.server);
    await thread.run(resumeWith(thread, { approved: true }));
    expect(thread.shown().at(-1)).toMatch(/^assistant: so: .*Read it\./);
    expect([...one.removed, ...other.removed]).toEqual(["a.txt"]);
    await thread.say("hello");
    expect(thread.shown().at(-1)).toBe("assistant: 2: hello");
  });

  test("of two concurrent answers, at both of them, the first counts", async () => {
    vi.spyOn(console, "error").mockReturnValue();
    const [one, other] = await twoNodes();
    const threads = await twoAtOneInterrupt(one.server, other.server);
    const outcomes = await Promise.allSettled(
      threads.map((thread, index) => thread.run(resumeWith(thread, { approved: index === 0, reason: "no" }))),
    );
    const isApproved = outcomes[0]?.status === "fulfilled";
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    const refused = outcomes.find((outcome) => outcome.status === "rejected");
    expect(String(refused?.reason)).toContain(`${isApproved ? "approved" : "rejected"} by ann`);
    expect([...one.removed, ...other.removed]).toEqual(isApproved ? ["a.txt"] : []);
  });
});
