// Another message for a running turn, with the official client.
import { EventType } from "@ag-ui/core";
import { createRuntime, textOf } from "troupe";
import { agUiSurface } from "troupe/server";
import { expect, onTestFinished, test, vi } from "vitest";
import { serve } from "../served.ts";
import { steeredWorker } from "../steered-worker.ts";
import { Thread } from "./official-client.ts";

const steering = { forwardedProps: { ifBusy: "steer" } };

async function workerServed() {
  const { definition, work } = steeredWorker();
  const runtime = await createRuntime({ agents: [definition], streaming: "always" });
  onTestFinished(() => runtime.shutdown());
  const { server } = serve(runtime, { surfaces: [agUiSurface()] });
  const thread = () => new Thread(server, { agent: "worker" });
  /** The user messages of the model's conversation, in their order. */
  const inputs = async (): Promise<readonly string[]> => {
    const [turn] = await runtime.turns();
    const messages = await (await runtime.find(turn?.agentId ?? "")).getMessages();
    return messages.filter(({ role }) => role === "user").map(({ content }) => textOf(content));
  };
  return { runtime, work, thread, inputs };
}

/** Adds the message as a page does, which leaves the stream of the run and follows the turn with the next one. */
async function steer(thread: Thread, id: string, content: string, onSteer: () => void = () => undefined) {
  await thread.client.detachActiveRun();
  thread.client.addMessage({ id, role: "user", content });
  await thread.run(steering, (event) => {
    if (event.type === EventType.CUSTOM && event.name === "troupe.steer") onSteer();
  });
}

const steersOf = (thread: Thread): unknown[] =>
  thread.events.flatMap((event) =>
    event.type === EventType.CUSTOM && event.name === "troupe.steer" ? [event.value] : [],
  );

test("a message while a tool runs goes to the open turn, keeps the client's id, and is there after a reload", async () => {
  const { work, thread, inputs, runtime } = await workerServed();
  const one = thread();
  const first = one.say("go");
  await work.reached();
  await steer(one, "note-1", "use blue", () => work.open());
  await first;
  expect(one.outcome).toEqual({ success: [] });
  expect(steersOf(one)).toEqual([{ messageId: "note-1", status: "delivered", turnId: expect.any(String), step: 2 }]);
  expect(one.shown().filter((line) => line.startsWith("user"))).toEqual(["user: go", "user: use blue"]);
  expect(one.shown().at(-1)).toBe("assistant: heard: use blue");
  expect(one.client.messages.filter(({ id }) => id === "note-1")).toHaveLength(1);
  expect(await runtime.turns()).toHaveLength(1);
  expect(await inputs()).toEqual(["go", "use blue"]);

  const page = await thread().run();
  const order = ["user: go", "assistant: [work]", "tool: worked", "user: use blue", "assistant: heard: use blue"];
  expect(page.shown()).toEqual(order);

  // The next message of either client begins the next turn.
  await one.say("more");
  await page.run();
  expect(await inputs()).toEqual(["go", "use blue", "more"]);
  expect(page.shown()).toEqual([...order, "user: more", "assistant: heard: more"]);
});

test("the same message again, also under another run id, is given once", async () => {
  const { work, thread, inputs } = await workerServed();
  const one = thread();
  const first = one.say("go");
  await work.reached();
  const again = thread();
  again.client.setMessages([...one.client.messages]);
  again.client.addMessage({ id: "note-1", role: "user", content: "use blue" });
  let count = 0;
  const bothGiven = (event: { readonly type: EventType }): void => {
    if (event.type === EventType.MESSAGES_SNAPSHOT && (count += 1) === 2) work.open();
  };
  one.client.addMessage({ id: "note-1", role: "user", content: "use blue" });
  await one.client.detachActiveRun();
  await Promise.all([one.run(steering, bothGiven), again.run(steering, bothGiven)]);
  await first;
  expect(await inputs()).toEqual(["go", "use blue"]);
  // After its end, too.
  const late = thread();
  late.client.setMessages([
    { id: "other-id", role: "user", content: "go" },
    { id: "note-1", role: "user", content: "use blue" },
  ]);
  await late.run(steering);
  expect((await inputs()).filter((text) => text === "use blue")).toHaveLength(1);
});

test("two clients steer at once: both inputs are taken once, and each sees the other's before the answer", async () => {
  const { work, thread, inputs, runtime } = await workerServed();
  const ann = thread();
  const first = ann.say("go");
  await work.reached();
  const other = thread();
  other.client.setMessages([...ann.client.messages]);
  let given = 0;
  const onSteer = (): void => {
    if ((given += 1) === 2) work.open();
  };
  await Promise.all([steer(ann, "ann-1", "use blue", onSteer), steer(other, "other-1", "and red", onSteer)]);
  await first;
  expect(await runtime.turns()).toHaveLength(1);
  expect([...(await inputs())].sort()).toEqual(["and red", "go", "use blue"]);
  for (const client of [ann, other]) {
    const shown = client.shown();
    expect([...shown].sort()).toEqual(
      [
        "assistant: [work]",
        `assistant: heard: ${(await inputs()).at(-1)}`,
        "tool: worked",
        "user: and red",
        "user: go",
        "user: use blue",
      ].sort(),
    );
    expect(shown.at(-1)).toMatch(/^assistant: heard/);
  }
});

test("without an open turn the message starts one, and only `refuse` and `steer` are taken", async () => {
  const { work, thread, inputs } = await workerServed();
  work.open();
  const one = await thread().say("go", steering);
  expect(one.outcome).toEqual({ success: [] });
  expect(await inputs()).toEqual(["go"]);
  vi.spyOn(console, "error").mockReturnValue();
  await expect(thread().say("x", { forwardedProps: { ifBusy: "queue" } })).rejects.toThrow(
    /forwardedProps.ifBusy is the text/,
  );
});

test("without it, a message while a turn is open is refused", async () => {
  const { work, thread, inputs } = await workerServed();
  const one = thread();
  const first = one.say("go");
  await work.reached();
  vi.spyOn(console, "error").mockReturnValue();
  await expect(thread().say("use blue", { forwardedProps: { theme: "dark" } })).rejects.toThrow(/409/);
  work.open();
  await first;
  expect(await inputs()).toEqual(["go"]);
});
