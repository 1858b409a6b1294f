import { type StepLimit, TooManySteps } from "./linear-pattern.ts";
import type { Issue } from "./parsed-arguments.ts";
import { checkArray, checkObject } from "./schema-containers.ts";
import { type Checking, isObject, type Place, type SchemaDocument, type Seen, type Visit } from "./schema-document.ts";
import { checkScalar, isAmong, isOfType, isSame, shownList } from "./schema-values.ts";

/** The check stops after this many mistakes: nobody reads more. */
const mostIssues = 1_000;
const visitCost = 20;
const trackedVisitCost = 40;
const branchCost = 10;

/** Thrown when `mostIssues` is reached. */
class EnoughIssues extends Error {}

/**
 * Checks values against a foreign schema, keyword by keyword as in draft 2020-12 and earlier. It is an interpreter: no code is
 * generated. Each visit of a schema costs steps; a schema that leads back to itself at the same value adds nothing
 * there.
 */
export class SchemaCheck implements Checking {
  readonly document: SchemaDocument;
  readonly limit: StepLimit;
  #issues: Issue[] = [];
  /** Above 0 mistakes are not recorded. */
  #quiet = 0;

  constructor(document: SchemaDocument, limit: StepLimit) {
    this.document = document;
    this.limit = limit;
  }

  /** Mistakes of a value that was read from JSON. Throws `TooManySteps` if none was found before the steps ran out. */
  issuesOf(value: unknown): readonly Issue[] {
    this.#issues = [];
    this.#quiet = 0;
    this.limit.reset();
    try {
      this.visit(this.document.root, value, { parent: undefined, key: "", open: [] });
    } catch (error) {
      const isKnown = error instanceof EnoughIssues || (error instanceof TooManySteps && this.#issues.length > 0);
      if (!isKnown) throw error;
    }
    return this.#issues;
  }

  /** Whether the value fits; mistakes are recorded. */
  visit(schema: unknown, value: unknown, place: Place, seen?: Seen): boolean {
    if (schema === false) return this.fail(place, "is not allowed");
    if (!isObject(schema)) return true;
    const cost = this.document.tracksSeen ? trackedVisitCost : visitCost;
    this.limit.spend(cost + place.open.length + (typeof value === "string" ? value.length >> 3 : 0));
    if (place.open.includes(schema)) return true;
    place.open.push(schema);
    const own: Seen | undefined = this.document.tracksSeen ? { keys: new Set() } : undefined;
    const fits = this.#keywords({ schema, value, place, seen: own });
    if (fits && seen && own) for (const key of own.keys) seen.keys.add(key);
    place.open.pop();
    return fits;
  }

  /** The same for a member or item of the value. */
  visitAt(schema: unknown, value: unknown, parent: Place, key: string | number): boolean {
    return this.visit(schema, value, { parent, key, open: [] });
  }

  /** Whether the value fits; nothing is recorded. */
  wouldFit(schema: unknown, value: unknown, place: Place, seen?: Seen): boolean {
    this.#quiet += 1;
    const fits = this.visit(schema, value, place, seen);
    this.#quiet -= 1;
    return fits;
  }

  fail(place: Place, message: string, expected?: string): false {
    if (this.#quiet > 0) return false;
    this.#issues.push({ path: pathOf(place), message, ...(expected === undefined ? {} : { expected }) });
    if (this.#issues.length >= mostIssues) throw new EnoughIssues();
    return false;
  }

  /** Whether a branch fits, with its mistakes, apart from those found elsewhere. */
  #aside(
    branch: unknown,
    { value, place, seen }: Visit,
  ): { readonly fits: boolean; readonly issues: readonly Issue[] } {
    const before = this.#issues;
    const depth = place.open.length;
    this.#issues = [];
    try {
      return { fits: this.visit(branch, value, place, seen), issues: this.#issues };
    } catch (error) {
      if (!(error instanceof EnoughIssues)) throw error;
      place.open.length = depth;
      return { fits: false, issues: this.#issues };
    } finally {
      this.#issues = before;
    }
  }

  #keywords(visit: Visit): boolean {
    const { schema, value, place, seen } = visit;
    const target = this.document.target(schema);
    let fits = target === undefined || this.visit(target, value, place, seen);
    if (target !== undefined && this.document.refsStandAlone) return fits;
    fits = this.#general(visit) && fits;
    fits = checkScalar(this, visit) && fits;
    fits = this.#combined(visit) && fits;
    // Last: they judge the members and items that no other keyword has.
    if (Array.isArray(value)) fits = checkArray(this, { ...visit, value }) && fits;
    else if (isObject(value)) fits = checkObject(this, { ...visit, value }) && fits;
    return fits;
  }

  #general({ schema, value, place }: Visit): boolean {
    let fits = true;
    const { type, enum: allowed } = schema;
    if (Array.isArray(type)) this.limit.spend(type.length);
    if (type !== undefined && !isOfType(value, schema)) {
      const types = Array.isArray(type) ? type.join(",") : JSON.stringify(type).replaceAll('"', "");
      fits = this.fail(place, `must be ${types}`, types);
    }
    if (Object.hasOwn(schema, "const") && !isSame(value, schema["const"], this.limit)) {
      fits = this.fail(place, "must be equal to constant", JSON.stringify(schema["const"]).slice(0, 200));
    }
    if (Array.isArray(allowed) && !isAmong(value, allowed, this.limit)) {
      fits = this.fail(place, "must be equal to one of the allowed values", shownList(allowed));
    }
    return fits;
  }

  #combined({ schema, value, place, seen }: Visit): boolean {
    const { allOf, anyOf, oneOf, not, if: condition } = schema;
    let fits = true;
    if (Array.isArray(allOf)) for (const branch of allOf) fits = this.visit(branch, value, place, seen) && fits;
    if (Array.isArray(anyOf)) fits = this.#branches("anyOf", anyOf, { schema, value, place, seen }) && fits;
    if (Array.isArray(oneOf)) fits = this.#branches("oneOf", oneOf, { schema, value, place, seen }) && fits;
    if (not !== undefined && this.wouldFit(not, value, place))
      fits = this.fail(place, 'must not fit what is under "not"');
    if (condition === undefined) return fits;
    const branch = this.wouldFit(condition, value, place, seen) ? "then" : "else";
    return this.visit(schema[branch], value, place, seen) && fits;
  }

  #branches(kind: "anyOf" | "oneOf", branches: readonly unknown[], visit: Visit): boolean {
    const { place, seen } = visit;
    this.limit.spend(branches.length * branchCost);
    const wrong: Issue[] = [];
    let fitting = 0;
    for (const branch of branches) {
      const { fits, issues } = this.#aside(branch, visit);
      if (fits) fitting += 1;
      else wrong.push(...issues.slice(0, 20));
      // One is enough, unless `unevaluated*` needs to know what the others cover.
      if (fits && ((kind === "anyOf" && !seen) || fitting > 1)) break;
    }
    if (kind === "anyOf" ? fitting > 0 : fitting === 1) return true;
    if (fitting > 1) return this.fail(place, "must fit exactly one schema in oneOf, and fits several");
    if (this.#quiet === 0) this.#issues.push(...wrong.slice(0, 50));
    return this.fail(place, `must match a schema in ${kind}`);
  }
}

function pathOf(place: Place): (string | number)[] {
  const path: (string | number)[] = [];
  for (let at: Place | undefined = place; at?.parent !== undefined; at = at.parent) path.push(at.key);
  return path.toReversed();
}
