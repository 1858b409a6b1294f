// Files that GitHub reads: the commands of workflows exist, actions are pinned, and issue forms are valid.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { scenarios } from "../../chaos/scenarios.ts";
import { readManifest } from "../../scripts/manifest.ts";
import { repositoryRoot } from "../../scripts/run-command.ts";

const github = join(repositoryRoot, ".github");
const { scripts } = readManifest();

const stepSchema = z
  .object({
    name: z.string(),
    uses: z.string(),
    run: z.string(),
    with: z.record(z.string(), z.unknown()),
    env: z.unknown(),
  })
  .partial()
  .refine((step) => (step.uses === undefined) !== (step.run === undefined), "a step uses an action or runs a command");

const workflowSchema = z.object({
  name: z.string(),
  on: z.record(z.string(), z.unknown()),
  permissions: z.object({ contents: z.literal("read") }).strict(),
  concurrency: z.object({ group: z.string(), "cancel-in-progress": z.unknown() }).partial(),
  jobs: z.record(
    z.string(),
    z.looseObject({
      name: z.string(),
      "runs-on": z.string(),
      "timeout-minutes": z.number(),
      steps: z.array(stepSchema),
    }),
  ),
});

function textOf(...path: readonly string[]): string {
  return readFileSync(join(github, ...path), "utf8");
}

function filesIn(folder: string): { file: string; text: string }[] {
  return readdirSync(join(github, folder)).map((file) => ({ file, text: textOf(folder, file) }));
}

/** The reason why a command of a step cannot run in a clone; `undefined` if it can. */
function faultOf(command: string): string | undefined {
  const words = command.trim().split(/\s+/);
  const [program, verb = "", name = ""] = words;
  if (program === "sudo" && verb === "apt-get") return undefined;
  if (program === "npx") {
    return existsSync(join(repositoryRoot, "node_modules", ".bin", verb)) ? undefined : `${verb} is not installed`;
  }
  if (program !== "npm") return `Unknown command ${program}; expected npm or a script of this repository`;
  if (verb === "ci") return undefined;
  const script = verb === "run" ? name : verb;
  return script in scripts ? undefined : `package.json has no script ${script}`;
}

describe.each(filesIn("workflows"))("workflows/$file", ({ text }) => {
  const workflow = workflowSchema.parse(parse(text));
  const steps = Object.values(workflow.jobs).flatMap((job) => job.steps);

  test("each command is npm or a script of this repository", () => {
    const commands = steps.flatMap(({ run }) => (run === undefined ? [] : run.trim().split(/\n|&&/)));
    expect(commands.length).toBeGreaterThan(0);
    expect(commands.flatMap((command) => faultOf(command) ?? [])).toEqual([]);
  });

  test("no expression of the triggering event is inserted into a command", () => {
    expect(steps.filter(({ run = "" }) => /\$\{\{(?!\s*matrix\.)/.test(run))).toEqual([]);
  });

  test("each action is pinned to a commit, with its version in a comment", () => {
    const used = [...text.matchAll(/^\s*(?:- )?uses: (.+)$/gm)].map(([, action]) => action);
    expect(used.filter((action = "") => !/^[\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action))).toEqual([]);
    expect(used).toHaveLength(steps.filter(({ uses }) => uses !== undefined).length);
  });

  test("scripts that an action receives exist", () => {
    const given = steps.flatMap((step) => Object.entries(step.with ?? {}).filter(([key]) => key.endsWith("-script")));
    expect(given.flatMap(([, command]) => faultOf(String(command)) ?? [])).toEqual([]);
  });
});

test("the weekly run has every scenario", () => {
  const { jobs } = parse(textOf("workflows", "chaos.yml")) as {
    jobs: { chaos: { strategy: { matrix: { scenario: string[] } } } };
  };
  expect(jobs.chaos.strategy.matrix.scenario).toEqual(scenarios.map(({ name }) => name));
});

test("the versions of each action are the same everywhere", () => {
  const pins = filesIn("workflows").flatMap(({ text }) => [...text.matchAll(/uses: (\S+)@(\S+)/g)]);
  const byAction = Map.groupBy(pins, ([, action]) => action);
  const several = [...byAction].filter(([, uses]) => new Set(uses.map(([, , pin]) => pin)).size > 1);
  expect(several.map(([action]) => action)).toEqual([]);
});

const formSchema = z
  .object({
    name: z.string(),
    description: z.string(),
    labels: z.array(z.string()),
    body: z.array(
      z.discriminatedUnion("type", [
        z.object({ type: z.literal("markdown"), attributes: z.object({ value: z.string() }).strict() }).strict(),
        z
          .object({
            type: z.enum(["textarea", "input"]),
            id: z.string(),
            attributes: z
              .object({ label: z.string(), description: z.string(), placeholder: z.string(), render: z.string() })
              .partial()
              .required({ label: true })
              .strict(),
            validations: z.object({ required: z.boolean() }).strict().optional(),
          })
          .strict(),
        z
          .object({
            type: z.literal("dropdown"),
            id: z.string(),
            attributes: z.object({ label: z.string(), options: z.array(z.string()).min(1) }).strict(),
            validations: z.object({ required: z.boolean() }).strict().optional(),
          })
          .strict(),
      ]),
    ),
  })
  .strict();

test.each(filesIn("ISSUE_TEMPLATE").filter(({ file }) => file !== "config.yml"))(
  "ISSUE_TEMPLATE/$file is a form",
  ({ text }) => {
    const { body } = formSchema.parse(parse(text));
    const ids = body.flatMap((field) => (field.type === "markdown" ? [] : [field.id]));
    expect(new Set(ids).size).toBe(ids.length);
  },
);

test("dependabot updates packages and actions", () => {
  const { version, updates } = z
    .object({ version: z.number(), updates: z.array(z.looseObject({ "package-ecosystem": z.string() })) })
    .parse(parse(textOf("dependabot.yml")));
  expect(version).toBe(2);
  expect(updates.map((update) => update["package-ecosystem"])).toEqual(["npm", "github-actions"]);
});

test("security policy and code of conduct name the same private way to report", () => {
  const security = readFileSync(join(repositoryRoot, "SECURITY.md"), "utf8");
  const conduct = readFileSync(join(repositoryRoot, "CODE_OF_CONDUCT.md"), "utf8");
  for (const text of [security, conduct]) expect(text).toContain("**Report a vulnerability**");
});
