import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * A chief who sends a clerk to each of the places in the message; each has his paper stamped, by a slow tool on
 * a queue. Each stamp is a line of `stamps.txt`: the process, the place, `begun` or `done`.
 */
export const workingAgents = {
  "office.mjs": `import { appendFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { defineAgent, defineTool, subagent } from "troupe";

const schema = (name) =>
  JSON.stringify({ type: "object", properties: { [name]: { type: "string" } }, required: [name], additionalProperties: false });
const stampMs = Number(process.env.STAMP_MS ?? "100");

const stamp = defineTool({
  name: "stamp",
  description: "Stamps.",
  parameters: schema("place"),
  queue: "stamps",
  effect: "none",
  execute: async ({ place }, run) => {
    appendFileSync("stamps.txt", process.pid + " " + place + " begun\\n");
    await delay(stampMs, undefined, { signal: run.signal });
    appendFileSync("stamps.txt", process.pid + " " + place + " done\\n");
    return "stamped in " + place;
  },
});

/** Makes a call for each word of the message, then tells the results. */
const model = (call) => ({
  name: "scripted",
  provider: "test",
  countPromptTokens: () => 10,
  generate: async ({ messages }) => {
    const results = messages.filter((message) => message.role === "tool").map((message) => message.content);
    const words = messages.find((message) => message.role === "user").content.split(" ");
    const toolCalls = results.length > 0 ? [] : words.map((word, index) => ({ id: "c" + index, ...call(word) }));
    return {
      content: results.join("; "),
      toolCalls,
      usage: { inputTokens: 10, outputTokens: 5 },
      finishReason: toolCalls.length > 0 ? "tool_calls" : "stop",
      model: "scripted",
    };
  },
});
const of = (name, key) => (word) => ({ name, arguments: JSON.stringify({ [key]: word }) });

const clerk = defineAgent({ name: "clerk", model: model(of("stamp", "place")), tools: [stamp] });
export const agent = defineAgent({ name: "chief", model: model(of("clerk", "input")), tools: [subagent(clerk)] });
`,
};

export interface Stamp {
  readonly pid: number;
  readonly place: string;
  readonly what: "begun" | "done";
}

/** The stamps, in order. */
export function stampsIn(folder: string): Stamp[] {
  const path = join(folder, "stamps.txt");
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").trimEnd().split("\n");
  return lines.map((line) => {
    const [pid = "", place = "", what = ""] = line.split(" ");
    return { pid: Number(pid), place, what: what === "done" ? "done" : "begun" };
  });
}
