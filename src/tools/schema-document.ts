import { createLinearPattern, type LinearPattern, type StepLimit } from "./linear-pattern.ts";

export type SchemaObject = Readonly<Record<string, unknown>>;

/** A foreign schema, read once: its references and patterns resolved, its unchecked parts listed. */
export interface SchemaDocument {
  readonly root: SchemaObject;
  /** Draft-07 and older: keywords beside a `$ref` say nothing. */
  readonly refsStandAlone: boolean;
  /** Whether the schema has `unevaluatedProperties` or `unevaluatedItems` anywhere. */
  readonly tracksSeen: boolean;
  /** The target of this schema's reference; undefined where it is not checked. */
  target(schema: SchemaObject): unknown;
  /** Undefined where the pattern is not checked. */
  pattern(source: string): LinearPattern | undefined;
  /** Parts that are shown to the model and not checked, each with its place and the reason. */
  readonly unchecked: readonly string[];
}

/** Keywords whose members are schemas, whatever their names. */
const schemaMaps: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
  "dependencies",
]);
/** Keywords that hold data, not schemas. */
const plainValues: ReadonlySet<string> = new Set(["const", "enum", "default", "examples", "example", "required"]);
const isCount = (value: unknown): boolean => typeof value === "number" && value >= 0;
const isLimit = (value: unknown): boolean => typeof value === "number" || typeof value === "boolean";
const isText = (value: unknown): boolean => typeof value === "string";
const isSchema = (value: unknown): boolean => typeof value === "boolean" || isObject(value);
const types: ReadonlySet<unknown> = new Set(["null", "boolean", "number", "integer", "string", "array", "object"]);

/** The forms in which keywords say something; in any other form they are not checked. */
const shapes: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  ...["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"].map(
    (keyword) => [keyword, isCount] as const,
  ),
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"].map((keyword) => [keyword, isLimit] as const),
  ...["pattern", "format", "$ref", "$dynamicRef"].map((keyword) => [keyword, isText] as const),
  ...["properties", "patternProperties", "dependentSchemas"].map((keyword) => [keyword, isObject] as const),
  ...["allOf", "anyOf", "oneOf", "enum", "required", "prefixItems"].map((keyword) => [keyword, Array.isArray] as const),
  ...["additionalProperties", "propertyNames", "contains", "not", "if"].map((keyword) => [keyword, isSchema] as const),
  ["items", (value: unknown) => isSchema(value) || Array.isArray(value)],
  ["multipleOf", (value: unknown) => typeof value === "number" && value > 0],
  ["type", (value: unknown) => (Array.isArray(value) ? value : [value]).every((one) => types.has(one))],
]);
const references = ["$ref", "$dynamicRef", "$recursiveRef"] as const;
const base = "troupe:///schema";
/** A foreign schema may have a fault in every line. */
const mostUnchecked = 100;

/** Reads a schema of any draft from 4 to 2020-12. Parts that cannot be checked are listed in `unchecked`; nothing throws. */
export function readDocument(root: SchemaObject, draft: unknown, limit: StepLimit): SchemaDocument {
  return new Reader(root, typeof draft === "string" ? draft : "", limit);
}

class Reader implements SchemaDocument {
  readonly root: SchemaObject;
  readonly refsStandAlone: boolean;
  readonly unchecked: string[] = [];
  tracksSeen = false;
  readonly #limit: StepLimit;
  readonly #hasOldIds: boolean;
  /** Schemas by the full addresses that references use. */
  readonly #addresses = new Map<string, unknown>();
  readonly #dynamic = new Map<string, number>();
  readonly #bases = new Map<SchemaObject, string>();
  readonly #targets = new Map<SchemaObject, unknown>();
  readonly #patterns = new Map<string, LinearPattern | undefined>();

  constructor(root: SchemaObject, draft: string, limit: StepLimit) {
    this.root = root;
    this.#limit = limit;
    this.refsStandAlone = /draft-0[3-7]/.test(draft);
    this.#hasOldIds = /draft-0[34]/.test(draft);
    const found: SchemaPlace[] = [];
    this.#addresses.set(base, root);
    this.#walk({ schema: root, at: "#", base }, found);
    for (const { schema, at } of found) this.#targets.set(schema, this.#resolve(schema, at));
  }

  target(schema: SchemaObject): unknown {
    return this.#targets.get(schema);
  }

  pattern(source: string): LinearPattern | undefined {
    return this.#patterns.get(source);
  }

  /** Lists a part of the schema that is not checked. */
  #leaveOut(at: string, why: string): void {
    if (this.unchecked.length < mostUnchecked) this.unchecked.push(`${at.slice(0, 200)}: ${why}`);
  }

  #walk(place: SchemaPlace, found: SchemaPlace[]): void {
    const { schema, at } = place;
    const own = this.#baseOf(place);
    this.#bases.set(schema, own);
    if (references.some((keyword) => typeof schema[keyword] === "string")) found.push({ schema, at, base: own });
    for (const [keyword, value] of Object.entries(schema)) {
      const here = `${at}/${keyword}`;
      if (keyword.startsWith("unevaluated")) this.tracksSeen = true;
      if (shapes.get(keyword)?.(value) === false) this.#leaveOut(here, `${shown(JSON.stringify(value))} says nothing`);
      if (keyword === "pattern" && typeof value === "string") this.#readPattern(value, here);
      if (plainValues.has(keyword)) continue;
      if (schemaMaps.has(keyword) && isObject(value)) {
        for (const [name, member] of Object.entries(value)) {
          if (keyword === "patternProperties") this.#readPattern(name, here);
          this.#walkValue(member, `${here}/${name}`, own, found);
        }
      } else this.#walkValue(value, here, own, found);
    }
  }

  /** Unknown keywords may hold schemas too: a reference may lead into them. */
  #walkValue(value: unknown, at: string, own: string, found: SchemaPlace[]): void {
    if (Array.isArray(value)) {
      for (const [index, member] of value.entries()) this.#walkValue(member, `${at}/${index}`, own, found);
    } else if (isObject(value)) this.#walk({ schema: value, at, base: own }, found);
  }

  /** Records the addresses of the schema, and gives the one to which its references are relative. */
  #baseOf({ schema, at, base: outer }: SchemaPlace): string {
    const id = schema[this.#hasOldIds ? "id" : "$id"];
    let own = outer;
    if (typeof id === "string" && !(this.refsStandAlone && "$ref" in schema)) {
      const address = addressOf(id, outer);
      if (address === undefined) this.#leaveOut(at, `its id ${shown(id)} is no address`);
      else if (id.startsWith("#")) this.#addresses.set(address, schema);
      else {
        own = withoutFragment(address);
        this.#addresses.set(own, schema);
      }
    }
    for (const keyword of ["$anchor", "$dynamicAnchor"]) {
      const anchor = schema[keyword];
      if (typeof anchor === "string") this.#addresses.set(`${own}#${anchor}`, schema);
      if (keyword === "$dynamicAnchor" && typeof anchor === "string") {
        this.#dynamic.set(anchor, (this.#dynamic.get(anchor) ?? 0) + 1);
      }
    }
    return own;
  }

  #resolve(schema: SchemaObject, at: string): unknown {
    const keyword = references.find((one) => typeof schema[one] === "string");
    const reference = keyword === undefined ? "" : String(schema[keyword]);
    const address = addressOf(reference, this.#bases.get(schema) ?? base);
    const target = address === undefined ? undefined : this.#find(address);
    if (typeof target !== "boolean" && !(isObject(target) && this.#bases.has(target))) {
      this.#leaveOut(at, `${keyword} ${shown(reference)} leads to no schema within it`);
      return undefined;
    }
    const anchor = reference.slice(reference.indexOf("#") + 1);
    if (keyword === "$dynamicRef" && (this.#dynamic.get(anchor) ?? 0) > 1) {
      this.#leaveOut(at, `$dynamicRef ${shown(reference)} may lead to several places`);
      return undefined;
    }
    return target;
  }

  #find(address: string): unknown {
    const known = this.#addresses.get(address);
    if (known !== undefined) return known;
    const document = this.#addresses.get(withoutFragment(address));
    const fragment = address.includes("#") ? address.slice(address.indexOf("#") + 1) : "";
    if (fragment === "") return document;
    return fragment.startsWith("/") ? at(document, fragment) : undefined;
  }

  #readPattern(source: string, here: string): void {
    if (this.#patterns.has(source)) return;
    let pattern: LinearPattern | undefined;
    try {
      pattern = createLinearPattern(source, this.#limit);
    } catch (error) {
      this.#leaveOut(
        here,
        `the pattern ${shown(source)}: ${error instanceof Error ? error.message : "it cannot be read"}`,
      );
    }
    this.#patterns.set(source, pattern);
  }
}

interface SchemaPlace {
  readonly schema: SchemaObject;
  readonly at: string;
  readonly base: string;
}

function addressOf(reference: string, from: string): string | undefined {
  try {
    const url = new URL(reference, from);
    const hash = reference.includes("#") ? reference.slice(reference.indexOf("#")) : "";
    url.hash = "";
    // The fragment is kept as written: names in it are compared letter by letter.
    return `${withoutFragment(url.href)}${hash === "#" ? "" : hash}`;
  } catch {
    return reference.startsWith("#") ? `${from}${reference === "#" ? "" : reference}` : undefined;
  }
}

function withoutFragment(address: string): string {
  const hash = address.indexOf("#");
  return hash < 0 ? address : address.slice(0, hash);
}

function at(document: unknown, pointer: string): unknown {
  let value = document;
  for (const part of pointer.slice(1).split("/")) {
    const key = decoded(part);
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as SchemaObject)[key];
  }
  return value;
}

function unescaped(text: string): string {
  return text.replaceAll("~1", "/").replaceAll("~0", "~");
}

function decoded(part: string): string {
  try {
    return unescaped(decodeURIComponent(part));
  } catch {
    return unescaped(part);
  }
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}

export function isObject(value: unknown): value is SchemaObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The place of a value: its key in the value around it. */
export interface Place {
  readonly parent: Place | undefined;
  readonly key: string | number;
  /** Schemas that this very value is being checked against. */
  readonly open: SchemaObject[];
}

/** Members and items that some schema of the value covers: for `unevaluatedProperties` and `unevaluatedItems`. */
export interface Seen {
  /** Names of members, or places of items. */
  readonly keys: Set<string | number>;
}

export interface Visit {
  readonly schema: SchemaObject;
  readonly value: unknown;
  readonly place: Place;
  readonly seen: Seen | undefined;
}

/** The check, as its keywords use it. */
export interface Checking {
  readonly document: SchemaDocument;
  readonly limit: StepLimit;
  /** Whether the value fits; mistakes are recorded. */
  visit(schema: unknown, value: unknown, place: Place, seen?: Seen): boolean;
  /** The same for a member or item of the value. */
  visitAt(schema: unknown, value: unknown, parent: Place, key: string | number): boolean;
  /** Whether the value fits; nothing is recorded. */
  wouldFit(schema: unknown, value: unknown, place: Place, seen?: Seen): boolean;
  /** Records a mistake. */
  fail(place: Place, message: string, expected?: string): false;
}
