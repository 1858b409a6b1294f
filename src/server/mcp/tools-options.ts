import type { AgentDefinition } from "../../agents/index.ts";
import { nameRule, type OptionsSchema, wholeNumberRule } from "../../base/index.ts";
import { agentsRule, type McpServed } from "./served-agents.ts";
import { stateKeyOf } from "./state-key.ts";

/** Options of the tools that agents are served as. */
export interface McpToolsOptions {
  /**
   * The agents to serve, as definitions or with descriptions for the models of clients. Default: every definition of the
   * runtime.
   */
  readonly agents?: readonly (AgentDefinition | McpServed)[] | undefined;
  /** Name of the server for its clients. Default `troupe`. */
  readonly name?: string | undefined;
  /** Version of the server for its clients. Default `1.0.0`. */
  readonly version?: string | undefined;
  /**
   * Longest wait of a call for its turn, in milliseconds; a longer turn is collected by the tool `turn_result`. Default
   * 45,000.
   */
  readonly waitMs?: number | undefined;
  /**
   * The key that signs the states of open requests, of at least 32 bytes, for instance from `openssl rand -base64 32`. All
   * processes that serve the same clients need the same key. Default: a key of this process, so that after a restart a
   * client has to send its call again.
   */
  readonly stateKey?: string | undefined;
  /** Seconds for which an answer to an open request is accepted. Default 86,400: a day. */
  readonly stateSeconds?: number | undefined;
}

const stateKeyRule = (value: unknown, where: string): unknown => stateKeyOf(nameRule(value, where) as string);

export const toolsOptionsRules: OptionsSchema<McpToolsOptions>["rules"] = {
  agents: agentsRule,
  name: nameRule,
  version: nameRule,
  waitMs: wholeNumberRule(1, 2 ** 31 - 1),
  stateKey: stateKeyRule,
  stateSeconds: wholeNumberRule(1, 2 ** 31 - 1),
};
