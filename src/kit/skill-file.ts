import { z } from "zod";
import { wordsOfThrown } from "../base/index.ts";

/** The head of a `SKILL.md`. */
export interface SkillHead {
  readonly name: string;
  readonly description: string;
}

/** A parsed `SKILL.md`, or what is wrong with it. */
export type ParsedSkill =
  | { readonly ok: true; readonly head: SkillHead; readonly body: string }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Bytes of the largest `SKILL.md`. */
export const LARGEST_SKILL = 1_000_000;
const LONGEST_HEAD = 64_000;

/** The YAML at the start of a `SKILL.md`. `troupe schema skill` prints it as JSON Schema. */
export const skillHeadSchema = z.looseObject({
  name: z
    .string({ error: "name is missing; give the name of the folder" })
    .max(64, { error: "name has more than 64 characters" })
    .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, {
      error: "name may have a-z, 0-9 and single hyphens between them, such as pdf-forms",
    })
    .meta({ description: "Name of the skill, the same as of its folder." }),
  description: z
    .string({ error: "description is missing; say what the skill does and when to use it" })
    .regex(/\S/, { error: "description is empty; say what the skill does and when to use it" })
    .max(1_024, { error: "description has more than 1,024 characters" })
    .meta({ description: "What the skill does and when to use it: the model chooses by it." }),
  license: z.string({ error: "license must be a text" }).optional(),
  compatibility: z
    .string({ error: "compatibility must be a text" })
    .min(1, { error: "compatibility is empty; leave it out" })
    .max(500, { error: "compatibility has more than 500 characters" })
    .optional()
    .meta({ description: "Programs, packages or network that the skill needs." }),
  metadata: z
    .record(z.string(), z.union([z.string(), z.number(), z.boolean()]), { error: "metadata must map names to texts" })
    .optional(),
  "allowed-tools": z
    .union([z.string(), z.array(z.string())], { error: "allowed-tools must be a text of names separated by spaces" })
    .optional()
    .meta({ description: "Names of tools separated by spaces. For other programs; it grants nothing here." }),
});

/** Reads a `SKILL.md`: YAML between two lines `---`, then Markdown. `folder` is the name of its folder. */
export async function parseSkill(text: string, folder: string): Promise<ParsedSkill> {
  const found = /^\uFEFF?---[ \t]*\r?\n(?<head>[^]*?)^---[ \t]*(?:\r?\n(?<body>[^]*))?$/m.exec(text);
  if (!found || found.index !== 0) {
    return refused('it does not begin with YAML between two lines "---" that has name and description');
  }
  const { head = "", body = "" } = found.groups ?? {};
  if (head.length > LONGEST_HEAD) return refused(`its YAML has more than ${LONGEST_HEAD} characters`);
  const { parseDocument } = await import("yaml");
  const document = parseDocument(head, { prettyErrors: true, stringKeys: true });
  if (document.errors.length > 0) {
    // The file's first line is `---`.
    return refused(...document.errors.map(({ message, linePos }) => at(linePos?.[0].line, message)));
  }
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    return refused(wordsOfThrown(error));
  }
  const parsed = parseSkillHead(value ?? {});
  if (!parsed.ok) return refused(...parsed.problems);
  const { name } = parsed.head;
  if (name !== folder) return refused(`name is "${name}", but its folder is "${folder}"; they must be the same`);
  return { ok: true, head: parsed.head, body: body.trim() };
}

/** The head of a skill from elsewhere, or what is wrong with it. */
export function parseSkillHead(
  value: unknown,
): { readonly ok: true; readonly head: SkillHead } | { readonly ok: false; readonly problems: readonly string[] } {
  const checked = skillHeadSchema.safeParse(value);
  if (!checked.success) return { ok: false, problems: checked.error.issues.map(({ message }) => message) };
  const { name, description } = checked.data;
  return { ok: true, head: { name, description: description.replaceAll(/\s+/g, " ").trim() } };
}

function at(line: number | undefined, message: string): string {
  const [first = ""] = message.split("\n");
  return `line ${(line ?? 1) + 1}: ${first.replace(/ at line \d+, column \d+:?$/, "")}`;
}

function refused(...problems: readonly string[]): ParsedSkill {
  return { ok: false, problems };
}
