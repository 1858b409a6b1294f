import { relative } from "node:path";
import { nearestName, shellWord } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { assertNotOwnDependency, projectPlace } from "../init/project-name.ts";
import { isTemplateName, projectFiles, type TemplateName, templates } from "../init/project-templates.ts";
import { assertFree, writeProject } from "../init/write-project.ts";
import { ReadlineInput } from "../inline/line-input.ts";

export interface InitOptions {
  readonly template?: string | undefined;
  readonly yes?: boolean | undefined;
}

const usualName = "my-agent";
const usualTemplate: TemplateName = "agent";

/** A new project: where it will be, and what it is made from. */
interface Plan {
  readonly folder: string;
  readonly name: string;
  readonly template: TemplateName;
}

/** Writes a new project. Exit code 0: it is there; 2: nothing was written; 130: the person left the questions. */
export async function initCommand(
  context: CliContext,
  name: string | undefined,
  { template, yes = false }: InitOptions,
): Promise<ExitCode> {
  const { directory, stdin, stdout, out } = context;
  // What was given is checked before anything is asked.
  if (template !== undefined) templateOf(template);
  if (name !== undefined) assertFree(projectPlace(name, directory).folder);
  const isAsking = stdin.isTTY && stdout.isTTY && !yes && (name === undefined || template === undefined);
  const wanted = isAsking
    ? await asked(context, name, template)
    : { name: name ?? usualName, template: template ?? usualTemplate };
  if (wanted === undefined) return exitCodes.interrupted;
  const plan = planOf(wanted.name, wanted.template, directory);
  writeProject(plan.folder, projectFiles(plan.template, plan.name));
  const place = relative(directory, plan.folder);
  out(`Wrote ${place} from the template ${plan.template}: ${templates[plan.template]}.`);
  out("");
  for (const line of [`cd ${shellWord(place)}`, "npm install", "npm start"]) out(`  ${line}`);
  out("");
  out(
    "npm run dev talks with it, shows it in a browser and reloads it at each save; README.md has the other commands.",
  );
  out("The first hour, step by step: node_modules/troupe/docs/first-hour.md");
  return exitCodes.success;
}

/** Throws `InvalidInputError` for an invalid name, an unknown template, or a folder that is not free. */
function planOf(name: string, template: string, directory: string): Plan {
  const place = projectPlace(name, directory);
  const known = templateOf(template);
  assertNotOwnDependency(place.name, known);
  assertFree(place.folder);
  return { ...place, template: known };
}

function templateOf(text: string): TemplateName {
  if (isTemplateName(text)) return text;
  const names = Object.keys(templates);
  const nearest = nearestName(text, names);
  const hint = nearest === undefined ? "" : `, did you mean ${nearest}?`;
  throw new InvalidInputError(
    `there is no template ${JSON.stringify(text)}${hint}; the templates are ${names.join(", ")}`,
  );
}

/** Asks for what is missing until it is valid. `undefined` if the person leaves. */
async function asked(
  { directory, stdin, stdout, note }: CliContext,
  name: string | undefined,
  template: string | undefined,
): Promise<{ readonly name: string; readonly template: string } | undefined> {
  const left = new AbortController();
  const input = new ReadlineInput({
    input: stdin,
    output: stdout,
    isTerminal: true,
    onInterrupt: () => left.abort(),
  });
  const answer = async (
    prompt: string,
    usual: string,
    check: (text: string) => unknown,
  ): Promise<string | undefined> => {
    for (;;) {
      const read = await input.next(`${prompt} (${usual}): `, { signal: left.signal });
      if (typeof read !== "object") return undefined;
      const text = read.line.trim() || usual;
      try {
        check(text);
        return text;
      } catch (error) {
        if (!(error instanceof InvalidInputError)) throw error;
        note(error.message);
      }
    }
  };
  try {
    const chosen = name ?? (await answer("Folder", usualName, (text) => planOf(text, usualTemplate, directory)));
    if (chosen === undefined) return undefined;
    if (template !== undefined) return { name: chosen, template };
    for (const [known, description] of Object.entries(templates)) note(`  ${known.padEnd(8)} ${description}`);
    const from = await answer("Template", usualTemplate, (text) => planOf(chosen, text, directory));
    return from === undefined ? undefined : { name: chosen, template: from };
  } finally {
    input.close();
  }
}
