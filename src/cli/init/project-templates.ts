import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { packageFields, packageFile } from "../own-files.ts";

/** The templates of `troupe init`, folders of `templates/`, each with its description. */
export const templates = {
  agent: "one agent with a tool",
  team: "a lead with a subagent, and a refund that waits for an approval",
  workers: "turns and slow tools on workers, over Redis",
  hono: "an agent behind routes of a Hono app",
  next: "an agent behind a route of a Next.js app",
} as const;

export type TemplateName = keyof typeof templates;

export function isTemplateName(text: string): text is TemplateName {
  return Object.hasOwn(templates, text);
}

/** Templates around the agent of another one: they have its files too. */
const foundations: Partial<Record<TemplateName, TemplateName>> = { hono: "agent", next: "agent" };

interface ProjectManifest {
  readonly name: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** The files of a new project, by their paths with `/`. */
export function projectFiles(template: TemplateName, name: string): ReadonlyMap<string, string> {
  const foundation = foundations[template];
  // Files of the template override those that it shares with others.
  const files = new Map(
    ["shared", ...(foundation ? [foundation] : []), template].flatMap((folder) => [...filesIn(folder)]),
  );
  const manifest = { ...manifestOf(files), name };
  files.set("package.json", `${JSON.stringify(withRanges(manifest), null, 2)}\n`);
  files.set("README.md", (files.get("README.md") ?? "").replace(/^# NAME$/m, `# ${name}`));
  return files;
}

/** The packages that a project of this template depends on. */
export function packagesOf(template: TemplateName): readonly string[] {
  const { dependencies, devDependencies } = manifestOf(filesIn(template));
  return Object.keys({ ...dependencies, ...devDependencies });
}

function manifestOf(files: ReadonlyMap<string, string>): ProjectManifest {
  return JSON.parse(files.get("package.json") ?? "{}") as ProjectManifest;
}

/**
 * The files of a folder of `templates/`, by their names in a project.
 */
function filesIn(folder: string): ReadonlyMap<string, string> {
  const root = fileURLToPath(packageFile(`templates/${folder}/`));
  const names = readdirSync(root, { recursive: true, withFileTypes: true });
  return new Map(
    names
      .filter((entry) => entry.isFile())
      .map((entry) => {
        const path = join(entry.parentPath, entry.name);
        return [nameInProject(path.slice(root.length).replaceAll("\\", "/")), readFileSync(path, "utf8")] as const;
      }),
  );
}

/** npm leaves a `.gitignore` out of packages, and a `package.json` would make its folder a package of its own. */
const renamed: Readonly<Record<string, string>> = {
  "_package.json": "package.json",
  _gitignore: ".gitignore",
  "_env.example": ".env.example",
};

function nameInProject(path: string): string {
  return renamed[path] ?? path;
}

/** Fills in the versions: `*` is the range that this version of troupe is tested with. */
function withRanges(manifest: ProjectManifest): ProjectManifest {
  const { version, dependencies, devDependencies } = packageFields();
  const ranges: Readonly<Record<string, string>> = { ...devDependencies, ...dependencies, troupe: `^${version}` };
  const filled = (wanted: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
    Object.fromEntries(
      Object.entries(wanted).map(([name, range]) => [name, range === "*" ? (ranges[name] ?? range) : range]),
    );
  return {
    ...manifest,
    dependencies: filled(manifest.dependencies),
    devDependencies: filled(manifest.devDependencies),
  };
}
