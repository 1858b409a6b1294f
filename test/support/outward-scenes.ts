import { setImmediate as loopTurn } from "node:timers/promises";
import { expect, onTestFinished } from "vitest";
import { z } from "zod";
import {
  clientTool,
  defineAgent,
  localQueues,
  type MessageStore,
  type ModelRequest,
  subagent,
  textOf,
} from "../../src/index.ts";
import { remoteAgent } from "../../src/remote/index.ts";
import { type ScriptedAnswer, scriptedModel } from "../../src/testing/index.ts";
import { clientOf, fetchOf, servedDesk } from "../server/a2a/a2a-served.ts";
import { answer, asking, configOf, hooked, isEnded, type Item } from "../server/a2a/push-served.ts";
import { tokens } from "../server/served.ts";
import type { CommitWatch } from "./commit-watch.ts";
import type { EffectKind } from "./effect-kinds.ts";
import { begin, modelOf, once, play, type PlayScene, toolOf, watchedQueues } from "./effect-scenes.ts";
import { startReceiver } from "./hook-receiver.ts";
import { elapse } from "./journal-probes.ts";
import { startRawServer } from "./raw-server.ts";
import { calling, createGate } from "./turn-probes.ts";

/** Jobs of a client's agent, which a worker runs: added, added again, removed. */
export const playQueues: PlayScene = async (stage, watch) => {
  const gate = createGate();
  let failures = 0;
  const agents = [
    defineAgent({
      name: "lead",
      model: modelOf(watch, once("flaky", "hold")),
      tools: [
        toolOf(watch, "flaky", {
          effect: "none",
          queue: "far",
          maxAttempts: 2,
          act: () => {
            failures += 1;
            if (failures === 1) throw new Error("not now");
            return "done";
          },
        }),
        toolOf(watch, "hold", { effect: "none", queue: "near", act: ({ signal }) => gate.pass(signal) }),
      ],
    }),
  ];
  const queues = { ...watchedQueues(stage, watch, localQueues({ clock: stage.clock })), kind: "shared" };
  await stage.open({ agents, through: watch.through, role: "worker", queues });
  const mine = { ...queues, close: async () => undefined };
  const client = await stage.open({ agents, through: watch.through, role: "client", queues: mine });
  const agent = await client.agent("lead", { agentId: "lead" });
  await agent.start();
  const turn = agent.executeTurn("go");
  await elapse(stage.clock, gate.reached());
  await elapse(stage.clock, seen(watch, "tool again"));
  await elapse(stage.clock, seen(watch, "job again"), 1_000);
  await turn.abort();
  await elapse(stage.clock, seen(watch, "job withdrawn"));
  // The client reads it from the store, perhaps before the worker's commit() resolves.
  expect(await elapse(stage.clock, turn.result)).toMatchObject({ stopReason: "user_requested" });
};

async function seen(watch: CommitWatch, kind: EffectKind): Promise<void> {
  while (!watch.kinds.includes(kind)) await loopTurn();
}

/** Timers of each kind that ends something: a turn at its time limit, a request, and a wait. */
export const playTimers: PlayScene = async (stage, watch) => {
  const gate = createGate();
  const slow = defineAgent({
    name: "slow",
    model: scriptedModel((_request, { signal }) => gate.pass(signal).then(() => "late")),
  });
  const script = ({ messages }: ModelRequest): ScriptedAnswer => {
    const results = messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content));
    if (results.length === 1) return calling({ name: "subagent_wait", arguments: { timeoutSeconds: 20 } });
    if (results.length === 2) {
      watch.starts("end of a wait", "call.expired");
      return calling("pick");
    }
    if (results.length === 3) {
      watch.startsAfter("expiry", "decide", (_key, _requestId, { verdict }) => verdict === "expired");
      return calling("hold");
    }
    return calling({ name: "slow", arguments: { input: "go" } });
  };
  const hold = toolOf(watch, "hold", {
    effect: "none",
    act: ({ signal }) =>
      gate.pass(signal).finally(() => {
        watch.startsAfter("deadline", "abort", ({ agentId }, { stopReason }) => {
          return agentId === "lead" && stopReason === "time_limit";
        });
      }),
  });
  const pick = clientTool({ name: "pick", description: "Picks.", parameters: z.object({}), expiresAfterMs: 30_000 });
  const { result } = await begin(stage, watch, {
    lead: {
      model: modelOf(watch, script),
      tools: [pick, hold, subagent(slow, { mode: "background" })],
      budget: { maxSeconds: 60 },
    },
  });
  expect(await elapse(stage.clock, result)).toMatchObject({ status: "stopped", stopReason: "time_limit" });
};

/** A remote agent: its first message, the answer to its question, and the end of its task. */
export const playRemote: PlayScene = async (stage, watch) => {
  const { server } = await servedDesk();
  const way = await startRawServer(async (request, response, body) => {
    const { method } = body === "" ? { method: "" } : (JSON.parse(body) as { readonly method: string });
    const sends = method.startsWith("Send");
    if (sends && watch.kinds.includes("remote message")) watch.starts("remote answer", "request.decided");
    else if (sends) watch.starts("remote message", "tool.noted", (entry) => "callId" in entry);
    if (sends) watch.starts("remote message", "tool.started", (entry) => "name" in entry && entry.name === "desk");
    if (method.startsWith("Cancel")) watch.startsAfter("remote end", "abort", ({ agentId }) => agentId === "lead");
    const init = { method: request.method ?? "GET", headers: request.headers as Record<string, string> };
    const asked = new Request(`${way.origin}${request.url}`, body === "" ? init : { ...init, body });
    const answered = await server.fetch(asked);
    response.writeHead(answered.status, Object.fromEntries(answered.headers));
    for await (const piece of answered.body ?? []) response.write(piece);
    response.end();
  });
  onTestFinished(() => way.stop());
  const desk = remoteAgent({ name: "desk", url: `${way.origin}/a2a/desk`, auth: tokens.ann });
  const model = modelOf(watch, () => calling({ name: "desk", arguments: { input: "ask" } }));
  const { agent, turn, result } = await begin(stage, watch, { lead: { model, tools: [desk] } });
  for (let asked = 0; asked < 2; asked += 1) {
    const rest = await turn.settled;
    if (asked === 1) break;
    const [request] = await agent.requests();
    expect([rest.status, request?.kind]).toEqual(["waiting", "question"]);
    await agent.decide(request?.requestId ?? "", { verdict: "answered", result: "Ann", by: "ada" });
  }
  await turn.abort();
  expect(await result).toMatchObject({ stopReason: "user_requested" });
};

/** A copy of the conversation in a custom store. */
export const playCopies: PlayScene = async (stage, watch) => {
  const copied = createGate();
  const messages: MessageStore = {
    append: async (_agentId, added) => {
      for (const { id } of added) watch.copies(id);
      if (added.some(({ role, content }) => role === "assistant" && textOf(content) === "the end")) copied.open();
    },
    getRecent: async () => [],
    compact: async () => undefined,
  };
  await play(stage, watch, {
    lead: { model: modelOf(watch, () => "the end") },
    options: { projections: { messages } },
  });
  await elapse(stage.clock, copied.pass());
};

/** A webhook endpoint for a turn. */
export const playWebhooks: PlayScene = async (stage, watch) => {
  const receiver = await startReceiver(({ body }) => {
    const { task, statusUpdate } = body as Item;
    const state = (task ?? statusUpdate)?.status.state.replace("TASK_STATE_", "");
    if (state === "INPUT_REQUIRED") watch.starts("webhook", "request.opened");
    else watch.starts("webhook", state === "WORKING" ? "request.decided" : "turn.ended");
    return 200;
  });
  const { server, runtime } = await hooked({ stores: watch.through(stage.look()), receiver });
  const client = await clientOf(fetchOf(server));
  const task = await asking(client);
  await client.createTaskPushNotificationConfig(configOf(task.id, receiver.origin));
  await receiver.until((calls) => calls.length > 0);
  await answer(client, task);
  await receiver.until(isEnded);
  await server.close();
  await runtime.shutdown();
};
