import { mkdir, readFile, readdir } from "node:fs/promises";
import { extname, join, resolve } from "node:path";
import { collectDefinitions } from "../../agents/index.ts";
import { describeFileError, nearestName } from "../../base/index.ts";
import { InvalidInputError, NotFoundError } from "../../errors/index.ts";
import type { Json } from "../../state/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { agentFileEndings, loadAgentFile } from "../job/agent-file.ts";
import { withMcpTools } from "../mcp/mcp-tools.ts";
import { type AgentSchemas, schemasOf } from "../schema/agent-schemas.ts";
import { publishedSchemas } from "../schema/published-schemas.ts";
import { tableLines } from "../view/table.ts";
import { assertWritable, writePublicFile } from "./written-file.ts";

export interface SchemaOptions {
  readonly out?: string | undefined;
  readonly agent?: string | undefined;
  /** Overwrites files that are not schemas of the same name. */
  readonly force?: boolean | undefined;
}

/** A document and the name of its file. */
interface SchemaFile {
  readonly name: string;
  readonly document: Json;
}

/** Prints JSON Schemas, or writes them into a folder: those of file formats, or of the agents in a file. */
export async function schemaCommand(
  context: CliContext,
  what: string | undefined,
  options: SchemaOptions,
): Promise<ExitCode> {
  const { out, agent, force = false } = options;
  const isFile = what !== undefined && agentFileEndings.includes(extname(what));
  if (agent !== undefined && !isFile) {
    throw new InvalidInputError("--agent names an agent of a file; give the file too: troupe schema FILE --agent NAME");
  }
  if (force && out === undefined) throw new InvalidInputError("--force is for --out DIR; leave it out");
  if (isFile) {
    const agents = await agentsOf(context, what, agent);
    if (out === undefined) print(context, agent === undefined ? agents : agents[0]);
    else await writeAll(context, { folder: out, force, files: agents.flatMap(filesOf) });
    return exitCodes.success;
  }
  const schemas = what === undefined ? publishedSchemas : [publishedSchema(what)];
  if (out !== undefined) {
    const files = schemas.map(async ({ name, ending, document }) => ({
      name: `${name}${ending}`,
      document: await document(),
    }));
    await writeAll(context, { folder: out, force, files: await Promise.all(files) });
  } else if (what === undefined) {
    const rows = schemas.map(({ name, description }) => [name, description]);
    tableLines([{ title: "SCHEMA" }, { title: "OF" }], rows).forEach(context.out);
  } else for (const { document } of schemas) print(context, await document());
  return exitCodes.success;
}

function print({ out }: CliContext, value: unknown): void {
  out(JSON.stringify(value, null, 2));
}

function publishedSchema(name: string): (typeof publishedSchemas)[number] {
  const found = publishedSchemas.find((schema) => schema.name === name);
  if (found) return found;
  const names = publishedSchemas.map((schema) => schema.name);
  const meant = nearestName(name, names);
  throw new NotFoundError(
    `there is no schema "${name.slice(0, 80)}"${meant === undefined ? "" : `: did you mean ${meant}?`} Give one of ${names.join(", ")}, or an agent file whose name ends with ${agentFileEndings.join(", ")}`,
  );
}

/** The schemas of all agents of a file and their subagents, or of one of them. */
async function agentsOf(context: CliContext, file: string, agent: string | undefined): Promise<AgentSchemas[]> {
  const { agents } = await withMcpTools(context, await loadAgentFile(file, context.directory), undefined);
  const definitions = collectDefinitions(agents);
  if (agent === undefined) return [...definitions.values()].map(schemasOf);
  const definition = definitions.get(agent);
  if (definition) return [schemasOf(definition)];
  const names = [...definitions.keys()].map((name) => `"${name}"`).join(", ");
  throw new NotFoundError(`${file} has no agent "${agent}"; it has ${names}`);
}

function filesOf({ agent, input, output, tools }: AgentSchemas): SchemaFile[] {
  return [
    { name: `${agent}.input.schema.json`, document: input },
    ...(output === null ? [] : [{ name: `${agent}.output.schema.json`, document: output }]),
    ...Object.entries(tools).map(([name, document]) => ({ name: `${agent}.tool-${name}.schema.json`, document })),
  ];
}

interface WrittenSchemas {
  readonly folder: string;
  readonly force: boolean;
  readonly files: readonly SchemaFile[];
}

/** All files are checked before the first is written, each atomically: a second attempt completes what an interrupted one began. */
async function writeAll(context: CliContext, { folder, force, files }: WrittenSchemas): Promise<void> {
  await mkdir(resolve(context.directory, folder), { recursive: true }).catch((cause: unknown) => {
    throw new InvalidInputError(describeFileError(folder, cause), { cause });
  });
  const known = new Set(await readdir(resolve(context.directory, folder)));
  for (const { name, document } of files) {
    const path = join(folder, name);
    const mayReplace = force || (known.has(name) && (await isSameSchema(resolve(context.directory, path), document)));
    await assertWritable(context, path, mayReplace);
  }
  for (const { name, document } of files) {
    const path = join(folder, name);
    await writePublicFile(context, path, `${JSON.stringify(document, null, 2)}\n`);
    context.out(`Written: ${path}`);
  }
}

/** Whether the file is an earlier version of the document: it has the same identifier, or the same title. */
async function isSameSchema(path: string, document: Json): Promise<boolean> {
  try {
    const stored: unknown = JSON.parse(await readFile(path, "utf8"));
    return identityOf(stored) === identityOf(document);
  } catch {
    return false;
  }
}

function identityOf(document: unknown): string {
  const { $id, title, openapi, info } = (document ?? {}) as Readonly<Record<string, unknown>>;
  return JSON.stringify([$id, title, typeof openapi, (info as { readonly title?: unknown } | undefined)?.title]);
}
