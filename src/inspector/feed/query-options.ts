import { type OptionsSchema, signalRule, textRule, wholeNumberRule } from "../../base/index.ts";
import type { MessageQuery } from "./agent-journal.ts";
import type { RunQuery } from "./runs.ts";
import type { SearchQuery } from "./search.ts";

/** Largest page of runs or messages. */
export const LARGEST_PAGE = 200;

const limitRule = wholeNumberRule(1, LARGEST_PAGE);
const numberRule = wholeNumberRule(0);

export const runQuerySchema: OptionsSchema<RunQuery> = {
  rules: {
    after: textRule,
    limit: limitRule,
    text: textRule,
    status: textRule,
    model: textRule,
    agent: textRule,
    since: numberRule,
    until: numberRule,
  },
};

export const messageQuerySchema: OptionsSchema<MessageQuery> = {
  rules: { at: numberRule, before: textRule, limit: limitRule },
};

export const searchQuerySchema: OptionsSchema<SearchQuery> = {
  rules: { text: textRule, after: numberRule, signal: signalRule },
  needed: ["text", "signal"],
};
