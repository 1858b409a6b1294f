import { expect, it } from "vitest";
import { CommitWatch } from "../support/commit-watch.ts";
import { type Scene, scenes } from "../support/effect-kinds.ts";
import { playFailures, playHooks, type PlayScene, playSubagents, playTools } from "../support/effect-scenes.ts";
import { playCopies, playQueues, playRemote, playTimers, playWebhooks } from "../support/outward-scenes.ts";
import { describeRuntimes } from "../support/runtimes.ts";

const plays: Readonly<Record<Scene, PlayScene>> = {
  tools: playTools,
  subagents: playSubagents,
  hooks: playHooks,
  failures: playFailures,
  queues: playQueues,
  timers: playTimers,
  remote: playRemote,
  copies: playCopies,
  webhooks: playWebhooks,
};

describeRuntimes("no effect before its intent", (stage) => {
  it.each(Object.entries(plays))("%s", async (scene, play) => {
    const watch = new CommitWatch();
    await play(stage(), watch);
    expect(watch.faults).toEqual([]);
    expect(watch.kinds).toEqual([...scenes[scene as Scene]].toSorted());
  });
});
