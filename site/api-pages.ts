/**
 * The pages of the API reference, from the declarations of the package: one page for each entry, with the signature and the
 * docstrings of every name.
 *
 * The compiler's own API gives what the pages need in one place: members that an interface inherits from types without a public name,
 * what an alias of a schema's type comes to, and where an identifier of a signature is declared. TypeScript 7 has no such API in
 * JavaScript, so `ts-morph` brings the last version that has one.
 */
import { join } from "node:path";
import { Project, ts as compiler, type ts } from "ts-morph";
import { type ApiAddresses, apiSlug } from "./api-entries.ts";
import { formatSignatures } from "./signatures.ts";

/** An entry of the package, and the file that declares its types. */
export interface ApiEntry {
  readonly entry: string;
  readonly file: string;
}

export interface ApiPage {
  readonly entry: string;
  readonly markdown: string;
}

export interface ApiReference {
  readonly pages: readonly ApiPage[];
  /** Addresses of all public names. */
  readonly addresses: ApiAddresses;
}

/** Longer types are left as they are declared. In characters. */
const MOST_EXPANDED = 60_000;
/** The types of longer schemas say less than the types that are inferred from them. In characters. */
const MOST_OF_SCHEMA = 1_000;

/** A name on a page: a public one, or a type that public ones refer to. */
interface Item {
  readonly name: string;
  readonly symbol: ts.Symbol;
  readonly anchor: string;
}

interface Section {
  readonly entry: string;
  readonly items: readonly Item[];
  /** Types without a public name, in the order in which they are referred to. */
  readonly others: Item[];
}

/** Reads the declarations in `folder` and makes the pages of the entries. */
export async function apiReference(entries: readonly ApiEntry[], folder: string): Promise<ApiReference> {
  const project = new Project({
    skipAddingFilesFromTsConfig: true,
    compilerOptions: {
      target: compiler.ScriptTarget.ES2024,
      module: compiler.ModuleKind.NodeNext,
      moduleResolution: compiler.ModuleResolutionKind.NodeNext,
      strict: true,
      skipLibCheck: true,
      noEmit: true,
      types: ["node"],
    },
  });
  project.addSourceFilesAtPaths(entries.map(({ file }) => file));
  const program = project.getProgram().compilerObject;
  const writer = new PageWriter(program, folder);
  const sections = entries.map(({ entry, file }) => writer.sectionOf(entry, file));
  writer.addOthers(sections);
  const drafts = sections.map((section) => ({ entry: section.entry, draft: writer.page(section) }));
  const formatted = await formatSignatures(writer.signatures);
  return {
    pages: drafts.map(({ entry, draft }) => ({
      entry,
      markdown: draft.replaceAll(/^@signature (\d+)@$/gm, (_, index: string) => formatted[Number(index)] ?? ""),
    })),
    addresses: Object.fromEntries(
      sections.map(({ entry, items }) => [
        entry,
        Object.fromEntries(items.map(({ name, anchor }) => [name, `${pageLink(entry)}#${anchor}`])),
      ]),
    ),
  };
}

function pageLink(entry: string): string {
  return `/api/${apiSlug(entry)}.html`;
}

const kinds = ["Functions", "Classes", "Interfaces", "Types", "Values"] as const;
type Kind = (typeof kinds)[number];

class PageWriter {
  readonly #checker: ts.TypeChecker;
  readonly #program: ts.Program;
  readonly #folder: string;
  readonly #printer = compiler.createPrinter({ removeComments: true });
  /** Where a declared name is: by symbol, the addresses by entry. */
  readonly #places = new Map<ts.Symbol, Map<string, string>>();
  /** Links to the types that are inferred from a schema, by the schema's name. */
  readonly #inferred = new Map<string, string>();
  /** Code of signatures as the compiler prints it; pages hold their indices until all are formatted. */
  readonly signatures: string[] = [];

  constructor(program: ts.Program, folder: string) {
    this.#program = program;
    this.#checker = program.getTypeChecker();
    this.#folder = folder;
  }

  sectionOf(entry: string, file: string): Section {
    const source = this.#program.getSourceFile(file);
    const module = source && this.#checker.getSymbolAtLocation(source);
    if (!module) throw new Error(`${file} declares no module; expected the declarations of ${entry}.`);
    const items = this.#checker
      .getExportsOfModule(module)
      .map((symbol) => ({ name: symbol.name, symbol: this.#declared(symbol), anchor: symbol.name }))
      .sort((one, other) => one.name.localeCompare(other.name, "en"));
    for (const { name, symbol, anchor } of items) {
      this.#place(symbol, entry, anchor);
      for (const node of symbol.declarations ?? []) {
        const [, schema] = (compiler.isTypeAliasDeclaration(node) && /\btypeof (\w+)/.exec(node.type.getText())) || [];
        if (schema !== undefined && !this.#inferred.has(schema)) {
          this.#inferred.set(schema, `[\`${name}\`](${pageLink(entry)}#${anchor})`);
        }
      }
    }
    return { entry, items, others: [] };
  }

  #place(symbol: ts.Symbol, entry: string, anchor: string): void {
    const addresses = this.#places.get(symbol) ?? new Map<string, string>();
    this.#places.set(symbol, addresses.set(entry, `${pageLink(entry)}#${anchor}`));
  }

  #declared(symbol: ts.Symbol): ts.Symbol {
    return symbol.flags & compiler.SymbolFlags.Alias ? this.#checker.getAliasedSymbol(symbol) : symbol;
  }

  #isOwn(node: ts.Node): boolean {
    return node.getSourceFile().fileName.startsWith(this.#folder.replaceAll("\\", "/"));
  }

  /** Puts each type without a public name on the page that refers to it first. */
  addOthers(sections: readonly Section[]): void {
    for (const { entry, items, others } of sections) {
      const open = items.map(({ symbol }) => symbol);
      for (let symbol = open.shift(); symbol !== undefined; symbol = open.shift()) {
        for (const referred of this.#shownNodes(symbol).flatMap((node) => this.#referredTypes(node))) {
          if (this.#places.has(referred)) continue;
          const anchor = others.some(({ anchor: taken }) => taken === `type-${referred.name}`)
            ? `type-${referred.name}-${others.length}`
            : `type-${referred.name}`;
          this.#place(referred, entry, anchor);
          others.push({ name: referred.name, symbol: referred, anchor });
          open.push(referred);
        }
      }
    }
  }

  /** What a page shows of a symbol: its declarations, and those of members that it inherits. */
  #shownNodes(symbol: ts.Symbol): ts.Node[] {
    return this.#declarations(symbol).flatMap((node): ts.Node[] =>
      compiler.isInterfaceDeclaration(node) || compiler.isClassDeclaration(node)
        ? [
            ...(node.typeParameters ?? []),
            ...(node.heritageClauses ?? []),
            ...this.#members(symbol).flatMap(({ nodes }) => nodes),
          ]
        : [node],
    );
  }

  #declarations(symbol: ts.Symbol): ts.Declaration[] {
    return (symbol.declarations ?? []).filter((node) => this.#isOwn(node));
  }

  /** Interfaces, classes and aliases of the package whose names stand in a node. */
  #referredTypes(node: ts.Node): ts.Symbol[] {
    return this.#identifiers(node).flatMap((identifier) => {
      const found = this.#checker.getSymbolAtLocation(identifier);
      const symbol = found && this.#declared(found);
      const [declaration] = symbol?.declarations ?? [];
      if (!symbol || !declaration || !this.#isOwn(declaration)) return [];
      const isType =
        compiler.isInterfaceDeclaration(declaration) ||
        compiler.isTypeAliasDeclaration(declaration) ||
        compiler.isClassDeclaration(declaration);
      return isType ? [symbol] : [];
    });
  }

  #identifiers(node: ts.Node): ts.Identifier[] {
    if (compiler.isIdentifier(node)) return [node];
    // A member that is private shows nothing.
    if (compiler.isClassElement(node) && isHidden(node)) return [];
    const found: ts.Identifier[] = [];
    node.forEachChild((child) => {
      found.push(...this.#identifiers(child));
    });
    return found;
  }

  page({ entry, items, others }: Section): string {
    const byKind = Map.groupBy(items, ({ symbol }) => this.#kindOf(symbol));
    const parts = kinds.flatMap((kind) => {
      const ofKind = byKind.get(kind) ?? [];
      return ofKind.length === 0 ? [] : [`## ${kind}`, ...ofKind.map((item) => this.#item(item, entry))];
    });
    const rest =
      others.length === 0
        ? []
        : [
            "## Types without a name to import",
            "Signatures above refer to them. Reach them through their owners, as in `Parameters<typeof approval>[0]`.",
            ...others.map((item) => this.#item(item, entry)),
          ];
    const intro = `\`import { … } from "${entry}"\`: ${items.length} names. [Reference](/reference) has a line on each.`;
    return `${[`# ${entry}`, intro, ...parts, ...rest].join("\n\n")}\n`;
  }

  #kindOf(symbol: ts.Symbol): Kind {
    const { flags } = symbol;
    if (flags & compiler.SymbolFlags.Function) return "Functions";
    if (flags & compiler.SymbolFlags.Class) return "Classes";
    if (flags & compiler.SymbolFlags.Interface) return "Interfaces";
    return flags & compiler.SymbolFlags.Variable ? "Values" : "Types";
  }

  #item({ name, symbol, anchor }: Item, entry: string): string {
    const nodes = this.#declarations(symbol);
    const docs = [...new Set(nodes.map(docText))].filter((text) => text !== "");
    const members = this.#members(symbol).map(({ nodes: shown }) => this.#member(shown, entry));
    return [
      `### \`${name}\` {#${anchor}}`,
      ...docs,
      this.#signature(nodes, entry),
      ...(this.#inferred.has(name)
        ? [`A zod schema. The type that is inferred from it: ${this.#inferred.get(name)}.`]
        : []),
      ...nodes.flatMap((node) => this.#expanded(node, symbol)),
      ...members,
    ].join("\n\n");
  }

  /** The declarations as a block of code, whose names lead to their own places. */
  #signature(nodes: readonly ts.Declaration[], entry: string): string {
    const links = new Map<string, string>();
    const texts = nodes.map((node) => {
      const head = this.#headOf(node);
      for (const shown of head.nodes) this.#addLinks(shown, entry, links);
      return head.text;
    });
    return this.#code(texts.join("\n"), links);
  }

  #code(text: string, links: ReadonlyMap<string, string>): string {
    const index = this.signatures.push(text) - 1;
    const meta = links.size === 0 ? "" : ` links:${[...links].map(([name, to]) => `${name}=${to}`).join(",")}`;
    return `\`\`\`ts${meta}\n@signature ${index}@\n\`\`\``;
  }

  /** Interfaces and classes are shown with their first line; their members follow. */
  #headOf(node: ts.Declaration): { readonly text: string; readonly nodes: readonly ts.Node[] } {
    if (compiler.isInterfaceDeclaration(node) || compiler.isClassDeclaration(node)) {
      const shown = [...(node.typeParameters ?? []), ...(node.heritageClauses ?? [])];
      const parameters = node.typeParameters?.map((parameter) => this.#print(parameter)).join(", ");
      const heritage = node.heritageClauses?.map((clause) => ` ${this.#print(clause)}`).join("") ?? "";
      const word = compiler.isClassDeclaration(node) ? "class" : "interface";
      const text = `${word} ${node.name?.text ?? ""}${parameters === undefined ? "" : `<${parameters}>`}${heritage} {}`;
      return { text, nodes: shown };
    }
    if (!compiler.isVariableDeclaration(node))
      return { text: this.#print(node).replace(/^export /, ""), nodes: [node] };
    const text = `declare const ${this.#print(node)};`;
    const [start] = /^declare const \w+: z\.\w+/.exec(text) ?? [];
    return start !== undefined && text.length > MOST_OF_SCHEMA
      ? { text: `${start};`, nodes: [] }
      : { text, nodes: [node] };
  }

  #print(node: ts.Node): string {
    return this.#printer.printNode(compiler.EmitHint.Unspecified, node, node.getSourceFile());
  }

  #addLinks(node: ts.Node, entry: string, links: Map<string, string>): void {
    for (const identifier of this.#identifiers(node)) {
      const to = this.#addressOf(identifier, entry);
      if (to !== undefined) links.set(identifier.text, to);
    }
  }

  #addressOf(identifier: ts.Identifier, entry: string): string | undefined {
    const found = this.#checker.getSymbolAtLocation(identifier);
    const addresses = found && this.#places.get(this.#declared(found));
    if (addresses === undefined) return undefined;
    // A name does not lead to itself.
    const isOwnName = (identifier.parent as { name?: ts.Node }).name === identifier;
    return isOwnName ? undefined : (addresses.get(entry) ?? [...addresses.values()][0]);
  }

  /** What the type of a schema comes to: its declaration names the schema only. */
  #expanded(node: ts.Declaration, symbol: ts.Symbol): string[] {
    if (!compiler.isTypeAliasDeclaration(node) || !/\btypeof \w|\binfer</.test(node.getText())) return [];
    const { InTypeAlias, NoTruncation } = compiler.TypeFormatFlags;
    const type = this.#checker.getDeclaredTypeOfSymbol(symbol);
    const text = this.#checker.typeToString(type, node, InTypeAlias | NoTruncation);
    if (text === node.type.getText() || text === symbol.name || text.length > MOST_EXPANDED) return [];
    const links = new Map<string, string>();
    return ["That is:", this.#code(`type ${symbol.name} = ${text};`, links)];
  }

  /** The public members of an interface or a class, but for those that a public base has on its own place. */
  #members(symbol: ts.Symbol): { readonly nodes: readonly ts.Declaration[] }[] {
    const owners = this.#declarations(symbol).filter(
      (node) => compiler.isInterfaceDeclaration(node) || compiler.isClassDeclaration(node),
    );
    const unnamed = owners.flatMap((node) =>
      [...node.members].filter(
        (member) =>
          compiler.isConstructorDeclaration(member) ||
          compiler.isCallSignatureDeclaration(member) ||
          compiler.isIndexSignatureDeclaration(member) ||
          (compiler.isClassElement(member) && isStatic(member)),
      ),
    );
    const named =
      owners.length === 0
        ? []
        : this.#checker
            .getPropertiesOfType(this.#checker.getDeclaredTypeOfSymbol(symbol))
            .map((property) =>
              (property.declarations ?? []).filter((node) => this.#isOwn(node) && !this.#isElsewhere(node, symbol)),
            );
    return [...unnamed.map((node) => [node]), ...named]
      .map((nodes) => nodes.filter((node) => !isHidden(node)))
      .filter((nodes) => nodes.length > 0)
      .map((nodes) => ({ nodes }));
  }

  /** Whether a member belongs to another type that has a place of its own and a public name. */
  #isElsewhere(member: ts.Declaration, symbol: ts.Symbol): boolean {
    const owner = (member.parent as { name?: ts.Node }).name;
    const found = owner && this.#checker.getSymbolAtLocation(owner);
    if (!found || found === symbol) return false;
    return [...(this.#places.get(found)?.values() ?? [])].some((address) => !address.includes("#type-"));
  }

  #member(nodes: readonly ts.Declaration[], entry: string): string {
    const code = nodes.map((node) => `<code v-pre>${this.#linked(node, entry)}</code>`).join("<br>");
    const docs = [...new Set(nodes.map(docText))].filter((text) => text !== "").join("\n\n");
    return `- ${code}${docs === "" ? "" : `\n\n${docs.replaceAll(/^(?=.)/gm, "  ")}`}`;
  }

  /** The text of a declaration without comments, as HTML with links. */
  #linked(node: ts.Declaration, entry: string): string {
    const links = new Map<string, string>();
    this.#addLinks(node, entry, links);
    const text = this.#print(node)
      .replace(/;$/, "")
      .replace(/^readonly /, "")
      .replaceAll(/\s*\n\s*/g, " ")
      // The question mark says so already.
      .replace(/^(\w+\?: (?!\().*) \| undefined$/, "$1");
    return text
      .split(/(\b[A-Za-z_$][\w$]*\b)/)
      .map((piece) => {
        const to = links.get(piece);
        return to === undefined ? escapeHtml(piece) : `<a href="${to}">${piece}</a>`;
      })
      .join("");
  }
}

function isHidden(node: ts.Node): boolean {
  const flags = compiler.getCombinedModifierFlags(node as ts.Declaration);
  if (flags & (compiler.ModifierFlags.Private | compiler.ModifierFlags.Protected)) return true;
  const { name } = node as { name?: ts.Node };
  return name !== undefined && compiler.isPrivateIdentifier(name);
}

function isStatic(node: ts.Declaration): boolean {
  return (compiler.getCombinedModifierFlags(node) & compiler.ModifierFlags.Static) !== 0;
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** The docstring of a declaration as Markdown; tags become paragraphs of their own. */
function docText(declaration: ts.Declaration): string {
  const node = compiler.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
  const [comment] = compiler
    .getJSDocCommentsAndTags(node)
    .filter((found) => compiler.isJSDoc(found))
    .slice(-1);
  if (comment === undefined) return "";
  const lines = comment
    .getText()
    .replace(/^\/\*\*/, "")
    .replace(/\*\/$/, "")
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, "").trimEnd());
  return lines
    .join("\n")
    .replaceAll(/^@param (\w+)/gm, "\n`$1`: ")
    .replaceAll(/^@throws /gm, "\nThrows: ")
    .trim()
    .split(/(`[^`]*`)/)
    .map((piece) => (piece.startsWith("`") ? piece : escapeText(piece)))
    .join("");
}

/** Outside code, angle brackets and braces would be taken for elements and expressions of a page. */
function escapeText(text: string): string {
  return text.replaceAll("<", "&lt;").replaceAll("{{", "&#123;&#123;");
}

/** Where the declarations of an entry are, once they are built into `folder`. */
export function declarationFile(distFile: string, folder: string): string {
  return join(folder, distFile.replace(/^dist\//, ""));
}
