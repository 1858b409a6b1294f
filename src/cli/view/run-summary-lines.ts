import type { ModelUse } from "../../budget/index.ts";
import type { RunSummary } from "../../inspector/index.ts";
import { formatCost, formatCount, shortAgentId } from "./format.ts";
import { type Column, tableLines } from "./table.ts";
import { oneLine } from "./terminal-text.ts";
import { wrapText } from "./text-width.ts";

/** Maximum number of agents in the table; the most expensive ones are shown. */
const MOST_AGENTS = 20;

/** A summary of a run: three answers, a few sentences, and the cost of each model and agent. */
export function runSummaryLines({ answers, sentences, byModel, byAgent }: RunSummary, width: number): string[] {
  const wrapped = (line: string): string[] => wrapText(line, width);
  const models = byModel.map(([model, use]) => [model, ...cellsOf(use)]);
  const agents = byAgent
    .slice(0, MOST_AGENTS)
    .map(({ agentId, name, use }) => [`${name} ${shortAgentId(agentId)}`, ...cellsOf(use)]);
  const left = byAgent.length - agents.length;
  return [
    ...answers.flatMap(({ question, facts }) => [
      `${question}:`,
      ...facts.flatMap(({ text }) => wrapped(`  ${oneLine(text)}`)),
      "",
    ]),
    ...sentences.flatMap((sentence) => wrapped(oneLine(sentence))),
    ...(models.length === 0 ? [] : ["", ...tableLines(columnsNamed("MODEL"), models, width)]),
    ...(agents.length === 0 ? [] : ["", ...tableLines(columnsNamed("AGENT, ITS OWN CALLS"), agents, width)]),
    ...(left > 0 ? [`and ${left.toLocaleString("en")} others`] : []),
  ];
}

function columnsNamed(title: string): Column[] {
  return [
    { title, minWidth: 12 },
    { title: "CALLS", align: "right", leaveOut: 3 },
    { title: "INPUT", align: "right" },
    { title: "CACHED", align: "right", leaveOut: 2 },
    { title: "OUTPUT", align: "right" },
    { title: "REASONING", align: "right", leaveOut: 1 },
    { title: "COST", align: "right" },
  ];
}

function cellsOf(use: ModelUse): string[] {
  const { calls, inputTokens, cachedInputTokens, outputTokens, reasoningTokens, costMicros, unpricedCalls } = use;
  const share = inputTokens === 0 ? 0 : Math.round((cachedInputTokens / inputTokens) * 100);
  return [
    formatCount(calls),
    formatCount(inputTokens),
    `${formatCount(cachedInputTokens)} (${share} %)`,
    formatCount(outputTokens),
    formatCount(reasoningTokens),
    formatCost(unpricedCalls > 0 ? null : costMicros),
  ];
}
