// A run that is deleted while a page shows it.
import { describe, expect, it, onTestFinished } from "vitest";
import { createRuntime } from "../../src/index.ts";
import { Feed } from "../../src/inspector/feed/feed.ts";
import { busyTeam, isCaughtUp, type Reader, readerOf, sharedStoresOf, storesNames } from "./feed-fixtures.ts";

describe.each(storesNames)("on %s", (name) => {
  const newStores = sharedStoresOf(name);

  it("ends its readers, and is in no list or read afterwards", async () => {
    const shared = newStores();
    const runtime = await createRuntime({ agents: [busyTeam(2)], stores: shared.open() });
    const onlooker = shared.open();
    const readers: { readonly feed: Feed; readonly reader: Reader }[] = [];
    onTestFinished(async () => {
      await runtime.shutdown();
      await onlooker.close();
    });
    const agent = await runtime.agent("lead", { agentId: "desk" });
    await agent.start();
    await agent.executeTurn("go").result;
    // One feed in the process of the agents, and one that only reads the stores.
    for (const source of [
      { stores: runtime.stores, runtime, tenant: "default" },
      { stores: onlooker, tenant: "default" },
    ]) {
      const feed = new Feed();
      feed.add(source);
      onTestFinished(() => feed.close());
      readers.push({ feed, reader: await readerOf(feed, "desk", { after: 0, credit: 100 }) });
    }
    for (const { reader } of readers) await reader.until(isCaughtUp);
    await runtime.delete("desk");
    for (const { feed, reader } of readers) {
      const gone = await reader.until(({ type }) => type === "gone");
      expect(gone).toMatchObject({ run: "desk", why: "This run was deleted." });
      expect((await feed.runs({})).items).toEqual([]);
      await expect(feed.head("desk")).rejects.toThrow('there is no run "desk"');
    }
  });
});
