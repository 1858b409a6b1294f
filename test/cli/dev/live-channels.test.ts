// The text of an answer on its way from the process of a conversation to the inspector of `troupe dev`; numbers are those of `LiveChannel`.
import { expect, test, vi } from "vitest";
import type { DevMessage, Tree } from "../../../src/cli/dev/dev-messages.ts";
import { InspectorLiveChannel, SessionLiveChannel } from "../../../src/cli/dev/live-channels.ts";
import { createRuntime, memoryStores } from "../../../src/index.ts";
import { Feed } from "../../../src/inspector/index.ts";
import type { FeedMessage } from "../../../src/inspector/feed/wire.ts";
import { slowSpeaker } from "../../support/slow-speaker.ts";

/** An inspector, and the channels of the processes that run agents, one after the other. */
function connected() {
  let session: SessionLiveChannel | undefined;
  const inspector = new InspectorLiveChannel((message) => {
    if (hasTree(message)) session?.take(message);
  });
  const start = (): SessionLiveChannel => {
    session = new SessionLiveChannel((message) => {
      if (message.type === "live") inspector.take(message.tree, message.message);
    }, inspector.followed);
    return session;
  };
  return { inspector, start };
}

function hasTree(message: DevMessage): message is Extract<DevMessage, { readonly tree: Tree }> {
  return "tree" in message;
}

test("the inspector shows an answer while it is written in the other process, from its beginning", async () => {
  const { inspector, start } = connected();
  const stores = memoryStores();
  const [said, goOn, whole] = [0, 1, 2].map(() => Promise.withResolvers<void>());
  if (!said || !goOn || !whole) throw new Error("unreachable");
  const speaker = slowSpeaker({ said: said.resolve, goOn: goOn.promise, whole: whole.promise });
  const runtime = await createRuntime({
    agents: [speaker],
    stores: { ...stores, live: start() },
    streaming: "always",
  });
  const agent = await runtime.agent("speaker", { agentId: "desk" });
  await agent.start();
  const turn = agent.executeTurn("Speak.");
  await said.promise;
  const feed = new Feed();
  feed.add({ stores: { ...stores, live: inspector }, tenant: "default", isWritten: true });
  expect(feed.info("watch")).toMatchObject({ text: "written" });
  const texts: string[] = [];
  const send = (message: FeedMessage): void => {
    if (message.type === "live" && "text" in message.event) texts.push(message.event.text);
  };
  const watch = await feed.watch("desk", { after: 0, credit: 100 }, { send, isFull: () => false });
  await vi.waitUntil(() => texts.join("") === "The first half, ");
  goOn.resolve();
  await vi.waitUntil(() => texts.join("") === "The first half, and the second.");
  whole.resolve();
  expect((await turn.result).text).toBe("The first half, and the second.");
  watch.end();
  feed.close();
  await runtime.shutdown();
});

test("the next process sends what is followed already; what is not followed any more is not sent (1)", () => {
  const { inspector, start } = connected();
  const tree = { tenant: "default", rootAgentId: "desk", processId: "p" };
  const heard: string[] = [];
  start();
  const following = inspector.follow(tree, (message) => void heard.push(message));
  const next = start();
  const asked: string[] = [];
  next.onAsked("p", (_tenant, rootAgentId) => void asked.push(rootAgentId));
  next.send(tree, "one");
  next.send({ ...tree, rootAgentId: "other" }, "not followed");
  following.ask();
  following.end();
  expect(next.isFollowed(tree)).toBe(false);
  next.send(tree, "two");
  expect(heard).toEqual(["one"]);
  expect(asked).toEqual(["desk"]);
});
