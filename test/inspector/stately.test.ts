import { expect, it, onTestFinished } from "vitest";
import { createRuntime, memoryStores } from "../../src/index.ts";
import { type ActorFrame, createInspector, type InspectionFrame, startInspector } from "../../src/inspector/index.ts";
import { MOST_ACTORS, TreeFrames } from "../../src/inspector/stately/tree-frames.ts";
import { watched, watchedTeam } from "./team.ts";
import { listenTo } from "./visitors.ts";

function actor(sessionId: string, more: Partial<ActorFrame> = {}): ActorFrame {
  const base = { sessionId, rootId: "desk", createdAt: "0", id: sessionId, _version: "0.7.0" };
  const fixed = { name: sessionId, parentId: undefined, definition: "{}", snapshot: { status: "active" } };
  return { type: "@xstate.actor", ...base, ...fixed, ...more };
}

function treeOf(rootId?: string) {
  const sent: InspectionFrame[] = [];
  const frames = new TreeFrames({ rootId, send: (frame) => sent.push(frame) });
  return { frames, ids: () => sent.map(({ sessionId }) => sessionId) };
}

it("without a client, an event reads no child and builds no frame", () => {
  const inspector = createInspector();
  let looks = 0;
  const ref = { id: "desk", logic: { config: { id: "agent" } }, src: "agent" };
  const context = {
    get openChildIds(): readonly string[] {
      looks += 1;
      return ["desk~1"];
    },
  };
  const tell = (event: object): void => inspector.onInspect("desk", event as Parameters<typeof inspector.onInspect>[1]);
  tell({ type: "@xstate.actor", actorRef: ref });
  const snapshot = { status: "active", value: "busy", context };
  for (let count = 0; count < 1_000; count += 1) {
    tell({ type: "@xstate.event", actorRef: ref, event: { type: "model.requested" } });
    tell({ type: "@xstate.snapshot", actorRef: ref, event: { type: "model.requested" }, snapshot });
  }
  expect(looks).toBe(0);
  const seen: InspectionFrame[] = [];
  inspector.subscribe(
    (frame) => seen.push(frame),
    ({ rootId }) => rootId === "other",
  );
  tell({ type: "@xstate.event", actorRef: ref, event: { type: "model.requested" } });
  expect(seen).toEqual([]);
  expect(inspector.frames()).toMatchObject([{ sessionId: "desk", snapshot: { value: "busy" } }]);
});

it("a client receives one tree: the one it names, otherwise the newest, otherwise the first to come", () => {
  const all = [actor("desk"), actor("shop", { rootId: "shop" }), actor("desk#1", { parentId: "desk" })];
  const named = treeOf("desk");
  named.frames.begin(all);
  expect(named.ids()).toEqual(["desk", "desk#1"]);
  expect(named.frames.wants({ sessionId: "shop#1", rootId: "shop" })).toBe(false);
  expect(named.frames.wants({ sessionId: "desk#2", rootId: "desk" })).toBe(true);
  const newest = treeOf();
  newest.frames.begin(all);
  expect(newest.ids()).toEqual(["shop"]);
  const first = treeOf();
  first.frames.begin([]);
  first.frames.take(actor("desk"));
  expect(first.frames.wants({ sessionId: "shop", rootId: "shop" })).toBe(false);
});

it("a client receives at most 200 actors: the live ones first, each below its parent, and no events of others", () => {
  const { frames, ids } = treeOf();
  const ended = Array.from({ length: 150 }, (_, index) =>
    actor(`desk#${index}`, { parentId: "desk", snapshot: { status: "done" } }),
  );
  const children = Array.from({ length: 90 }, (_, index) => actor(`desk~${index}`, { parentId: "desk" }));
  const turns = children.map(({ sessionId }) => actor(`${sessionId}#1`, { parentId: sessionId }));
  frames.begin([actor("desk"), ...ended, ...children, ...turns]);
  expect(ids()).toHaveLength(MOST_ACTORS);
  expect(ids()[0]).toBe("desk");
  for (const { sessionId } of [...children, ...turns]) expect(ids()).toContain(sessionId);
  expect(ids()).toContain("desk#149");
  expect(ids()).not.toContain("desk#0");
  expect(frames.wants({ sessionId: "desk#500", rootId: "desk" })).toBe(false);
  expect(frames.wants({ sessionId: "desk~3#1", rootId: "desk" })).toBe(true);
});

it("a stored run is replayed from its journal, names only, and live events follow", async () => {
  const stores = memoryStores();
  const before = await createRuntime({ agents: [watchedTeam()], stores });
  const agent = await before.agent("lead", { agentId: "desk" });
  await agent.start();
  await agent.executeTurn("a secret question").result;
  await before.shutdown();
  const inspector = await startInspector();
  onTestFinished(() => inspector.close());
  const runtime = await createRuntime({ agents: [watchedTeam()], stores });
  onTestFinished(() => runtime.shutdown());
  inspector.watch(runtime);
  const client = await listenTo(`${inspector.socketUrl}&run=desk`);
  await client.until((text) => text.includes('"desk#1:1:0"'));
  const frames = client.texts.map((text) => JSON.parse(text) as ActorFrame);
  const states = new Map(frames.map(({ sessionId, snapshot }) => [sessionId, snapshot]));
  expect(states.get("desk")).toEqual({ status: "active", value: "ready" });
  expect(states.get("desk#1")).toEqual({ status: "done", value: "done" });
  const child = frames.find(({ parentId, sessionId }) => parentId === "desk" && sessionId.includes("~"));
  expect(states.get(`${child?.sessionId}#1`)).toMatchObject({ status: "done" });
  expect(client.texts.join()).not.toContain("secret question");
  const again = await runtime.find("desk");
  await again.start();
  await again.executeTurn("go").result;
  await client.until((text) => text.includes('"desk#2"') && text.includes('"turn.ended"'));
});

it("another tree of the process is not sent to a client that named its tree", async () => {
  const inspector = await startInspector();
  onTestFinished(() => inspector.close());
  const { runtime, ask } = await watched(inspector);
  onTestFinished(() => runtime.shutdown());
  const other = await runtime.agent("lead", { agentId: "shop" });
  await other.start();
  const client = await listenTo(`${inspector.socketUrl}&run=desk`);
  await other.executeTurn("go").result;
  await ask();
  await client.until((text) => text.includes('"desk#1"') && text.includes('"turn.ended"'));
  const roots = new Set(client.texts.map((text) => (JSON.parse(text) as InspectionFrame).rootId));
  expect(roots).toEqual(new Set(["desk"]));
});
