import {
  flagRule,
  listRule,
  type OptionRule,
  type OptionsSchema,
  optionsRule,
  wholeNumberRule,
} from "../base/index.ts";
import { type McpRoot, rootRule } from "./mcp-roots.ts";

/** How a server may use the agent's model. */
export interface McpSamplingOptions {
  /** Most tokens of one answer; a server may ask for fewer. Default 4,096. */
  readonly maxTokens?: number | undefined;
  /** Most model calls for the server during one call of a tool. Default 10. */
  readonly maxCalls?: number | undefined;
  /** Whether a person has to approve each model call. Default false. */
  readonly needsApproval?: boolean | undefined;
}

/** What a server may ask of its client. */
export interface McpInputOptions {
  /**
   * Whether the server may ask people during a call. `true`: also a server that uses a protocol before 2026-07-28; the call then stays open
   * in this process, and the calls over a connection are sent one at a time. `false`: never. Default: only a server of 2026-07-28 or later,
   * whose questions survive restarts.
   */
  readonly elicitation?: boolean | undefined;
  /** Whether, and how, the server may call the agent's model on the agent's budget. Default `false`. */
  readonly sampling?: McpSamplingOptions | false | undefined;
  /** Folders that the server is told to work in: paths, `file:` URLs, or either with a name. Default: none. */
  readonly roots?: readonly (string | McpRoot)[] | undefined;
}

const samplingRule = optionsRule<McpSamplingOptions>({
  rules: {
    maxTokens: wholeNumberRule(1, 1_000_000),
    maxCalls: wholeNumberRule(1, 1_000),
    needsApproval: flagRule,
  },
  instead: { maxOutputTokens: "maxTokens", maxRounds: "maxCalls", approval: "needsApproval" },
});

export const inputOptionRules = {
  elicitation: flagRule,
  sampling: ((value, where) => (value === false ? value : samplingRule(value, where))) satisfies OptionRule,
  roots: listRule("a list of paths, file: URLs or { path, name }", rootRule),
} satisfies OptionsSchema<McpInputOptions>["rules"];
