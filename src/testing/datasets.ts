import { readFile } from "node:fs/promises";
import { basename, extname } from "node:path";
import { fileURLToPath } from "node:url";
import type { Node } from "yaml";
import { z } from "zod";
import { describeFileError, type OptionsSchema, optionsOf, reading, ruleOf } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type Json, jsonSchema } from "../state/index.ts";
import { checkValue, isValueSchema, type ValueOf, type ValueSchema, valueSchemaKinds } from "../tools/index.ts";

/** A case of a data set. */
export interface EvalCase {
  /** Unique in its data set. */
  readonly name: string;
  /** The input for `runCase()`. */
  readonly input: string;
  /** What is expected of the run; its form is the test's own. */
  readonly expected?: Json | undefined;
}

/** Options of `readCases()`. */
export interface ReadCasesOptions<Schema extends ValueSchema = ValueSchema> {
  /** The schema of a case. Default: that of `EvalCase`, whose `name` may be missing. */
  readonly schema?: Schema | undefined;
}

const readCasesOptions: OptionsSchema<ReadCasesOptions> = {
  rules: { schema: ruleOf(valueSchemaKinds, isValueSchema) },
  instead: { format: "a file whose name ends with .json, .jsonl, .yaml or .yml", parameters: "schema" },
};

const usualSchema = z.strictObject({
  name: z
    .string()
    .min(1)
    .optional()
    .meta({ description: "Unique in its data set. Default: the file's name and the line." }),
  input: z.string().min(1).meta({ description: "The message for the agent." }),
  expected: jsonSchema.optional().meta({ description: "What is expected of the run; its form is the test's own." }),
});

/** A data set without a schema of its own: a list of cases. `troupe schema eval-cases` prints it as JSON Schema. */
export const evalCasesSchema = z.array(usualSchema).min(1);

/** One case as it is written in its file. */
interface WrittenCase {
  readonly value: unknown;
  readonly line: number;
}

/**
 * Reads the cases of a data set: a list in a `.json`, `.yaml` or `.yml` file, or a line for each case in a `.jsonl` file. Without a schema, a case
 * is `{ name?, input, expected? }`, and its name is by default the file's name and the line.
 *
 * Rejects with `InvalidInputError` that names file and line if the file cannot be read, has no case, or a case does not match the schema; and for
 * two cases of one name.
 */
export async function readCases<Schema extends ValueSchema = ValueSchema<unknown, EvalCase>>(
  file: string | URL,
  options?: ReadCasesOptions<Schema>,
): Promise<readonly ValueOf<Schema>[]> {
  const { schema } = optionsOf<ReadCasesOptions>(options, "readCases()", readCasesOptions);
  const path = reading("readCases(): its file", () => pathOf(file));
  const written = await casesIn(path, await textOfFile(path));
  if (written.length === 0) throw new InvalidInputError(`${path} has no case`);
  const cases: ValueOf<Schema>[] = [];
  for (const { value: given, line } of written) {
    const checked = await checkValue(schema ?? usualSchema, given);
    if (!checked.ok) throw new InvalidInputError(`${path}:${line}: ${faultOf(checked)}`);
    const value = schema ? checked.value : named(checked.value as z.infer<typeof usualSchema>, path, line);
    cases.push(value as ValueOf<Schema>);
  }
  assertNamesDiffer(cases, written, path);
  return cases;
}

function pathOf(file: string | URL): string {
  if (file instanceof URL && file.protocol === "file:") return fileURLToPath(file);
  if (typeof file === "string" && file !== "") return file;
  throw new InvalidInputError("readCases(): its file must be a path or a file: URL");
}

async function textOfFile(path: string): Promise<string> {
  try {
    // Editors of Windows begin a file with a byte order mark, which is not a part of JSON.
    return (await readFile(path, "utf8")).replace(/^\ufeff/, "");
  } catch (cause) {
    throw new InvalidInputError(describeFileError(path, cause), { cause });
  }
}

async function casesIn(path: string, text: string): Promise<WrittenCase[]> {
  switch (extname(path).toLowerCase()) {
    case ".jsonl":
      return text.split("\n").flatMap((content, index) => {
        if (content.trim() === "") return [];
        return [{ value: parsedJson(content, `${path}:${index + 1}`), line: index + 1 }];
      });
    case ".json":
      // YAML is a superset, and its parser reports the lines.
      parsedJson(text, path);
      return await casesOfList(path, text);
    case ".yaml":
    case ".yml":
      return await casesOfList(path, text);
    default:
      throw new InvalidInputError(
        `${path}: a data set is a file whose name ends with .json, .jsonl, .yaml or .yml; convert other formats, such as CSV, first`,
      );
  }
}

function parsedJson(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new InvalidInputError(`${where}: this is not valid JSON: ${(cause as Error).message}`, { cause });
  }
}

async function casesOfList(path: string, text: string): Promise<WrittenCase[]> {
  const { isSeq, LineCounter, parseDocument } = await import("yaml");
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const [fault] = document.errors;
  if (fault)
    throw new InvalidInputError(`${path}:${lines.linePos(fault.pos[0]).line}: ${fault.message}`, { cause: fault });
  const list = document.contents;
  if (!isSeq<Node>(list)) throw new InvalidInputError(`${path}: expected a list of cases`);
  return list.items.map((item) => {
    const line = lines.linePos(item.range?.[0] ?? 0).line;
    try {
      return { value: item.toJS(document), line };
    } catch (cause) {
      throw new InvalidInputError(`${path}:${line}: ${(cause as Error).message}`, { cause });
    }
  });
}

function faultOf(checked: Exclude<Awaited<ReturnType<typeof checkValue>>, { readonly ok: true }>): string {
  if ("thrown" in checked) return `the schema cannot check this case: ${checked.thrown}`;
  const issues = checked.issues.map(({ path, message, expected }) => {
    const where = path.length === 0 ? "" : `${path.join(".")}: `;
    return `${where}${message}${expected === undefined ? "" : ` (expected ${expected})`}`;
  });
  return issues.join("; ");
}

function named({ name, input, expected }: z.infer<typeof usualSchema>, path: string, line: number): EvalCase {
  return { name: name ?? `${basename(path)}:${line}`, input, ...(expected === undefined ? {} : { expected }) };
}

/** Results are compared by name; cases of the caller's own schema may have none. */
function assertNamesDiffer(cases: readonly unknown[], written: readonly WrittenCase[], path: string): void {
  const lines = new Map<string, number>();
  for (const [index, one] of cases.entries()) {
    const name: unknown = typeof one === "object" && one !== null && "name" in one ? one.name : undefined;
    const line = written[index]?.line ?? 0;
    if (typeof name !== "string") continue;
    const before = lines.get(name);
    if (before !== undefined) throw new InvalidInputError(`${path}:${line}: line ${before} has a case "${name}" too`);
    lines.set(name, line);
  }
}
