import type { Schema, SchemaDraft } from "@cfworker/json-schema";
import { compilePattern } from "./pattern.ts";

export type SchemaObject = Readonly<Record<string, unknown>>;

/** A foreign schema, prepared for the validator. */
export interface SchemaDocument {
  readonly draft: SchemaDraft;
  /** A copy with only the checkable keywords in their valid form, with all references resolved. */
  readonly root: Schema | boolean;
  /** The targets of the copy's references. */
  readonly targets: Readonly<Record<string, Schema | boolean>>;
  /** Fragments that are shown to the model but not checked, each with its location and the reason. At most 100. */
  readonly unchecked: readonly string[];
}

/** Reads a schema of any draft from 4 to 2020-12. Fragments that cannot be checked are listed in `unchecked`; never throws. */
export function readDocument(root: SchemaObject): SchemaDocument {
  const reader = new Reader(root);
  return {
    draft: reader.draft,
    root: reader.copyOf(root, "#", new Set()),
    targets: reader.targets,
    unchecked: reader.unchecked,
  };
}

type Holds = "value" | "schema" | "schemas" | "schema map";

/** The content of a keyword, and the check of its form. */
interface Keyword {
  readonly holds: Holds;
  readonly isProper: (value: unknown) => boolean;
  /** Whether its schemas apply to the value itself rather than to its members or items. */
  readonly inPlace?: boolean;
}

const typeNames: ReadonlySet<unknown> = new Set(["null", "boolean", "number", "integer", "string", "array", "object"]);
const isCount = (value: unknown): boolean => typeof value === "number" && value >= 0;
const isNumber = (value: unknown): boolean => typeof value === "number";
const isLimit = (value: unknown): boolean => typeof value === "number" || typeof value === "boolean";
const isSchema = (value: unknown): boolean => typeof value === "boolean" || isObject(value);
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every((one) => typeof one === "string");

const keywords: ReadonlyMap<string, Keyword> = new Map([
  ...keywordsOf("value", isCount, ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"]),
  ...keywordsOf("value", isCount, ["minContains", "maxContains"]),
  ...keywordsOf("value", isNumber, ["minimum", "maximum"]),
  ...keywordsOf("value", isLimit, ["exclusiveMinimum", "exclusiveMaximum"]),
  ...keywordsOf("value", (value) => isNumber(value) && Number(value) > 0, ["multipleOf"]),
  ...keywordsOf("value", (value) => typeof value === "boolean", ["uniqueItems"]),
  ...keywordsOf("value", (value) => [value].flat().every((one) => typeNames.has(one)), ["type"]),
  ...keywordsOf("value", isTexts, ["required"]),
  ...keywordsOf("value", Array.isArray, ["enum"]),
  ...keywordsOf("value", () => true, ["const"]),
  // The validator looks up formats in a plain object.
  ...keywordsOf("value", (value) => typeof value === "string" && !(value in Object.prototype), ["format"]),
  ...keywordsOf("value", (value) => isObject(value) && Object.values(value).every(isTexts), ["dependentRequired"]),
  ...keywordsOf("schema", isSchema, ["additionalProperties", "unevaluatedProperties", "propertyNames", "contains"]),
  ...keywordsOf("schema", isSchema, ["additionalItems", "unevaluatedItems"]),
  ...keywordsOf("schema", isSchema, ["not", "if", "then", "else"], true),
  ...keywordsOf("schemas", Array.isArray, ["allOf", "anyOf", "oneOf"], true),
  ...keywordsOf("schemas", Array.isArray, ["prefixItems"]),
  ...keywordsOf("schemas", (value) => isSchema(value) || Array.isArray(value), ["items"]),
  ...keywordsOf("schema map", isObject, ["properties"]),
  ...keywordsOf("schema map", isObject, ["dependentSchemas", "dependencies"], true),
]);

function keywordsOf(
  holds: Holds,
  isProper: (value: unknown) => boolean,
  names: readonly string[],
  inPlace = false,
): [string, Keyword][] {
  return names.map((name) => [name, { holds, isProper, inPlace }]);
}

/** The reference keywords of all drafts are treated alike. */
const references = ["$ref", "$dynamicRef", "$recursiveRef"] as const;
const rootAddress = "troupe:///schema";
const mostUnchecked = 100;

class Reader {
  readonly draft: SchemaDraft;
  readonly targets: Record<string, Schema | boolean> = Object.create(null) as Record<string, Schema | boolean>;
  readonly unchecked: string[] = [];
  readonly #copies = new Map<SchemaObject, Schema>();
  /** Schemas by the full URI that references use. */
  readonly #addresses = new Map<string, unknown>();
  /** The base URI of a schema's references. */
  readonly #bases = new Map<SchemaObject, string>();
  #references = 0;

  constructor(root: SchemaObject) {
    const draft = String(root["$schema"]);
    this.draft = /draft-0[34]/.test(draft) ? "4" : /draft-0[67]/.test(draft) ? "7" : "2020-12";
    this.#addresses.set(rootAddress, root);
    this.#index(root, rootAddress);
  }

  /** @param open The schemas that are being applied to the same value already. */
  copyOf(given: unknown, at: string, open: Set<unknown>): Schema | boolean {
    if (typeof given === "boolean") return given;
    if (!isObject(given)) {
      this.#leaveOut(at, "it is not a schema");
      return true;
    }
    const known = this.#copies.get(given);
    if (known !== undefined) return known;
    const copy: Record<string, unknown> = {};
    this.#copies.set(given, copy);
    open.add(given);
    this.#copyReference(given, copy, at, open);
    for (const [name, value] of Object.entries(given)) this.#copyKeyword(copy, name, value, `${at}/${name}`, open);
    open.delete(given);
    this.#adapt(given, copy);
    return copy;
  }

  #copyKeyword(copy: Record<string, unknown>, name: string, value: unknown, at: string, open: Set<unknown>): void {
    if (name === "pattern") this.#copyPattern(copy, value, at);
    else if (name === "patternProperties") this.#copyPatterns(copy, value, at);
    const keyword = keywords.get(name);
    if (keyword === undefined) return;
    if (!keyword.isProper(value)) {
      this.#leaveOut(at, `${shown(JSON.stringify(value))} is not valid here`);
      return;
    }
    const inside = keyword.inPlace === true ? open : new Set<unknown>();
    if (keyword.holds === "value") copy[name] = value;
    else if (keyword.holds === "schema map") copy[name] = this.#copyMap(value as SchemaObject, at, inside);
    else if (Array.isArray(value)) copy[name] = value.map((one, index) => this.copyOf(one, `${at}/${index}`, inside));
    else copy[name] = this.copyOf(value, at, inside);
  }

  #copyMap(map: SchemaObject, at: string, open: Set<unknown>): SchemaObject {
    const copies = Object.entries(map).map(([name, value]) => {
      // `dependencies` may also contain lists of names.
      const names = typeof value === "string" ? [value] : value;
      return [name, isTexts(names) ? names : this.copyOf(value, `${at}/${name}`, open)];
    });
    return Object.fromEntries(copies) as SchemaObject;
  }

  #copyReference(given: SchemaObject, copy: Record<string, unknown>, at: string, open: Set<unknown>): void {
    const keyword = references.find((one) => typeof given[one] === "string");
    if (keyword === undefined) return;
    const reference = String(given[keyword]);
    const target = this.#find(addressOf(reference, this.#bases.get(given) ?? rootAddress));
    if (typeof target !== "boolean" && !(isObject(target) && this.#bases.has(target))) {
      this.#leaveOut(at, `${keyword} ${shown(reference)} does not refer to a schema in this document`);
    } else if (open.has(target)) {
      this.#leaveOut(at, `${keyword} ${shown(reference)} refers back to the schema that contains it`);
    } else {
      this.#references += 1;
      copy["$ref"] = `#${this.#references}`;
      this.targets[`#${this.#references}`] = this.copyOf(target, `${at}/${keyword}`, open);
    }
  }

  #copyPattern(copy: Record<string, unknown>, value: unknown, at: string): void {
    const pattern = this.#patternOf(value, at);
    if (pattern !== undefined) copy["pattern"] = pattern;
  }

  #copyPatterns(copy: Record<string, unknown>, value: unknown, at: string): void {
    if (!isObject(value)) {
      this.#leaveOut(at, `${shown(JSON.stringify(value))} is not valid here`);
      return;
    }
    const patterns: [string, Schema | boolean][] = [];
    for (const [source, member] of Object.entries(value)) {
      const pattern = this.#patternOf(source, at);
      if (pattern !== undefined) patterns.push([pattern, this.copyOf(member, `${at}/${source}`, new Set())]);
    }
    copy["patternProperties"] = Object.fromEntries(patterns);
  }

  /** The pattern in the validator's form, with the `u` flag. */
  #patternOf(source: unknown, at: string): string | undefined {
    try {
      if (typeof source !== "string") throw new TypeError("it is not a text");
      return compilePattern(source).source;
    } catch (error) {
      const reason = error instanceof Error ? error.message : "it cannot be read";
      this.#leaveOut(at, `the pattern ${shown(String(source))}: ${reason}`);
      return undefined;
    }
  }

  /** Converts spellings of other drafts, and of OpenAPI, to the one that the validator supports. */
  #adapt(given: SchemaObject, copy: Record<string, unknown>): void {
    if (given["nullable"] === true && copy["type"] !== undefined) copy["type"] = [copy["type"], "null"].flat();
    for (const [exclusive, limit] of [
      ["exclusiveMinimum", "minimum"],
      ["exclusiveMaximum", "maximum"],
    ] as const) {
      const isExclusive = copy[exclusive];
      if (this.draft === "4" || typeof isExclusive !== "boolean") continue;
      delete copy[exclusive];
      if (!isExclusive || copy[limit] === undefined) continue;
      copy[exclusive] = copy[limit];
      delete copy[limit];
    }
    const patterns = given["patternProperties"];
    const isComplete =
      !isObject(patterns) || Object.keys(patterns).length === Object.keys(Object(copy["patternProperties"])).length;
    // An unchecked pattern may match any name, so the keywords for the other names cannot be applied.
    if (!isComplete) for (const rest of ["additionalProperties", "unevaluatedProperties"]) delete copy[rest];
  }

  /** Records the URIs of all schemas, even of those in unknown keywords, because a reference may point to them. */
  #index(value: unknown, base: string): void {
    if (Array.isArray(value)) for (const one of value) this.#index(one, base);
    if (!isObject(value)) return;
    const own = this.#baseOf(value, base);
    this.#bases.set(value, own);
    for (const keyword of ["$anchor", "$dynamicAnchor"]) {
      if (typeof value[keyword] === "string") this.#addresses.set(`${own}#${value[keyword]}`, value);
    }
    for (const [keyword, inner] of Object.entries(value)) {
      if (!["const", "enum", "default", "examples", "example"].includes(keyword)) this.#index(inner, own);
    }
  }

  #baseOf(schema: SchemaObject, base: string): string {
    const id = schema[this.draft === "4" ? "id" : "$id"];
    if (typeof id !== "string" || (this.draft !== "2020-12" && "$ref" in schema)) return base;
    const address = addressOf(id, base);
    if (address === undefined) {
      this.#leaveOut("#", `the $id ${shown(id)} is not an address`);
      return base;
    }
    this.#addresses.set(address, schema);
    return id.startsWith("#") ? base : withoutFragment(address);
  }

  #find(address: string | undefined): unknown {
    if (address === undefined) return undefined;
    const known = this.#addresses.get(address);
    if (known !== undefined) return known;
    const fragment = address.slice(withoutFragment(address).length + 1);
    const document = this.#addresses.get(withoutFragment(address));
    return fragment.startsWith("/") ? valueAt(document, fragment) : fragment === "" ? document : undefined;
  }

  #leaveOut(at: string, why: string): void {
    if (this.unchecked.length < mostUnchecked) this.unchecked.push(`${at.slice(0, 200)}: ${why}`);
  }
}

function addressOf(reference: string, from: string): string | undefined {
  const hash = reference.indexOf("#");
  // The fragment is kept as written, because names in it are compared exactly.
  const fragment = hash < 0 || hash === reference.length - 1 ? "" : reference.slice(hash);
  if (hash === 0) return `${from}${fragment}`;
  return URL.canParse(reference, from) ? `${withoutFragment(new URL(reference, from).href)}${fragment}` : undefined;
}

function withoutFragment(address: string): string {
  return address.split("#", 1)[0] ?? "";
}

function valueAt(document: unknown, pointer: string): unknown {
  let value = document;
  for (const part of pointer.slice(1).split("/")) {
    const key = decoded(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as SchemaObject)[key];
  }
  return value;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}

export function isObject(value: unknown): value is SchemaObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
