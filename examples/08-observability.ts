// Four views of a run: terminal lines, a YAML file per session, OpenTelemetry spans, and a table of one turn.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { createRuntime, defineAgent, defineTool, subagent, textOf } from "troupe";
import { renderTrace, terminalLog, traceToOpenTelemetry, yamlSession } from "troupe/telemetry";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const readPaper = defineTool({
  name: "read_paper",
  description: "Gives the text of a paper.",
  parameters: z.object({ title: z.string() }),
  effect: "none",
  execute: ({ title }) => `${title}: it depends. The archive's password=hunter2 is still valid.`,
});

const price = { inputPerMillion: 0.25, outputPerMillion: 2 };

const reader = defineAgent({
  name: "reader",
  price,
  tools: [readPaper],
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === "tool") return "It depends.";
    return { toolCalls: [{ name: "read_paper", arguments: { title: textOf(last?.content ?? "") } }] };
  }),
});

const lead = defineAgent({
  name: "lead",
  price,
  tools: [subagent(reader)],
  model: scriptedModel(({ messages }) => {
    if (messages.at(-1)?.role === "tool") return "Both papers say that it depends.";
    return { toolCalls: ["Paper A", "Paper B"].map((input) => ({ name: "reader", arguments: { input } })) };
  }),
});

const directory = mkdtempSync(join(tmpdir(), "sessions-"));
const exporter = new InMemorySpanExporter();
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });

const runtime = await createRuntime({ agents: [lead] });
terminalLog(runtime, { write: (line) => process.stdout.write(line) }); // default: standard error
const sessions = yamlSession(runtime, { directory, messages: true });
const spans = traceToOpenTelemetry(runtime, { tracerProvider });

const agent = await runtime.agent("lead", { agentId: "desk-7" });
await agent.start();
await agent.executeTurn("Compare the two papers.").result;
const [child] = (await runtime.list()).filter(({ parentAgentId }) => parentAgentId === "desk-7");
const trace = child ? await (await runtime.find(child.agentId)).getTrace() : [];

// Close readers of the store before the runtime.
await Promise.all([sessions.close(), spans.close()]);
await runtime.shutdown();

for (const name of readdirSync(directory)) {
  console.log(`\n— ${name}\n${readFileSync(join(directory, name), "utf8")}`);
}
rmSync(directory, { recursive: true });

console.log("— spans");
const finished = exporter.getFinishedSpans();
const roots = finished.filter(({ parentSpanContext }) => parentSpanContext === undefined);
for (const span of roots) printTree(span, "");

console.log(`\n— the turn of one reader\n${renderTrace(trace)}`);

function printTree(span: ReadableSpan, indentation: string): void {
  const tokens = span.attributes["gen_ai.usage.output_tokens"];
  console.log(`${indentation}${span.name}${tokens === undefined ? "" : `  ${String(tokens)} output tokens`}`);
  const { spanId } = span.spanContext();
  for (const below of finished.filter(({ parentSpanContext }) => parentSpanContext?.spanId === spanId)) {
    printTree(below, `${indentation}  `);
  }
}
