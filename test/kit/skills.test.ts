import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { createRuntime, defineAgent, textOf } from "../../src/index.ts";
import { skills } from "../../src/kit/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { emptyFolder, resultsOf } from "./kit-runs.ts";

function folderWith(files: Readonly<Record<string, string>>): string {
  const root = emptyFolder();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

const skillOf = (name: string, description = `Does ${name}.`, body = `# ${name}\n`) =>
  `---\nname: ${name}\ndescription: ${description}\n---\n${body}`;

const load = (name: string, file?: string) => ({
  name: "load_skill",
  arguments: { name, ...(file ? { file } : {}) },
});

describe("skills()", () => {
  test("names and descriptions are in the system prompt, sorted, after the instructions; the rest is loaded", async () => {
    const root = folderWith({
      "b-two/SKILL.md": skillOf("b-two", "|\n  Two\n  lines.", "Use [the table](tables/t.csv).\r\n"),
      "b-two/tables/t.csv": "a,b",
      "b-two/.hidden": "x",
      "a1/SKILL.md":
        "\uFEFF---\r\nname: a1\r\ndescription: 'First: one'\r\nlicense: MIT\r\nmetadata:\r\n  v: 1\r\n---\r\nBody.\r\n",
      "no-skill/README.md": "x",
      "README.md": "x",
    });
    const plugin = await skills(root);
    const prompts: string[] = [];
    const model = scriptedModel(({ messages }) => {
      prompts.push(textOf(messages[0]?.content ?? ""));
      return "Done.";
    });
    const definition = defineAgent({ name: "clerk", model, instructions: "Be brief.", plugins: [plugin] });
    const asking = defineAgent({ name: "asking", model, instructions: () => "Be long.", plugins: [plugin] });
    const runtime = await createRuntime({ agents: [definition, asking] });
    for (const name of ["clerk", "asking"]) {
      const agent = await runtime.agent(name);
      await agent.start();
      await agent.executeTurn("Go.").result;
    }
    await runtime.shutdown();
    expect(prompts[0]).toMatch(/^Be brief\.\n\n# Skills\n[^]*\n- a1: First: one\n- b-two: Two lines\.$/);
    expect(prompts[1]).toBe(prompts[0]?.replace("brief", "long"));
    const results = await resultsOf([load("a1"), load("b-two"), load("b-two", "./tables/t.csv")], {
      plugins: [plugin],
    });
    expect(results).toEqual([
      "Body.",
      "Use [the table](tables/t.csv).\n\nFiles of this skill, for load_skill:\n- tables/t.csv",
      "a,b",
    ]);
  });

  test("no file outside the skill's own folder is loaded, also not through a link (S6)", async () => {
    const outside = folderWith({ secret: "canary" });
    const root = folderWith({ "a/SKILL.md": skillOf("a"), "b/SKILL.md": skillOf("b", "B.", "other") });
    symlinkSync(join(outside, "secret"), join(root, "a", "link"));
    symlinkSync("../b", join(root, "a", "sibling"));
    writeFileSync(join(root, "a", "binary"), Buffer.from([0, 1]));
    const files = ["../b/SKILL.md", "/etc/passwd", "link", "sibling/SKILL.md", "a\0", "x\ny", "missing", "binary", "."];
    const calls = files.map((file) => ({ name: "load_skill", arguments: { name: "a", file } }));
    const results = await resultsOf([...calls, { name: "load_skill", arguments: { name: "../a" } }], {
      plugins: [await skills(root)],
    });
    for (const result of results.slice(0, -1)) expect(result).toMatch(/cannot be used: /);
    expect(results.at(-1)).toContain("name");
    expect(results.join("\n")).not.toMatch(/canary|troupe-kit-|other/);
  });

  test("all faults of all files are listed, each with its path", async () => {
    const root = folderWith({
      "good/SKILL.md": skillOf("good"),
      "other/SKILL.md": skillOf("another"),
      "Upper/SKILL.md": skillOf("Upper"),
      "dash-/SKILL.md": skillOf("dash-"),
      "no-head/SKILL.md": "# Skill",
      "no-text/SKILL.md": "---\nname: no-text\n---\n",
      "empty/SKILL.md": "---\nname: empty\ndescription: ' '\n---\n",
      "long/SKILL.md": skillOf("long", "x".repeat(1_025)),
      "yaml/SKILL.md": "---\nname: yaml\ndescription: 'x\n---\n",
      "bomb/SKILL.md": `---\nname: bomb\ndescription: x\na: &a [x, x, x, x, x, x, x, x]\nb: &b [${"*a, ".repeat(9)}]\nc: [${"*b, ".repeat(99)}]\n---\n`,
      "lower/skill.md": skillOf("lower"),
    });
    const error = await skills(root).then(
      () => undefined,
      (thrown: Error) => thrown.message,
    );
    const lines = (error ?? "").replaceAll(`${root}/`, "").split("\n").slice(1).sort();
    expect(lines.map((line) => line.slice(0, 60))).toMatchInlineSnapshot(`
      [
        "- Upper/SKILL.md: name may have a-z, 0-9 and single hyphens ",
        "- bomb/SKILL.md: Excessive alias count indicates a resource ",
        "- dash-/SKILL.md: name may have a-z, 0-9 and single hyphens ",
        "- empty/SKILL.md: description is empty; say what the skill d",
        "- long/SKILL.md: description has more than 1,024 characters",
        "- lower/skill.md: rename it to SKILL.md",
        "- no-head/SKILL.md: it does not begin with YAML between two ",
        "- no-text/SKILL.md: description is missing; say what the ski",
        "- other/SKILL.md: name is "another", but its folder is "othe",
        "- yaml/SKILL.md: line 4: Missing closing 'quote",
      ]
    `);
  });

  test("what cannot work is refused at the start", async () => {
    await expect(skills("./no-such-folder")).rejects.toThrow(/skills\(\): there is no folder/);
    await expect(skills(emptyFolder())).rejects.toThrow(/there is no skill in/);
    await expect(skills([])).rejects.toThrow(/not an empty list/);
    for (const wrong of [undefined, null, 1, {}, [1], ""]) {
      await expect(skills(wrong as string)).rejects.toThrow(/expects the path of a folder/);
    }
    const one = folderWith({ "a/SKILL.md": skillOf("a") });
    const two = folderWith({ "a/SKILL.md": skillOf("a") });
    await expect(skills([one, pathToFileURL(two)])).rejects.toThrow('two skills are named "a"; rename one of them');
  });
});
