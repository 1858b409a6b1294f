import { isScalar, LineCounter, parseDocument, type Document } from "yaml";
import type { z } from "zod";
import { describeValue, type Path, renderPath } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { SERVED_VERSION, type TealAgentSpec, tealAgentFileSchema, type TealMetadata } from "./agent-file-schema.ts";

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
  const parsed = tealAgentFileSchema.safeParse(value);
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
