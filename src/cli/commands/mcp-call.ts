import { randomUUID } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { defineAgent } from "../../agents/index.ts";
import { describeFileError } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { mcpFromConfig } from "../../mcp/index.ts";
import type { LanguageModel } from "../../model/index.ts";
import { type Agent, createRuntime, type Runtime } from "../../runtime/index.ts";
import type { AgentRequest, ContentPart, JsonObject, Message } from "../../state/index.ts";
import { memoryStores } from "../../stores/memory.ts";
import type { Tool } from "../../tools/index.ts";
import { type CliContext, userName } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { ReadlineInput } from "../inline/line-input.ts";
import { timingOf, watchInterrupts } from "../job/interrupts.ts";
import { configFile, type McpConfigWords } from "../mcp/config-words.ts";
import { loginTokens } from "../mcp/login-tokens.ts";
import { closeAtEnd } from "../opened-servers.ts";
import { formatNumberOf } from "../view/format.ts";
import { oneLine, printable } from "../view/terminal-text.ts";

export interface McpCallOptions extends McpConfigWords {
  readonly args?: JsonObject | undefined;
  /** Approves the call. */
  readonly yes?: boolean | undefined;
  /** Folder for the binary parts of the result. */
  readonly save?: string | undefined;
  readonly json?: boolean | undefined;
}

/** Largest output of a tool that is printed, in UTF-16 units. */
const LARGEST_OUTPUT = 30_000_000;

/** Calls a tool by an agent of its own, so that approvals, limits and questions of the server are those of agents. */
export async function mcpCallCommand(
  context: CliContext,
  { server, tool: name }: { readonly server: string; readonly tool: string },
  options: McpCallOptions,
): Promise<ExitCode> {
  const { environment } = context;
  const pin = options.lock === undefined ? {} : { pin: options.lock };
  const opened = await mcpFromConfig(configFile(options), {
    environment,
    tokens: loginTokens(context),
    only: [server],
    ...pin,
  });
  closeAtEnd(context, opened.close);
  const tool = findTool(opened.tools, server, name);
  const parsed = await tool.parse(JSON.stringify(options.args ?? {}));
  if (!parsed.ok) throw new InvalidInputError(`--args do not fit the tool "${name}": ${parsed.message}`);
  const model = callingModel(tool.name, JSON.stringify(options.args ?? {}));
  const caller = defineAgent({
    name: "command-line",
    model,
    tools: [Object.freeze({ ...tool, maxOutputCharacters: LARGEST_OUTPUT })],
  });
  const runtime = await createRuntime({ agents: [caller], stores: memoryStores() });
  try {
    const agent = await runtime.agent("command-line", { agentId: `call-${randomUUID().slice(0, 8)}` });
    await agent.start();
    return await callIn(context, { runtime, agent }, options);
  } finally {
    await runtime.shutdown();
  }
}

function findTool(tools: readonly Tool<JsonObject>[], server: string, name: string): Tool<JsonObject> {
  const found = tools.find((tool) => tool.name === name) ?? tools.find((tool) => isNamed(tool, name));
  if (found !== undefined) return found;
  const known = tools.slice(0, 50).map((tool) => oneLine(tool.name));
  const right = known.length === 0 ? "it has none" : `it has ${known.join(", ")}`;
  throw new InvalidInputError(`the server "${server}" has no tool "${oneLine(name)}"; ${right}`);
}

/** Whether the name for the model is made from this name of the server. */
function isNamed(tool: Tool<JsonObject>, name: string): boolean {
  const [, own = ""] = /^.*?__(.*)$/.exec(tool.name) ?? [];
  const legal = name.replaceAll(/[^a-zA-Z0-9_-]/g, "_");
  return own === name || (legal !== name && own.replace(/_[0-9a-f]{12}$/, "") === legal);
}

/** A model that calls the tool once. */
function callingModel(name: string, args: string): LanguageModel {
  return {
    name: "command line",
    provider: "troupe",
    countPromptTokens: () => 0,
    generate: async ({ messages }) => {
      const isFirst = messages.at(-1)?.role === "user";
      return {
        content: isFirst ? "" : "Done.",
        toolCalls: isFirst ? [{ id: "call", name, arguments: args }] : [],
        usage: { inputTokens: 0, outputTokens: 0 },
        finishReason: isFirst ? "tool_calls" : "stop",
        model: "command line",
      };
    },
  };
}

interface Calling {
  readonly runtime: Runtime;
  readonly agent: Agent;
}

async function callIn(context: CliContext, { runtime, agent }: Calling, options: McpCallOptions): Promise<ExitCode> {
  const stop = watchInterrupts(
    process,
    {
      pause: () => {
        context.note("The call is cancelled; a second Ctrl-C leaves at once.");
        void agent.abort("interrupted");
      },
      leave: (exitCode) => process.exit(exitCode),
    },
    timingOf(context),
  );
  // The timers of the runtime do not keep the process alive.
  const alive = setInterval(() => {}, 60_000);
  try {
    const turn = agent.executeTurn("call");
    for (;;) {
      const rest = await turn.settled;
      if (rest.status !== "waiting") {
        if (rest.status === "stopped" && rest.stopReason === "user_requested") return exitCodes.interrupted;
        return await show(context, agent, options);
      }
      if (rest.reason === "paused") return exitCodes.interrupted;
      for (const request of rest.requests) {
        const isDecided = await decide(context, { runtime, agent }, { request, options });
        if (!isDecided) return exitCodes.failure;
      }
    }
  } finally {
    clearInterval(alive);
    stop();
  }
}

/** Approves the call as the person wants; other requests cannot be decided here. */
async function decide(
  context: CliContext,
  { runtime, agent }: Calling,
  { request, options }: { readonly request: AgentRequest; readonly options: McpCallOptions },
): Promise<boolean> {
  const { requestId, kind, prompt } = request;
  const by = userName();
  if (kind === "approval") {
    const isApproved = options.yes === true || (await isConfirmed(context, prompt));
    if (isApproved) await runtime.decide(requestId, { verdict: "approved", by });
    else await agent.abort("not approved");
    return isApproved;
  }
  context.note(`The server asks for ${kind === "auth" ? "a login" : "an answer"}, which this command cannot give:`);
  context.note(printable(prompt));
  await agent.abort("not answered");
  return false;
}

async function isConfirmed({ stdin, stdout, note }: CliContext, prompt: string): Promise<boolean> {
  if (!stdin.isTTY || !stdout.isTTY) {
    throw new InvalidInputError(`the call needs an approval: ${oneLine(prompt)}; repeat the command with --yes`);
  }
  note(printable(prompt));
  const input = new ReadlineInput({ input: stdin, output: stdout, isTerminal: true, onInterrupt: () => input.close() });
  try {
    const read = await input.next("Approve? [y]es, [n]o: ");
    return typeof read === "object" && /^\s*y(?:es)?\s*$/i.test(read.line);
  } finally {
    input.close();
  }
}

type ToolMessage = Extract<Message, { readonly role: "tool" }>;

/** Prints the result of the call. */
async function show(context: CliContext, agent: Agent, options: McpCallOptions): Promise<ExitCode> {
  const result = (await agent.getMessages()).findLast((message): message is ToolMessage => message.role === "tool");
  if (result === undefined) throw new InvalidInputError("the call was not run");
  const isError = result.isError === true;
  const exitCode = isError ? exitCodes.failure : exitCodes.success;
  const parts: readonly ContentPart[] =
    typeof result.content === "string" ? [{ type: "text", text: result.content }] : result.content;
  const files = await filesOf(agent, parts);
  const saved = options.save === undefined ? [] : await save(context, options.save, files);
  if (options.json === true) {
    context.out(JSON.stringify({ isError, content: parts, ...(saved.length === 0 ? {} : { saved }) }));
    return exitCode;
  }
  const write = isError ? context.note : context.out;
  for (const part of parts) if (part.type === "text" && part.text !== "") write(printable(part.text));
  for (const [index, file] of files.entries()) {
    const size = formatNumberOf(file.bytes.length, "byte");
    const where = saved[index] === undefined ? "not shown; --save FOLDER writes it to a file" : saved[index];
    context.note(`${oneLine(file.name)} (${oneLine(file.mediaType)}, ${size}): ${where}`);
  }
  return exitCode;
}

interface ResultFile {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Buffer;
}

/** The images of the result, and the files that it has as artifacts. */
async function filesOf(agent: Agent, parts: readonly ContentPart[]): Promise<readonly ResultFile[]> {
  const files: ResultFile[] = [];
  for (const part of parts) {
    if (part.type !== "image") continue;
    const [, mediaType, base64] = /^data:([\w.+/-]+);base64,(.*)$/s.exec(part.url) ?? [];
    if (mediaType === undefined || base64 === undefined) continue;
    files.push({ name: `image-${files.length + 1}`, mediaType, bytes: Buffer.from(base64, "base64") });
  }
  for (const { artifactId } of await agent.getArtifacts()) {
    const artifact = await agent.getArtifact(artifactId);
    if (artifact === undefined) continue;
    const bytes = Buffer.from(artifact.content, artifact.encoding === "base64" ? "base64" : "utf8");
    files.push({ name: artifact.name, mediaType: artifact.contentType, bytes });
  }
  return files;
}

/** Writes the files under names without folders; existing files stay. Returns their paths. */
async function save({ directory }: CliContext, folder: string, files: readonly ResultFile[]): Promise<string[]> {
  const paths: string[] = [];
  for (const { name, mediaType, bytes } of files) {
    const path = join(folder, fileName(name, mediaType));
    try {
      await mkdir(resolve(directory, folder), { recursive: true });
      await writeFile(resolve(directory, path), bytes, { flag: "wx" });
    } catch (cause) {
      throw new InvalidInputError(describeFileError(path, cause), { cause });
    }
    paths.push(path);
  }
  return paths;
}

/** A server chooses the names. */
function fileName(name: string, mediaType: string): string {
  const plain = name
    .replaceAll(/[^\w.-]+/g, "_")
    .replace(/^\.+/, "")
    .slice(-100);
  const [, kind = "bin"] = /\/([a-z0-9]{1,10})/.exec(mediaType) ?? [];
  if (plain === "") return `file.${kind}`;
  return plain.includes(".") ? plain : `${plain}.${kind}`;
}
