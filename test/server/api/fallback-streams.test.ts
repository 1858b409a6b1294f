import { expect, it, onTestFinished } from "vitest";
import { defineAgent, fallbackModel, openaiModel } from "troupe";
import { startModelServer } from "../../support/model-server.ts";
import { framesOf, served } from "./served.ts";

it("a stream that breaks half-way is void for a client before the text of the next provider begins", async () => {
  const broken = await startModelServer(() => ({ deltas: ["The first ", "half"], cutAfterChunks: 3 }));
  const sound = await startModelServer(() => ({ deltas: ["The whole ", "answer."] }));
  onTestFinished(async () => {
    await broken.stop();
    await sound.stop();
  });
  const model = fallbackModel([
    openaiModel("north-1", { provider: "north", baseURL: broken.baseURL, apiKey: "none" }),
    openaiModel("south-1", { provider: "south", baseURL: sound.baseURL, apiKey: "none" }),
  ]);
  const { ask } = await served({ agents: [defineAgent({ name: "writer", model })] });
  const { agentId } = (await (await ask("POST /api/agents", { body: { definition: "writer" } })).json()) as {
    agentId: string;
  };
  const stream = await ask(`POST /api/agents/${agentId}/turns`, {
    body: { input: "write" },
    headers: { accept: "text/event-stream" },
  });
  let shown = "";
  const voided: unknown[] = [];
  for await (const { event, data } of framesOf(stream)) {
    if (event === "step.restarted") {
      voided.push([data["model"], "The first half".startsWith(shown)]);
      shown = "";
    }
    if (event === "text.delta") shown += String(data["text"]);
    if (event === "text.snapshot") shown = String(data["text"]);
  }
  expect(voided).toEqual([["south-1", true]]);
  expect(shown).toBe("The whole answer.");
  expect([broken.requests.length, sound.requests.length]).toEqual([1, 1]);
  expect(sound.requests[0]?.body.model).toBe("south-1");
});
