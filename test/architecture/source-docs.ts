import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Comment, parseSync, type Program } from "oxc-parser";
import { readManifest } from "../../scripts/manifest.ts";
import { repositoryRoot, sourceCondition } from "../../scripts/run-command.ts";
import { type Declaration, declarationOf, exportsOf, typesIn } from "./source-exports.ts";

/** A member of an interface, as declared in its file. */
export interface Member {
  readonly file: string;
  readonly line: number;
  /** Name of the interface. */
  readonly owner: string;
  readonly name: string;
  /** Its type as text, on one line. */
  readonly type: string;
  readonly isOptional: boolean;
  /** The text of its docstring; `undefined` if it has none. */
  readonly doc: string | undefined;
}

/** The source files of the package's entries. */
export function entryFiles(): readonly string[] {
  return Object.values(readManifest().exports).flatMap((target) => {
    const file = typeof target === "string" ? undefined : target[sourceCondition];
    return file === undefined ? [] : [file.replace(/^\.\//, "")];
  });
}

/** Source files whose declarations can reach users: all except those of the inspector's page. */
export function filesReached(): readonly string[] {
  return globSync("src/**/*.ts", { cwd: repositoryRoot, exclude: ["src/inspector/ui/**"] });
}

/** The exports of the entries, each declaration once for each of its entries. */
function exported(): Declaration[] {
  return entryFiles().flatMap((file) => [...exportsOf(file)].flatMap((name) => declarationOf(file, name) ?? []));
}

/** Functions, classes and interfaces that the entries export and that have no docstring. */
export function withoutDocs(): readonly string[] {
  const bare = exported().filter(({ file, name }) => {
    const { program, text, comments } = parsed(file);
    return program.body.some((statement) => {
      const declared = statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
      switch (declared?.type) {
        case "FunctionDeclaration":
        case "ClassDeclaration":
        case "TSInterfaceDeclaration":
          return declared.id?.name === name && docBefore(statement.start, text, comments) === undefined;
        default:
          return false;
      }
    });
  });
  return [...new Set(bare.map(({ file, name }) => `${file} ${name}`))];
}

/** The members of all interfaces that the entries export or that their types name, except those of `opaque` types. */
export function interfacesReached(opaque: readonly string[]): readonly Member[] {
  const found = new Map<string, Declaration>();
  const open = exported();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const place = `${next.file} ${next.name}`;
    if (found.has(place) || opaque.includes(next.name)) continue;
    found.set(place, next);
    open.push(...typesIn(next));
  }
  return [...found.values()].flatMap(membersOf);
}

/** The members that an interface itself declares; none for other declarations. */
export function membersOf({ file, name: owner }: Declaration): readonly Member[] {
  const { program, text, comments } = parsed(file);
  return program.body.flatMap((statement) => {
    const declared = statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
    if (declared?.type !== "TSInterfaceDeclaration" || declared.id.name !== owner) return [];
    return declared.body.body.map((member): Member => {
      const { start, end } = member;
      const isNamed = member.type === "TSPropertySignature" || member.type === "TSMethodSignature";
      const whole = text.slice(start, end).replaceAll(/\s+/g, " ");
      return {
        file,
        line: text.slice(0, start).split("\n").length,
        owner,
        name: isNamed && member.key.type === "Identifier" ? member.key.name : whole,
        type: whole.replace(/^(?:readonly )?\w+\??:? ?/, "").replace(/;$/, ""),
        isOptional: isNamed && member.optional,
        doc: docBefore(start, text, comments),
      };
    });
  });
}

interface Parsed {
  readonly text: string;
  readonly program: Program;
  readonly comments: readonly Comment[];
}

const parsedFiles = new Map<string, Parsed>();

function parsed(file: string): Parsed {
  const known = parsedFiles.get(file);
  if (known) return known;
  const text = readFileSync(join(repositoryRoot, file), "utf8");
  const { program, comments } = parseSync(file, text);
  const made = { text, program, comments };
  parsedFiles.set(file, made);
  return made;
}

/** The docstring directly before an offset of a file. */
function docBefore(place: number, text: string, comments: readonly Comment[]): string | undefined {
  const doc = comments.find(
    ({ type, value, end }) =>
      type === "Block" && value.startsWith("*") && end <= place && text.slice(end, place).trim() === "",
  );
  return doc?.value
    .replaceAll(/\s*\n\s*\*\s?/g, " ")
    .replace(/^\*/, "")
    .trim();
}
