import { createHash } from "node:crypto";
import { visible } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { EffectClass, Json, JsonObject } from "../state/index.ts";
import { AskedRequest, defineTool, type RunContext, type Tool } from "../tools/index.ts";
import { CallInParts, type CallInPartsOptions } from "./call-in-parts.ts";
import { withLogin } from "./login-requests.ts";
import type { ListedTool } from "./listed-tool.ts";
import type { McpOptions, McpToolOptions } from "./mcp-options.ts";
import { withoutMistakes } from "./mcp-schema.ts";
import { resourceCallOf } from "./mcp-resource-tools.ts";
import { traceOfRun } from "./mcp-trace.ts";
import { ServerInputs } from "./server-inputs.ts";
import { CANCELLING_MS, TaskCall } from "./task-call.ts";
import { UnsentCalls } from "./unsent-calls.ts";
import type { ToolSource } from "./tool-source.ts";

/** Longest description that the model gets, in UTF-16 units. */
const LONGEST_DESCRIPTION = 8_000;
const LONGEST_NAME = 64;
/** Attempts of calls that may be repeated. */
const MOST_ATTEMPTS = 2;
/** Milliseconds of an attempt that runs as a task, if the user has set none. */
const TASK_TIMEOUT_MS = 3_600_000;

/** The tool of the agent for a listed one. Throws `InvalidInputError` if the user's settings do not fit it. */
export function toolOf(source: ToolSource, listed: ListedTool, name: string): Tool<JsonObject> {
  const { options, pool, secrets, authorization, forget } = source;
  const settings = settingsOf(options, listed.name);
  const effect = effectOf(options, settings, listed);
  const { idempotencyArgument } = settings;
  const { text, unchecked } = parametersOf(source, listed, idempotencyArgument);
  const readResources = resourceCallOf(source, listed);
  const inputs = new ServerInputs(options, secrets);
  const { tasks } = isTaskOnly(listed) ? source : {};
  const timeoutMs = settings.timeoutMs ?? (tasks === undefined ? undefined : TASK_TIMEOUT_MS);
  const unsent = new UnsentCalls();
  const callOf = (args: JsonObject, run: RunContext, onSend?: () => void): CallInParts | TaskCall => {
    const sent = idempotencyArgument === undefined ? args : { ...args, [idempotencyArgument]: run.idempotencyKey };
    if (tasks !== undefined && timeoutMs !== undefined) {
      const { name: server } = options;
      return new TaskCall({ server, sdk: tasks, pool, tool: listed, args: sent, timeoutMs, onSend }, run);
    }
    const owner = { actorId: run.actorId };
    const call = { tool: listed, args: sent, allowInputRequired: true, onSend };
    const send: CallInPartsOptions["send"] = async (parts) =>
      await pool.call(owner, { ...parts, ...traceOfRun(run), ...call });
    return new CallInParts({ server: options.name, effect, inputs, send }, run);
  };
  const tool = defineTool({
    name,
    description: secrets.redact(descriptionOf(options, listed)),
    parameters: text,
    effect,
    // A task is cancelled at its limit, which takes time.
    ...(timeoutMs === undefined ? {} : { timeoutMs: tasks === undefined ? timeoutMs : timeoutMs + 2 * CANCELLING_MS }),
    maxAttempts: effect === "once" ? 1 : MOST_ATTEMPTS,
    needsApproval: settings.needsApproval ?? needsApproval(options, listed),
    execute: withLogin(authorization, async (args: JsonObject, run: RunContext) => {
      if (readResources !== undefined) return await readResources(args, run);
      const end = await unsent.during(run, async (sent) => await callOf(args, run, sent).perform());
      if (end instanceof AskedRequest) return end;
      const { content, structuredContent, isError } = end;
      return {
        content,
        ...(structuredContent === undefined ? {} : { structuredContent }),
        isError: isError === true,
      };
    }),
    reconcile: async (args: JsonObject, run: RunContext) => unsent.reconcile(run) ?? callOf(args, run).reconcile(),
    cancel: async (args: JsonObject, run: RunContext) => await callOf(args, run).cancel(),
  });
  return Object.freeze({
    ...tool,
    holdConnections: pool.hold,
    ...(forget === undefined ? {} : { forget }),
    ...(unchecked.length === 0 ? {} : { unchecked: Object.freeze(unchecked) }),
    resolveArguments: async (json: Json, run: RunContext) => ({
      ...(await tool.resolveArguments(json, run)),
      redact: secrets.redact,
    }),
  });
}

/** Whether the server runs the tool only as a task. */
export function isTaskOnly({ execution }: ListedTool): boolean {
  return typeof execution === "object" && execution !== null && Reflect.get(execution, "taskSupport") === "required";
}

/** The effect and the approvals of a tool. */
export function rulesOf(
  options: McpOptions,
  listed: ListedTool,
): { readonly effect: EffectClass; readonly needsApproval: boolean | "by arguments" } {
  const settings = settingsOf(options, listed.name);
  const approval = settings.needsApproval ?? needsApproval(options, listed);
  return {
    effect: effectOf(options, settings, listed),
    needsApproval: typeof approval === "function" ? "by arguments" : approval,
  };
}

/** The user's settings of a tool; none for a tool that is left out. */
function settingsOf({ tools = {} }: McpOptions, name: string): McpToolOptions {
  return (Object.hasOwn(tools, name) && tools[name]) || {};
}

/** Whether an annotation is set to true; a server may send any JSON as annotations. */
function isHinted({ annotations }: ListedTool, hint: "readOnlyHint" | "destructiveHint" | "idempotentHint"): boolean {
  return typeof annotations === "object" && annotations !== null && Reflect.get(annotations, hint) === true;
}

function effectOf({ trust = false }: McpOptions, settings: McpToolOptions, listed: ListedTool): EffectClass {
  if (settings.effect !== undefined) return settings.effect;
  if (settings.idempotencyArgument !== undefined) return "keyed";
  if (!trust) return "once";
  // A tool that is declared both is not read-only.
  if (isHinted(listed, "readOnlyHint") && !isHinted(listed, "destructiveHint")) return "none";
  return isHinted(listed, "idempotentHint") ? "keyed" : "once";
}

function needsApproval({ approval = "destructive", trust = false }: McpOptions, listed: ListedTool): boolean {
  if (approval === "always" || approval === "never") return approval === "always";
  if (isHinted(listed, "destructiveHint")) return true;
  return approval === "writes" && !(trust && isHinted(listed, "readOnlyHint"));
}

function descriptionOf({ name }: McpOptions, { name: tool, description }: ListedTool): string {
  const text = typeof description === "string" ? visible(description.toWellFormed()).trim() : "";
  if (text === "") return `The tool ${tool} of the MCP server ${name}.`;
  return text.length <= LONGEST_DESCRIPTION ? text : `${text.slice(0, LONGEST_DESCRIPTION).toWellFormed()}…`;
}

interface ToolParameters {
  /** Text of a JSON Schema. */
  readonly text: string;
  /** What is not checked, with the reasons. */
  readonly unchecked: readonly string[];
}

/** The server's schema without the idempotency argument. A schema that cannot be used is replaced by that of any object. */
function parametersOf(
  { options, secrets }: ToolSource,
  listed: ListedTool,
  hidden: string | undefined,
): ToolParameters {
  const schema = hidden === undefined ? (listed.inputSchema ?? {}) : without(options, listed, hidden);
  try {
    const text = secrets.redact(jsonOf(schema));
    const { unchecked = [] } = defineTool({
      name: "tool",
      description: "tool",
      parameters: text,
      execute: () => undefined,
    });
    if (unchecked.length === 0) return { text, unchecked };
    return { text: JSON.stringify(withoutMistakes(JSON.parse(text) as JsonObject)), unchecked };
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    return { text: '{"type":"object"}', unchecked: [`#: the server's schema cannot be used: ${error.message}`] };
  }
}

function jsonOf(schema: unknown): string {
  try {
    return JSON.stringify(schema);
  } catch {
    throw new InvalidInputError("it is nested too deeply");
  }
}

function without({ name: server }: McpOptions, { name, inputSchema }: ListedTool, hidden: string): unknown {
  const { properties, required, ...schema } = (inputSchema ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof properties !== "object" || properties === null || !Object.hasOwn(properties, hidden)) {
    const known = Object.keys(properties ?? {}).slice(0, 50);
    const right = known.length === 0 ? "it has none" : `use one of ${known.join(", ")}`;
    throw new InvalidInputError(
      `mcp("${server}"): tools["${name}"].idempotencyArgument is "${hidden}", which the tool does not take; ${right}`,
    );
  }
  const { [hidden]: _hidden, ...others } = properties as Readonly<Record<string, unknown>>;
  const needed = Array.isArray(required) ? required.filter((one) => one !== hidden) : undefined;
  return { ...schema, properties: others, ...(needed === undefined ? {} : { required: needed }) };
}

/**
 * The tools' names for the model, in the order of the list. `<server>__<tool>` where that is legal; otherwise illegal characters are
 * replaced and the end is a hash of the server's name for the tool, so that different tools never share a name. A name that is listed
 * twice has `undefined` for the second. Throws `InvalidInputError` if the user renames a tool to the name of another.
 */
export function namesOf(options: McpOptions, listed: readonly ListedTool[]): (string | undefined)[] {
  const owners = new Map<string, string>();
  const names = new Map<string, string>();
  for (const { name: tool } of listed) {
    if (names.has(tool)) continue;
    const name = settingsOf(options, tool).rename ?? legalName(options.name, tool);
    const owner = owners.get(name);
    const renamed = [owner, tool].find((one) => one !== undefined && settingsOf(options, one).rename !== undefined);
    if (owner !== undefined && renamed !== undefined) {
      throw new InvalidInputError(
        `mcp("${options.name}"): tools["${renamed}"].rename is "${name}", which another tool has`,
      );
    }
    if (owner !== undefined) continue;
    owners.set(name, tool);
    names.set(tool, name);
  }
  const used = new Set<string>();
  return listed.map(({ name: tool }) => {
    if (used.has(tool)) return undefined;
    used.add(tool);
    return names.get(tool);
  });
}

function legalName(server: string, tool: string): string {
  const whole = `${server}__${tool}`;
  if (/^[a-zA-Z0-9_-]+$/.test(tool) && whole.length <= LONGEST_NAME) return whole;
  const hash = createHash("sha256").update(tool).digest("hex").slice(0, 12);
  return `${whole.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, LONGEST_NAME - hash.length - 1)}_${hash}`;
}
