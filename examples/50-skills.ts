// Skills: instructions in folders, of which the system prompt has only names and descriptions.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAgent, textOf } from "troupe";
import { skills } from "troupe/kit";
import { scriptedModel } from "troupe/testing";

// Usually a folder of your repository.
const folder = await mkdtemp(join(tmpdir(), "skills-"));
await mkdir(join(folder, "refunds", "references"), { recursive: true });
await writeFile(
  join(folder, "refunds", "SKILL.md"),
  `---
name: refunds
description: How to refund an order. Use it whenever a customer wants money back.
---
Look up the order first. Limits are in references/limits.md.
`,
);
await writeFile(join(folder, "refunds", "references", "limits.md"), "Up to 100 euros without a second opinion.\n");

const model = scriptedModel(({ messages }, { index }) => {
  if (index === 0) console.log(textOf(messages[0]?.content ?? ""), "\n");
  if (index === 0) return { toolCalls: [{ name: "load_skill", arguments: { name: "refunds" } }] };
  if (index === 1) {
    return { toolCalls: [{ name: "load_skill", arguments: { name: "refunds", file: "references/limits.md" } }] };
  }
  return "You get your 12 euros back.";
});
const agent = await createAgent({
  model,
  instructions: "You answer customers of a bookshop.",
  plugins: [await skills(folder)],
});
await agent.start();
const { text } = await agent.executeTurn("I want my money back.").result;
for (const { role, content } of await agent.getMessages()) if (role === "tool") console.log("-", textOf(content), "\n");
console.log(text);
await agent.runtime.shutdown();
await rm(folder, { recursive: true });
