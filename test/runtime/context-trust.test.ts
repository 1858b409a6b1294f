import { expect, it } from "vitest";
import { defineAgent, summarize, textOf, trust } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { startAgent } from "../support/deciding.ts";
import { describeRuntimes } from "../support/runtimes.ts";

describeRuntimes("messages that hooks hide from the model", (stage) => {
  it("do not reach it through a summary either", async () => {
    const seen: string[] = [];
    const desk = defineAgent({
      name: "desk",
      model: scriptedModel(({ messages }) => {
        seen.push(messages.map(({ content }) => textOf(content)).join("\n"));
        return seen.at(-1)?.includes("<conversation>") ? "in short: mia asked" : "noted";
      }),
      plugins: [trust({ allow: ["mia"] })],
      autoCompact: { strategy: summarize({ keep: 1 }) },
      maxMessages: 4,
    });
    const agent = await startAgent(await stage().open({ agents: [desk] }), "desk", "d");
    for (const [text, actorId] of [
      ["first of mia", "mia"],
      ["the secret word of bob", "bob"],
      ["second of mia", "mia"],
      ["third of mia", "mia"],
    ] as const) {
      await agent.executeTurn(text, { auth: { actorId, credentials: {} } }).result;
    }
    const summaries = seen.filter((prompt) => prompt.includes("<conversation>"));
    expect(summaries).not.toEqual([]);
    expect(summaries.join("\n")).toContain("first of mia");
    expect(seen.join("\n")).not.toContain("secret word");
  });
});
