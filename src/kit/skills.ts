import { z } from "zod";
import { describeValue } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Plugin } from "../hooks/index.ts";
import { defineTool } from "../tools/index.ts";
import { existingFolder } from "./folder.ts";
import { type FolderEntry, JailedFolder } from "./jailed-folder.ts";
import { LARGEST_SKILL, parseSkill, type SkillHead } from "./skill-file.ts";
import { textIn, textOfContent } from "./text-content.ts";
import { namesOfPath } from "./workspace-path.ts";

interface Skill extends SkillHead {
  /** The folder that has the skill's folder. */
  readonly files: JailedFolder;
}

const MOST_SKILLS = 500;
const MOST_LISTED = 200;
/** Bytes of the largest file of a skill that is shown. */
const LARGEST_FILE = 2_000_000;
const SKILL_FILE = "SKILL.md";

/**
 * Skills: folders with a `SKILL.md` whose head has `name` and `description` (agentskills.io). The system prompt has the names and
 * descriptions, sorted by name; the model reads the rest with the tool `load_skill`. The heads are read once, here; a file is read when the
 * model asks for it. No path leaves the folder of the skill.
 * @param folders A folder whose subfolders are skills, or several of them: paths, relative to the working directory, or `file:` URLs.
 * @returns A plugin.
 * @throws InvalidInputError that lists all faults of all files, for missing folders, and for two skills of one name.
 */
export async function skills(folders: string | URL | readonly (string | URL)[]): Promise<Plugin> {
  const paths: readonly unknown[] = Array.isArray(folders) ? folders : [folders];
  if (paths.length === 0)
    throw new InvalidInputError("skills() expects the path of a folder with skills, not an empty list");
  const found = await Promise.all(paths.map(async (path) => await skillsIn(existingFolder(path, "skills()"))));
  const problems = found.flatMap((one) => one.problems);
  const all = found.flatMap((one) => one.skills).sort((one, other) => (one.name < other.name ? -1 : 1));
  for (const [index, { name }] of all.entries()) {
    if (all[index + 1]?.name === name) problems.push(`two skills are named "${name}"; rename one of them`);
  }
  if (all.length > MOST_SKILLS) problems.push(`there are ${all.length} skills; at most ${MOST_SKILLS} can be offered`);
  if (problems.length > 0) throw new InvalidInputError(`skills():\n${problems.map((one) => `- ${one}`).join("\n")}`);
  if (all.length === 0) {
    const where = paths.map((path) => (path instanceof URL ? path.href : String(path))).join(", ");
    throw new InvalidInputError(`skills(): there is no skill in ${where}; expected folders with a ${SKILL_FILE}`);
  }
  return pluginOf(new Map(all.map((skill) => [skill.name, skill])));
}

function pluginOf(known: ReadonlyMap<string, Skill>): Plugin {
  const names = [...known.keys()] as [string, ...string[]];
  const lines = [...known.values()].map(({ name, description }) => `- ${name}: ${description}`);
  const loadSkill = defineTool({
    name: "load_skill",
    description: "Loads the instructions of a skill, or one of its files.",
    parameters: z.object({
      name: z.enum(names).describe("The name of the skill."),
      file: z
        .string()
        .min(1)
        .optional()
        .describe(`A file of the skill, as its instructions name it. Default: ${SKILL_FILE}.`),
    }),
    effect: "none",
    maxOutputCharacters: 100_000,
    execute: async ({ name, file }, { signal }) => {
      const skill = known.get(name);
      if (!skill) throw new InvalidInputError(`There is no skill ${describeValue(name)}.`);
      return file === undefined ? await loadedSkill(skill, signal) : await loadedFile(skill, file, signal);
    },
  });
  return {
    name: "skills",
    instructions: [
      "# Skills",
      "",
      "A skill is a set of instructions for a kind of task. Before you begin a task that one of these skills describes, load it with load_skill and follow it. Load further files of a skill only when its instructions need them.",
      "",
      ...lines,
    ].join("\n"),
    tools: [loadSkill],
  };
}

async function loadedSkill(skill: Skill, signal: AbortSignal): Promise<string> {
  const { name, files } = skill;
  const path = `${name}/${SKILL_FILE}`;
  const parsed = await parseSkill(textOfContent(path, await readIn(skill, path, LARGEST_SKILL, signal)), name);
  if (!parsed.ok)
    throw new InvalidInputError(`The skill ${name} cannot be loaded any more: ${parsed.problems.join("; ")}.`);
  const others = (await filesBelow(files, name)).filter((one) => one !== SKILL_FILE);
  if (others.length === 0) return parsed.body;
  const more = others.length > MOST_LISTED ? [`… and ${others.length - MOST_LISTED} more`] : [];
  const list = [...others.slice(0, MOST_LISTED), ...more].map((one) => `- ${one}`);
  return `${parsed.body}\n\nFiles of this skill, for load_skill:\n${list.join("\n")}`;
}

async function loadedFile(skill: Skill, file: string, signal: AbortSignal): Promise<string> {
  const path = `${skill.name}/${namesOfPath(file).join("/")}`;
  return textOfContent(file, await readIn(skill, path, LARGEST_FILE, signal));
}

/** The jail is the folder of the one skill: a link in it does not lead to another skill either. */
async function readIn(
  { files, name }: Skill,
  path: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const own = new JailedFolder(await files.realPath(name));
  return await own.read(path.slice(name.length + 1), maxBytes, signal);
}

interface FoundSkills {
  readonly skills: readonly Skill[];
  readonly problems: string[];
}

async function skillsIn(root: string): Promise<FoundSkills> {
  const files = new JailedFolder(root);
  const problems: string[] = [];
  const signal = new AbortController().signal;
  const found = await Promise.all(
    (await files.list("")).map(async ({ name, kind }): Promise<Skill | undefined> => {
      if (name.startsWith(".") || (kind !== "folder" && kind !== "link")) return undefined;
      const path = `${name}/${SKILL_FILE}`;
      const shown = `${root}/${path}`;
      try {
        const members = await files.list(name);
        if (members.every((member) => member.name !== SKILL_FILE)) {
          const other = members.find((member) => member.name.toLowerCase() === "skill.md");
          if (other) problems.push(`${root}/${name}/${other.name}: rename it to ${SKILL_FILE}`);
          return undefined;
        }
        const text = textIn(await files.read(path, LARGEST_SKILL, signal));
        const parsed = text === undefined ? undefined : await parseSkill(text, name);
        if (parsed?.ok) return { ...parsed.head, files };
        for (const problem of parsed?.problems ?? ["it is not text in UTF-8"]) problems.push(`${shown}: ${problem}`);
      } catch (error) {
        if (!(error instanceof InvalidInputError)) throw error;
        // Links to files and to folders outside are skipped.
        if (kind === "folder") problems.push(`${shown}: ${error.message}`);
      }
      return undefined;
    }),
  );
  return { skills: found.filter((skill) => skill !== undefined), problems };
}

/** The files of a skill, as `load_skill` takes them. Links are not followed. */
async function filesBelow(files: JailedFolder, folder: string): Promise<readonly string[]> {
  const found: string[] = [];
  const folders = [""];
  for (let below = folders.shift(); below !== undefined && found.length <= MOST_LISTED; below = folders.shift()) {
    const entries: readonly FolderEntry[] = await files.list(`${folder}/${below}`);
    for (const { name, kind } of entries) {
      if (name.startsWith(".") || name === "node_modules") continue;
      if (kind === "file") found.push(`${below}${name}`);
      else if (kind === "folder") folders.push(`${below}${name}/`);
    }
  }
  return found.sort();
}
