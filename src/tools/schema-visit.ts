import type { SchemaDocument, SchemaObject } from "./schema-document.ts";
import type { StepLimit } from "./step-limit.ts";

/** Where a value stands: what it is called in the value around it. */
export interface Place {
  readonly parent: Place | undefined;
  readonly key: string | number;
  /** Schemas that this very value is being checked against. */
  readonly open: SchemaObject[];
}

/** What schemas of one value have said something of: for `unevaluatedProperties` and `unevaluatedItems`. */
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

/** What keywords ask of the check that they are part of. */
export interface Checking {
  readonly document: SchemaDocument;
  readonly limit: StepLimit;
  /** Whether the value fits; what does not is noted. */
  visit(schema: unknown, value: unknown, place: Place, seen?: Seen): boolean;
  /** The same for a member or item of the value. */
  visitAt(schema: unknown, value: unknown, parent: Place, key: string | number): boolean;
  /** Whether it would fit: nothing is noted. */
  wouldFit(schema: unknown, value: unknown, place: Place, seen?: Seen): boolean;
  /** Notes a mistake. */
  fail(place: Place, message: string, expected?: string): false;
}
