import { readFileSync } from "node:fs";

/** A file of this package, by its path from the root, which is two folders above this file, in `src/cli` and in `dist/chunks`. */
export function packageFile(path: string): URL {
  return new URL(`../../${path}`, import.meta.url);
}

/** The fields of this package's package.json that the commands read. */
interface PackageFields {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
  /** Absent in a package that a tool has stripped. */
  readonly devDependencies?: Readonly<Record<string, string>>;
}

export function packageFields(): PackageFields {
  return JSON.parse(readFileSync(packageFile("package.json"), "utf8")) as PackageFields;
}
