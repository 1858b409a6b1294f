import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { documentModel } from "../../src/demo/document-model.ts";
import { fileTools } from "../../src/demo/file-tools.ts";
import { leadInstructions, readerInstructions, readerPrompt, readerToolDescription } from "../../src/demo/team.ts";
import type { LanguageModel } from "../../src/model/index.ts";
import type { Message, ModelTool } from "../../src/state/index.ts";
import type { RunContext } from "../../src/tools/index.ts";

/** The methods of a tool that the loop needs; `fileTools` and the reader below have them. */
export interface LoopTool {
  readonly model: ModelTool;
  run(argumentsText: string): Promise<string>;
}

export interface TeamRun {
  readonly answer: string;
  /** Tool calls of the lead, one list per step. */
  readonly steps: readonly (readonly { name: string; arguments: unknown }[])[];
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** The fields of a run context that the file tools use. */
export function contextWith(signal: AbortSignal): RunContext {
  return { signal } as Partial<RunContext> as RunContext;
}

export function loopTools(
  root: string,
  signal = new AbortController().signal,
  only?: readonly string[],
): Record<"list" | "search" | "read", LoopTool> {
  const tools = fileTools(root, only);
  const run = contextWith(signal);
  return { list: wrap(tools.list), search: wrap(tools.search), read: wrap(tools.read) };

  function wrap(tool: {
    name: string;
    description: string;
    jsonSchema: ModelTool["parameters"];
    parse(text: string): Promise<{ ok: true; value: unknown } | { ok: false; message: string }>;
    execute(args: never, run: RunContext): unknown;
  }): LoopTool {
    return {
      model: { name: tool.name, description: tool.description, parameters: tool.jsonSchema },
      async run(text) {
        const parsed = await tool.parse(text);
        if (!parsed.ok) throw new Error(parsed.message);
        return String(await tool.execute(parsed.value as never, run));
      },
    };
  }
}

/** Calls model and tools alternately until the model answers without a call: an agent without a runtime. */
export async function runAgent(
  model: LanguageModel,
  instructions: string,
  prompt: string,
  tools: readonly LoopTool[],
): Promise<TeamRun> {
  const messages: Message[] = [];
  const add = (message: Omit<Message, "id" | "createdAt">): void => {
    messages.push({ id: `m${messages.length}`, createdAt: 0, ...message } as Message);
  };
  if (instructions !== "") add({ role: "system", origin: "runtime", content: instructions });
  add({ role: "user", origin: "user", content: prompt });
  const steps: TeamRun["steps"][number][] = [];
  let inputTokens = 0;
  let outputTokens = 0;
  for (let step = 0; step < 6; step += 1) {
    const request = { messages: [...messages], tools: tools.map((tool) => tool.model) };
    const response = await model.generate(request, { signal: new AbortController().signal });
    const bound = await model.countPromptTokens(request);
    if (response.usage.inputTokens > bound)
      throw new Error(`${response.usage.inputTokens} tokens above the bound ${bound}`);
    inputTokens += response.usage.inputTokens;
    outputTokens += response.usage.outputTokens;
    if (response.toolCalls.length === 0) return { answer: response.content, steps, inputTokens, outputTokens };
    const calls = response.toolCalls.map((call, index) => ({
      ...call,
      callId: `t:${step}:${index}`,
      providerId: call.id,
    }));
    steps.push(calls.map((call) => ({ name: call.name, arguments: JSON.parse(call.arguments) as unknown })));
    add({
      role: "assistant",
      origin: "model",
      content: response.content,
      toolCalls: calls.map(({ callId, providerId, name, arguments: text }) => ({
        callId,
        providerId,
        name,
        arguments: text,
      })),
    } as Omit<Message, "id" | "createdAt">);
    const results = await Promise.all(calls.map((call) => resultOf(call, tools)));
    for (const [index, call] of calls.entries()) {
      const { content, isError } = results[index] ?? { content: "", isError: true };
      add({ role: "tool", origin: "tool", content, isError, callId: call.callId, providerId: call.providerId } as Omit<
        Message,
        "id" | "createdAt"
      >);
    }
  }
  throw new Error("the agent did not answer within 6 steps");
}

async function resultOf(call: { name: string; arguments: string }, tools: readonly LoopTool[]) {
  try {
    const tool = tools.find((candidate) => candidate.model.name === call.name);
    if (tool === undefined) throw new Error(`There is no tool ${call.name}.`);
    return { content: await tool.run(call.arguments), isError: false };
  } catch (error) {
    return { content: error instanceof Error ? error.message : "failed", isError: true };
  }
}

/** The lead with a reader per file, as in `troupe ask`. `onReader` may replace a reader's work. */
export async function runTeam(
  root: string,
  question: string,
  onReader?: (task: { file: string; question: string }) => Promise<string> | undefined,
): Promise<TeamRun> {
  const model = documentModel();
  const files = loopTools(root);
  const reader: LoopTool = {
    model: {
      name: "reader",
      description: readerToolDescription,
      parameters: {
        type: "object",
        properties: { file: { type: "string" }, question: { type: "string" } },
        required: ["file", "question"],
      },
    },
    async run(text) {
      const task = JSON.parse(text) as { file: string; question: string };
      const replaced = onReader?.(task);
      if (replaced !== undefined) return await replaced;
      const result = await runAgent(model, readerInstructions, readerPrompt(task), Object.values(files));
      return result.answer;
    },
  };
  return await runAgent(model, leadInstructions(6), question, [files.list, files.search, reader]);
}

export interface SourcedStatement {
  readonly text: string;
  readonly path: string;
  readonly line: number;
}

/** The statements of an answer with their sources: `- text (path:line)`. */
export function statementsIn(answer: string): SourcedStatement[] {
  return answer.split("\n").flatMap((line) => {
    const match = /^\s*(?:- )?(.*) \(([^()\s]+):(\d+)\)$/.exec(line);
    return match === null ? [] : [{ text: match[1] ?? "", path: match[2] ?? "", line: Number(match[3]) }];
  });
}

/** Whether a statement is in its file, beginning in its line, ignoring white space, tags and quotation marks of Markdown. */
export async function holds(root: string, statement: SourcedStatement): Promise<boolean> {
  const lines = (await readFile(join(root, statement.path), "utf8")).split(/\r?\n/);
  const wanted = plain(statement.text.replace(/ …$/, ""));
  const from = plain(lines.slice(statement.line - 1, statement.line + 30).join("\n"));
  const at = from.indexOf(wanted);
  return at >= 0 && at <= plain(lines[statement.line - 1] ?? "").length;
}

function plain(text: string): string {
  return text
    .replace(/^\s*>\s?/gm, "")
    .replace(/<[^<>]*>/g, "")
    .replace(/\s+/g, " ")
    .trim();
}

/** A folder with the given files; the returned function removes it. */
export async function temporaryFolder(files: Readonly<Record<string, string | Uint8Array>>) {
  const root = await mkdtemp(join(tmpdir(), "troupe-ask-"));
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
  }
  return { root, remove: () => rm(root, { recursive: true, force: true }) };
}
