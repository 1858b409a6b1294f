import type { AgentDefinition } from "../../agents/index.ts";
import type { Clock } from "../../base/index.ts";
import type { PriceBook } from "../../model/index.ts";
import type { Part } from "../doors/roles.ts";
import type { RuntimeOptions } from "../doors/types.ts";
import type { UnsavedTrees } from "../unsaved/unsaved-trees.ts";

/** The options of a runtime with every default in place. */
export interface CoreOptions extends RuntimeOptions {
  readonly stores: UnsavedTrees;
  readonly tenant: string;
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly priceBook: PriceBook;
  readonly part: Part;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
}
