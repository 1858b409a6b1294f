// Files: a tool gives a PDF and figures for programs, a client's tool answers with a spreadsheet, and a user sends a note.
import { clientTool, createAgent, defineTool, textOf, toolResult } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const report = defineTool({
  name: "report",
  description: "Makes the report of a month.",
  parameters: z.object({ month: z.string() }),
  effect: "none",
  execute: ({ month }) =>
    toolResult({
      content: [
        { type: "text", text: `The report of ${month}:` },
        { type: "file", data: Buffer.from("%PDF-1.7 …"), mediaType: "application/pdf", name: `${month}.pdf` },
      ],
      structured: { month, total: 1_250 },
    }),
});
const pick = clientTool({ name: "pick_file", description: "Lets the user pick a file.", parameters: z.object({}) });

const model = scriptedModel([
  { toolCalls: [{ name: "report", arguments: { month: "May" } }] },
  { toolCalls: [{ name: "pick_file", arguments: {} }] },
  "May is 250 above the plan.",
]);
const agent = await createAgent({ model, tools: [report, pick] });
await agent.start();

const note = `data:text/plain;base64,${Buffer.from("The plan for May is 1,000.").toString("base64")}`;
const turn = agent.executeTurn([
  { type: "text", text: "Compare May with the plan." },
  { type: "file", mediaType: "text/plain", url: note, name: "plan.txt" },
]);
turn.subscribe((event) => {
  if (event.type === "tool.completed" && event.structured) console.log("For programs:", event.structured);
});
const rest = await turn.settled;
if (rest.status === "waiting" && rest.reason === "request") {
  const sheet = {
    type: "file",
    data: Buffer.from("month,total\nMay,1250\n"),
    mediaType: "text/csv",
    name: "totals.csv",
  } as const;
  const [request] = rest.requests;
  if (request) await agent.decide(request.requestId, { verdict: "answered", result: toolResult({ content: [sheet] }) });
}
console.log((await turn.result).text);

// What the model read, and what was kept.
for (const message of await agent.getMessages()) {
  if (message.role === "tool") console.log(textOf(message.content));
}
for (const { name, contentType, size, encoding = "text" } of await agent.getArtifacts()) {
  console.log(`${name}: ${contentType}, ${size} bytes, kept as ${encoding}`);
}
await agent.runtime.shutdown();
