import type { BudgetOptions } from "../budget-options.ts";
import type { StoreOptions } from "../job/store-location.ts";

/** The options of `chat`, which those of `dev` contain. */
export interface ChatOptions extends BudgetOptions, StoreOptions {
  readonly agentId?: string | undefined;
  /** Name of the definition, if the file exports several. */
  readonly agent?: string | undefined;
  /** File with MCP servers, whose tools the agent gets. */
  readonly mcp?: string | undefined;
  readonly inspect?: boolean | number | undefined;
  readonly stately?: boolean | undefined;
}
