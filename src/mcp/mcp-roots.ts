import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type OptionRule, optionsRule, ruleOf } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";

/** A folder that a server may work in. */
export interface McpRoot {
  /** A path, relative to the working directory of this process, or a `file:` URL. */
  readonly path: string;
  /** Name for people. Default: none. */
  readonly name?: string | undefined;
}

/** A root in the protocol's form. */
export interface ListedRoot {
  readonly uri: string;
  readonly name?: string;
}

const pathRule: OptionRule = ruleOf(
  "a path or a file: URL",
  (value) => typeof value === "string" && value !== "" && !value.includes("\0") && value.isWellFormed(),
);
const namedRule = optionsRule<McpRoot>({
  rules: {
    path: pathRule,
    name: ruleOf("a text of 1 to 200 characters", (value) => typeof value === "string" && /^.{1,200}$/s.test(value)),
  },
  needed: ["path"],
  instead: { uri: "path", url: "path", title: "name" },
});

/** A path, a `file:` URL, or either with a name. */
export const rootRule: OptionRule = (value, where) => {
  const checked = typeof value === "string" ? pathRule(value, where) : namedRule(value, where);
  uriOf(typeof checked === "string" ? checked : (checked as McpRoot).path, where);
  return checked;
};

/** The roots for a server. */
export function listedRoots(roots: readonly (string | McpRoot)[]): ListedRoot[] {
  return roots.map((root) => {
    if (typeof root === "string") return { uri: uriOf(root, "roots") };
    return { uri: uriOf(root.path, "roots"), ...(root.name === undefined ? {} : { name: root.name }) };
  });
}

function uriOf(path: string, where: string): string {
  if (!/^[a-z][a-z0-9+.-]+:/i.test(path)) return pathToFileURL(resolve(path)).href;
  try {
    return pathToFileURL(fileURLToPath(path)).href;
  } catch {
    throw new InvalidInputError(`${where} is "${path.slice(0, 200)}"; expected a path or a file: URL of this machine`);
  }
}
