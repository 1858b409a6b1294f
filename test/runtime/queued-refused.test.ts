import { expect, it } from "vitest";
import { z } from "zod";
import { createAgentLoop, createRuntime, defineAgent, defineTool } from "../../src/index.ts";
import { WAKE_QUEUE } from "../../src/queues/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

function workerOn(queue?: string) {
  const tool = defineTool({
    name: "browse",
    description: "Browses.",
    parameters: z.object({}),
    execute: () => "",
    ...(queue === undefined ? {} : { queue }),
  });
  return defineAgent({ name: "worker", model: scriptedModel(["the end"]), tools: [tool] });
}

it("autoSave: false refuses a queued tool, and the error suggests what to change", async () => {
  const runtime = await createRuntime({ agents: [workerOn("browser")] });
  const refused = /agent "worker" has the tool "browse" with a queue.*Remove its queue.*autoSave: true/;
  await expect(runtime.agent("worker", { autoSave: false })).rejects.toThrow(refused);
  await runtime.shutdown();
  expect(() => createAgentLoop(workerOn("browser"))).toThrow(refused);
});

it("the queue is included in the definition's hash and in the agents' grants", () => {
  const [none, browser, mail] = [workerOn(), workerOn("browser"), workerOn("mail")];
  expect(new Set([none, browser, mail].map(({ ref }) => ref.hash)).size).toBe(3);
  expect(browser.grantedTools).toEqual([{ name: "browse", kind: "function", effect: "once", queue: "browser" }]);
  expect(none.grantedTools).toEqual([{ name: "browse", kind: "function", effect: "once" }]);
});

it("a tool cannot use the runtime's wake queue", () => {
  expect(() => workerOn(WAKE_QUEUE)).toThrow(/which is reserved for agents/);
});
