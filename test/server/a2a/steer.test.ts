import { TaskState } from "@a2a-js/sdk";
import { createRuntime, textOf } from "troupe";
import { a2aSurface } from "troupe/server";
import { expect, it, onTestFinished } from "vitest";
import { serve } from "../served.ts";
import { steeredWorker } from "../steered-worker.ts";
import { answerIn, clientOf, fetchOf, saying, sent } from "./a2a-served.ts";

it("a message to a working task is another input of its turn, once for each message id", async () => {
  const { definition, work } = steeredWorker();
  const runtime = await createRuntime({ agents: [definition] });
  onTestFinished(() => runtime.shutdown());
  const { server } = serve(runtime, { surfaces: [await a2aSurface({ agents: [{ definition }] })] });
  const client = await clientOf(fetchOf(server), { name: "worker" });
  const task = await sent(client, saying("go", { returnImmediately: true }));
  await work.reached();
  const more = saying("use blue", { taskId: task.id, messageId: "note-1", returnImmediately: true });
  for (const again of [more, more]) {
    const steered = await sent(client, again);
    expect([steered.id, steered.status?.state]).toEqual([task.id, TaskState.TASK_STATE_WORKING]);
  }
  const waiting = sent(client, saying("and red", { taskId: task.id }));
  work.open();
  const ended = await waiting;
  const read = await client.getTask({ tenant: "", id: task.id });
  expect(read.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
  expect(answerIn(read)).toMatch(/^heard: (?:use blue|and red)$/);
  expect([task.id, `${task.id.slice(0, -1)}2`]).toContain(ended.id);
  const turns = await runtime.turns();
  const messages = await (await runtime.find(turns[0]?.agentId ?? "")).getMessages();
  const inputs = messages.filter(({ role, content }) => role === "user" && textOf(content) === "use blue");
  expect(inputs).toHaveLength(1);
});
