import { isBuiltin } from "node:module";
import { basename, resolve } from "node:path";
import { InvalidInputError } from "../../errors/index.ts";
import { packagesOf, type TemplateName } from "./project-templates.ts";

/**
 * The folder and the name of a new project, from what was typed. Throws `InvalidInputError` for an invalid npm name, and
 * for the working directory, which cannot be replaced by a rename without taking it away from the shell.
 */
export function projectPlace(typed: string, directory: string): { readonly folder: string; readonly name: string } {
  const folder = resolve(directory, typed);
  if (folder === resolve(directory)) {
    throw new InvalidInputError("a project needs a folder of its own; give a name for it, such as my-agent");
  }
  const name = basename(folder);
  const fault = faultOf(name);
  if (fault === undefined) return { folder, name };
  throw new InvalidInputError(
    `${JSON.stringify(name)} is not a valid npm name: ${fault}; give another name, such as my-agent`,
  );
}

function faultOf(name: string): string | undefined {
  if (name === "") return "it is empty";
  if (name.length > 214) return "it has more than 214 characters";
  if (!/^[a-z0-9][a-z0-9._~-]*$/.test(name)) {
    return "it must begin with a lowercase letter or a digit, and have only these and . _ ~ -";
  }
  if (name === "node_modules" || name === "favicon.ico") return "npm has reserved it";
  return isBuiltin(name) ? "Node has a module of this name" : undefined;
}

/** Throws `InvalidInputError` for the name of a package that the project depends on: npm refuses to install it. */
export function assertNotOwnDependency(name: string, template: TemplateName): void {
  if (!packagesOf(template).includes(name)) return;
  throw new InvalidInputError(
    `the project depends on a package ${name}, so it cannot have this name; give another one`,
  );
}
