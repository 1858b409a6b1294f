import { isScalar, LineCounter, parseDocument, type Document } from "yaml";
import { z } from "zod";
import { describeValue, type Path, renderPath } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";

/** The only supported version of the format. */
const SERVED_VERSION = "tealagents/v1alpha1";

const text = z.string({ error: "a text" });
const filledText = text.regex(/\S/, { error: "a text that is not empty" });
const texts = z.array(text, { error: "a list of texts" });

/** The name begins the names of the server's tools. */
const mcpName = /^(?!.*__)[a-zA-Z0-9](?:[a-zA-Z0-9_-]{0,30}[a-zA-Z0-9])?$/;
const mcpNameMessage = 'a name of 1 to 32 letters, digits, "_" and "-", without "__"';

const skillSchema = z.object(
  {
    id: filledText,
    name: filledText,
    description: text,
    tags: texts,
    examples: texts.nullish(),
    input_modes: texts.nullish(),
    output_modes: texts.nullish(),
  },
  { error: "an object { id, name, description, tags }" },
);

const metadataSchema = z.object(
  {
    description: text.nullish(),
    documentation_url: text.nullish(),
    skills: z.array(skillSchema, { error: "a list of skills" }).nullish(),
  },
  { error: "an object { description, skills }" },
);

/** Remote plugins are not supported: their list may be present, but must be empty. */
const emptyList = z.array(z.unknown(), { error: "a list" }).max(0);

const textRecord = z.record(z.string(), text, { error: "an object of texts" });
const seconds = z.number({ error: "a number of seconds above 0" }).gt(0, { error: "a number of seconds above 0" });

const mcpServerSchema = z.object(
  {
    name: z.string({ error: mcpNameMessage }).regex(mcpName, { error: mcpNameMessage }),
    transport: z.enum(["stdio", "http"], { error: '"stdio" or "http"' }).nullish(),
    command: filledText.nullish(),
    args: texts.nullish(),
    env: textRecord.nullish(),
    url: filledText.nullish(),
    headers: textRecord.nullish(),
    timeout: seconds.nullish(),
    verify_ssl: z.boolean({ error: "true or false" }).nullish(),
    auth_server: filledText.nullish(),
    oauth_client_id: filledText.nullish(),
    user_id_header: filledText.nullish(),
    user_id_source: filledText.nullish(),
    trust_level: z
      .enum(["trusted", "sandboxed", "untrusted"], { error: '"trusted", "sandboxed" or "untrusted"' })
      .nullish(),
    tool_governance_overrides: z
      .record(
        z.string(),
        z.object(
          { requires_hitl: z.boolean({ error: "true or false" }).nullish() },
          { error: "an object { requires_hitl }" },
        ),
        { error: "an object of rules by the names of tools" },
      )
      .nullish(),
  },
  { error: "an object { name, command } or { name, url }" },
);
export type TealMcpServer = z.output<typeof mcpServerSchema>;

const temperature = z.number({ error: "a number from 0 to 1" }).min(0).max(1);

const agentSchema = z.object(
  {
    name: text.nullish(),
    model: filledText,
    system_prompt: text,
    temperature: temperature.nullish(),
    max_tokens: z
      .int({ error: "a whole number of at least 1" })
      .min(1, { error: "a whole number of at least 1" })
      .nullish(),
    reasoning_effort: z.enum(["low", "medium", "high"], { error: '"low", "medium" or "high"' }).nullish(),
    plugins: z.array(filledText, { error: "a list of the names of plugins" }).nullish(),
    remote_plugins: emptyList.nullish(),
    mcp_servers: z.array(mcpServerSchema, { error: "a list of MCP servers" }).nullish(),
  },
  { error: "an object { name, model, system_prompt }" },
);

const nameMessage = 'a name of 1 to 64 letters, digits, "_", "-" and "."';

const fileSchema = z.object(
  {
    apiVersion: text,
    name: text.regex(/^(?=.*[A-Za-z0-9_-])[A-Za-z0-9_.-]{1,64}$/, { error: nameMessage }),
    version: z.union([z.number(), filledText], { error: "a version, for instance 0.1" }),
    description: text.nullish(),
    metadata: metadataSchema.nullish(),
    spec: z.object({ agent: agentSchema }, { error: "an object { agent }" }),
  },
  { error: "an object { apiVersion, name, version, spec }" },
);

export type TealAgentSpec = z.output<typeof agentSchema>;
export type TealMetadata = z.output<typeof metadataSchema>;

/** A validated agent file. Unknown fields are left out. */
export interface TealFile {
  readonly name: string;
  /** As Python prints it: `1.0` remains "1.0", `0.10` becomes "0.1". */
  readonly version: string;
  readonly description: string | null;
  readonly metadata: TealMetadata | null;
  readonly agent: TealAgentSpec;
  /** The error for a field: contains the file, the field's line, its path, and the problem. */
  problem(path: Path, words: string): InvalidInputError;
}

/**
 * Parses the text of an agent file, `apiVersion: tealagents/v1alpha1`, as YAML 1.1, like the original Python
 * implementation.
 * @param file Its name, for messages.
 * @throws InvalidInputError that names the file, the line and the path of the first field that is invalid or
 * unsupported.
 */
export function readTealFile(source: string, file: string): TealFile {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false, version: "1.1" });
  const [broken] = document.errors;
  if (broken) throw new InvalidInputError(`${file}:${lines.linePos(broken.pos[0]).line}: ${broken.message}`);
  const problem = (path: Path, words: string): InvalidInputError =>
    new InvalidInputError(`${file}:${lineOf(document, lines, path)}: ${renderPath(path)} ${words}`);
  const value = valueOf(document, file);
  checkVersion(value, problem);
  const parsed = fileSchema.safeParse(value);
  if (!parsed.success) throw wrongField(parsed.error, value, problem);
  const { name, version, description, metadata, spec } = parsed.data;
  return {
    name,
    version: typeof version === "number" ? versionOf(document, version) : version,
    description: description ?? null,
    metadata: metadata ?? null,
    agent: spec.agent,
    problem,
  };
}

function valueOf(document: Document, file: string): unknown {
  try {
    return document.toJS() as unknown;
  } catch (error) {
    throw new InvalidInputError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** The version is checked before the fields: another kind of file has other fields. */
function checkVersion(value: unknown, problem: TealFile["problem"]): void {
  const version = typeof value === "object" && value !== null && "apiVersion" in value ? value.apiVersion : undefined;
  if (version === SERVED_VERSION || typeof version !== "string") return;
  const words = `is ${JSON.stringify(version.slice(0, 64))}`;
  if (!version.startsWith("skagents/")) throw problem(["apiVersion"], `${words}; expected "${SERVED_VERSION}"`);
  throw problem(
    ["apiVersion"],
    `${words}: stateless agents are not supported; change it to "${SERVED_VERSION}", whose spec has one agent and whose callers name a task instead of sending the history`,
  );
}

function wrongField(error: z.ZodError, value: unknown, problem: TealFile["problem"]): InvalidInputError {
  const [issue] = error.issues;
  const path = (issue?.path ?? []).map((part) => (typeof part === "number" ? part : String(part)));
  const found = path.reduce<unknown>(
    (above, part) =>
      typeof above === "object" && above !== null ? (above as Readonly<Record<string, unknown>>)[part] : undefined,
    value,
  );
  const field = path.at(-1);
  if (issue?.code === "too_big" && field === "remote_plugins") {
    return problem(path, "is not supported: provide its tools as plugins, which are code next to this file");
  }
  const takes =
    issue?.code === "too_big" || issue?.code === "too_small" ? (takesRange(issue) ?? issue.message) : issue?.message;
  const words = found === undefined ? "is missing" : `is ${describeValue(found)}`;
  return problem(path, `${words}; expected ${takes ?? "another value"}`);
}

function takesRange(issue: z.core.$ZodIssue): string | undefined {
  return issue.path.at(-1) === "temperature" ? "a number from 0 to 1" : undefined;
}

/** The line of a field, from 1; for a missing field, the line of the nearest parent. */
function lineOf(document: Document, lines: LineCounter, path: Path): number {
  for (let length = path.length; length > 0; length -= 1) {
    const node: unknown = document.getIn(path.slice(0, length), true);
    const range = typeof node === "object" && node !== null && "range" in node ? node.range : undefined;
    if (Array.isArray(range) && typeof range[0] === "number") return lines.linePos(range[0]).line;
  }
  return 1;
}

/**
 * Formats a number like Python: one with a point keeps a point; for Python, a number with only an exponent is a text.
 */
function versionOf(document: Document, version: number): string {
  const node: unknown = document.get("version", true);
  const source = isScalar(node) ? (node.source ?? "") : "";
  if (!source.includes(".")) return /e/i.test(source) ? source : String(version);
  return Number.isInteger(version) ? `${version}.0` : String(version);
}
