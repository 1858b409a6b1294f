import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Agents that open requests. Each payment is a line of `paid.txt`, so that it can be counted. */
export const askingAgents = {
  "till.mjs": `import { appendFileSync } from "node:fs";
import { askUser, clientTool, defineAgent, defineTool, subagent } from "troupe";

const schema = (properties) =>
  JSON.stringify({ type: "object", properties, required: Object.keys(properties), additionalProperties: false });

const pay = defineTool({
  name: "pay",
  description: "Pays.",
  parameters: schema({ to: { type: "string" }, amount: { type: "number" } }),
  needsApproval: true,
  execute: ({ to, amount }) => {
    appendFileSync("paid.txt", to + " " + amount + "\\n");
    return "paid " + amount + " to " + to;
  },
});
const scan = clientTool({ name: "scan", description: "Scans.", parameters: schema({ page: { type: "number" } }) });

/** Makes the calls that the message names (\`pay Ann 5\`, \`ask Which day?\`), then tells their results. */
const calls = {
  pay: (text) => ["pay", { to: text.split(" ")[0], amount: Number(text.split(" ")[1]) }],
  ask: (text) => ["ask_user", { question: text }],
  scan: (text) => ["scan", { page: Number(text) }],
  clerk: (text) => ["clerk", { input: text }],
};
const model = {
  name: "scripted",
  provider: "test",
  countPromptTokens: () => 10,
  generate: async ({ messages }) => {
    const last = messages.findLastIndex((message) => message.role === "user");
    const results = messages.slice(last + 1).filter((message) => message.role === "tool");
    const wishes = results.length > 0 ? [] : messages[last].content.split(", ");
    const toolCalls = wishes.flatMap((wish, index) => {
      const [verb, ...words] = wish.split(" ");
      if (!(verb in calls)) return [];
      const [name, args] = calls[verb](words.join(" "));
      return [{ id: "c" + index, name, arguments: JSON.stringify(args) }];
    });
    const said = messages.filter((message) => message.role === "user").length;
    const content = results.map((message) => message.content).join("; ") || "message " + said;
    return {
      content: toolCalls.length > 0 ? "" : content,
      toolCalls,
      usage: { inputTokens: 10, outputTokens: 5 },
      finishReason: toolCalls.length > 0 ? "tool_calls" : "stop",
      model: "scripted",
    };
  },
};
const clerk = defineAgent({ name: "clerk", model, tools: [pay] });
export const agent = defineAgent({ name: "chief", model, tools: [pay, scan, askUser(), subagent(clerk)] });
`,
};

/** The payments, in order. */
export function paidIn(folder: string): string[] {
  const path = join(folder, "paid.txt");
  return existsSync(path) ? readFileSync(path, "utf8").trimEnd().split("\n") : [];
}
