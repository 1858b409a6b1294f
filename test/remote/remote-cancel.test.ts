import { expect, test } from "vitest";
import { requestOf } from "../support/deciding.ts";
import { entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { createFakeClock } from "troupe/testing";
import { createGate, nextEvent } from "../support/turn-probes.ts";
import {
  type RemoteServer,
  deskCaller,
  longTime,
  openRemoteServer,
  openWorker,
  polling,
  watchTime,
} from "./remote-server.ts";

async function endOf({ runtime }: RemoteServer): Promise<string | null | undefined> {
  const [turn] = await runtime.turns();
  return turn?.stopReason;
}

test("an abort of the turn cancels the task before the turn has ended", async () => {
  const gate = createGate<string>();
  const remote = await openWorker(() => gate.pass());
  const { agent } = await deskCaller(remote, { says: ["work"] });
  const turn = agent.executeTurn("go");
  await gate.reached();
  await turn.abort();
  expect((await turn.result).stopReason).toBe("user_requested");
  await expect.poll(() => endOf(remote), polling).toBe("user_requested");
});

test("an abort while the task waits for an answer also cancels it", async () => {
  const desk = await openRemoteServer();
  const { agent } = await deskCaller(desk, { says: ["ask"] });
  const turn = agent.executeTurn("go");
  await requestOf(turn);
  await turn.abort();
  expect((await turn.result).stopReason).toBe("user_requested");
  await expect.poll(() => endOf(desk), polling).toBe("user_requested");
});

test("a rejected question ends the task", async () => {
  const desk = await openRemoteServer();
  const { agent, runtime, stores } = await deskCaller(desk, { says: ["ask"] });
  const turn = agent.executeTurn("go");
  const { requestId } = await requestOf(turn);
  await runtime.decide(requestId, { verdict: "rejected", reason: "none of its business" });
  expect((await turn.result).status).toBe("completed");
  const [settled] = await entriesOfType(stores, "caller", "tool.settled");
  expect(settled).toMatchObject({ outcome: "error", error: { code: "remote_denied" } });
  expect((await toolTextsOf(agent))[0]).toContain("none of its business");
  await expect.poll(() => endOf(desk), polling).toBe("user_requested");
});

test("the turn's limit on working time cancels the task", async () => {
  const gate = createGate<string>();
  const remote = await openWorker(() => gate.pass());
  const clock = createFakeClock();
  const { agent } = await deskCaller(remote, { says: ["work"], maxSeconds: 60, clock });
  const turn = agent.executeTurn("go");
  await gate.reached();
  clock.advance(61_000);
  expect((await turn.result).stopReason).toBe("time_limit");
  await expect.poll(() => endOf(remote), polling).toBe("user_requested");
});

test("the timeout of the call also cancels it, and the turn goes on", async () => {
  const gate = createGate<string>();
  const remote = await openWorker(() => gate.pass());
  const endTime = watchTime();
  const { agent, stores, runtime } = await deskCaller(remote, { says: ["work"], timeoutMs: longTime });
  const told = nextEvent(runtime, ({ type }) => type === "tool.progress");
  const turn = agent.executeTurn("go");
  await Promise.all([told, gate.reached()]);
  endTime();
  expect((await turn.result).status).toBe("completed");
  const [settled] = await entriesOfType(stores, "caller", "tool.settled");
  expect(settled?.error).toMatchObject({ code: "remote_timeout", retryable: true });
  await expect.poll(() => endOf(remote), polling).toBe("user_requested");
});

test("a process that shuts down cancels nothing", async () => {
  const gate = createGate<string>();
  const remote = await openWorker(() => gate.pass());
  const { agent, runtime } = await deskCaller(remote, { says: ["work"] });
  agent.executeTurn("go").result.catch(() => undefined);
  await gate.reached();
  await runtime.shutdown();
  gate.open("worked");
  await expect.poll(() => endOf(remote), polling).toBe("completed");
});
