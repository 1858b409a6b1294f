import { type ModelUse } from "../../budget/index.ts";
import { scopeOf } from "./account-at.ts";
import { type AgentMoment, isBusy, phases, phaseWords } from "./agent-moment.ts";
import { criticalPath } from "./critical-path.ts";
import { eventText } from "./event-rows.ts";
import {
  compact,
  costText,
  costTitle,
  dollars,
  limitWord,
  milliseconds,
  percent,
  plural,
  shortId,
  sinceStart,
} from "./figures.ts";
import { lostWords } from "./lost-agents.ts";
import type { RunEntryOf } from "./run-log.ts";
import {
  type SummaryAnswer,
  type SummaryFact,
  type SummaryFacts,
  type SummaryPlace,
  tokensOf,
} from "./summary-facts.ts";
import { type Span, spanWords } from "./timeline.ts";

/** Most facts of one answer. */
const MOST_FACTS = 3;

function pageAddress({ log }: SummaryFacts, agent: number, fields: Partial<SummaryPlace> = {}): SummaryPlace {
  return { view: "timeline", agent: log.agents[agent]?.agentId ?? "", at: null, span: null, ...fields };
}

/** The timeline with the span's bar open. */
function spanAddress(facts: SummaryFacts, agent: number, span: Span | undefined): SummaryPlace {
  return pageAddress(facts, agent, span ? { span: facts.log.addressOf(span.first + 1) } : {});
}

/** The name of an agent; subagents get a suffix that distinguishes siblings. */
function nameOf({ log }: SummaryFacts, index: number): string {
  const { name = "", agentId = "", parent = -1 } = log.agents[index] ?? {};
  return parent < 0 ? name : `${name} ${shortId(agentId)}`;
}

/** Why the run stopped, or what it is waiting for. */
export function stateAnswer(facts: SummaryFacts): SummaryAnswer {
  const { moment, lost, isOpen } = facts;
  const root = moment.agents[0];
  const ended = root && !isBusy(root) && !lost.has(0) ? endFacts(facts, root) : [];
  const waits = waitFacts(facts);
  const more = waits.length - MOST_FACTS;
  const rest = more > 0 ? [{ text: `and ${plural(more, "other agent")}`, place: null }] : [];
  const question = lost.size > 0 ? "Why it does not go on" : isOpen ? "What it waits for" : "Why it stopped";
  return { question, facts: [...ended, ...waits.slice(0, MOST_FACTS), ...rest] };
}

/**
 * What each busy agent does, the most urgent first. Agents that wait for subagents count only if no other agent is busy.
 */
function waitFacts(facts: SummaryFacts): SummaryFact[] {
  const busy = facts.moment.agents.flatMap((one, agent) => {
    const phase = facts.lost.has(agent) ? "lost" : one?.phase;
    return one && phase && (phase === "lost" || isBusy(one)) ? [{ agent, one, phase }] : [];
  });
  const working = busy.filter(({ phase }) => phase !== "waiting");
  return (working.length > 0 ? working : busy)
    .toSorted((a, b) => phases.indexOf(a.phase) - phases.indexOf(b.phase))
    .map(({ agent, one, phase }) => {
      const span = openSpan(facts, agent);
      const lasted = milliseconds(Math.max(0, facts.until - (span?.start ?? one.since)));
      const words = [phaseWords[phase], waitDetail(facts, agent, one)].filter((part) => part !== "").join(": ");
      const isLost = facts.lost.has(agent);
      const text = `${nameOf(facts, agent)} is ${words}${isLost ? "" : `, for ${lasted}`}`;
      if (phase === "asking") return { text, place: pageAddress(facts, agent, { view: "requests" }) };
      if (phase === "budget") return { text, place: pageAddress(facts, agent, { view: "budgets" }) };
      return { text, place: spanAddress(facts, agent, span) };
    });
}

/** Details beyond the phase. */
function waitDetail(facts: SummaryFacts, agent: number, one: AgentMoment): string {
  const { moment, log, lost } = facts;
  const { phase, requests, running, model } = one;
  const left = lost.get(agent);
  if (left) return lostWords(left);
  if (phase === "asking") return requests.map(({ kind, name }) => `${kind} of ${name}`).join(", ");
  if (phase === "budget") {
    const agentId = log.agents[agent]?.agentId;
    const { limit, accountId } = moment.accounts.waiting.find((refused) => refused.agentId === agentId) ?? {};
    return limitWords(facts, limit ?? "", accountId ?? "");
  }
  return running.map(({ name }) => name).join(", ") || (phase === "thinking" && model) || "";
}

/** A limit and its account, as in the budgets view: `tokens of lead, turn 1`. */
function limitWords(facts: SummaryFacts, limit: string, accountId: string): string {
  const account = facts.moment.accounts.account(accountId);
  if (!account) return `${limitWord(limit)} of ${accountId}`;
  return `${limitWord(limit)} of ${nameOf(facts, facts.log.indexOfAgent(account.agentId))}, ${scopeOf(account)}`;
}

/** The agent's open span at the moment. */
function openSpan({ spansOf, moment }: SummaryFacts, agent: number): Span | undefined {
  return spansOf(agent).findLast(({ last }) => last < 0 || last >= moment.count);
}

/** How the root's newest turn ended, and what failed before it if it failed. */
function endFacts(facts: SummaryFacts, root: AgentMoment): SummaryFact[] {
  const { log } = facts;
  const name = nameOf(facts, 0);
  const end = lastEnd(facts);
  if (root.phase === "paused" || !end) {
    return [{ text: end ? `${name} is paused` : `${name} has not begun a turn`, place: pageAddress(facts, 0) }];
  }
  const { signal, stopReason, steps, at } = end.entry;
  const { title, detail } = eventText(end.entry);
  const limit = signal?.limit === undefined ? "" : limitWords(facts, signal.limit, signal.accountId ?? "");
  const why = [stopReason, detail || limit].filter((part) => part !== "").join(", ");
  const text = `${name}: ${title} after ${plural(steps, "step")}, at ${sinceStart(at, log.startedAt)}`;
  const place = pageAddress(facts, 0, {
    at: log.addressOf(end.place + 1),
    ...(limit === "" ? {} : { view: "budgets" }),
  });
  const last = root.phase === "failed" ? lastFailure(facts) : undefined;
  return [
    { text: why === "completed" ? text : `${text}: ${why}`, place },
    ...(last ? [spanFact(facts, "What failed last: ", last)] : []),
  ];
}

/** The newest `turn.ended` of the root, with its index in the log. */
function lastEnd({ log, moment }: SummaryFacts): { entry: RunEntryOf<"turn.ended">; place: number } | undefined {
  for (let place = moment.count - 1; place >= log.first; place -= 1) {
    const entry = log.agentOf(place) === 0 ? log.entry(place) : undefined;
    if (entry?.type === "turn.ended") return { entry, place };
  }
  return undefined;
}

interface Found {
  readonly agent: number;
  readonly span: Span;
}

function lastFailure(facts: SummaryFacts): Found | undefined {
  return greatest(facts, ({ isFailed, kind, last }) => (isFailed && kind !== "person" ? last : 0));
}

/** The span with the largest positive figure. */
function greatest({ log, spansOf }: SummaryFacts, figureOf: (span: Span) => number): Found | undefined {
  let found: Found | undefined;
  let most = 0;
  for (const { index: agent } of log.agents) {
    for (const span of spansOf(agent)) {
      const figure = figureOf(span);
      if (figure > most) [found, most] = [{ agent, span }, figure];
    }
  }
  return found;
}

function spanFact(facts: SummaryFacts, before: string, { agent, span }: Found, after = ""): SummaryFact {
  const text = `${before}${spanWords[span.kind]} ${span.label} of ${nameOf(facts, agent)}${after}`;
  return { text, place: spanAddress(facts, agent, span) };
}

/** The agent, the model and the call that spent most, by cost, or by tokens if no price is known. */
export function spentAnswer(facts: SummaryFacts): SummaryAnswer {
  const { total, byAgent, byModel, isOpen, moment } = facts;
  const question = isOpen ? "Who spent it so far" : "Who spent it";
  const [agent] = byAgent;
  const [model] = byModel;
  if (!agent || !model) return { question, facts: [{ text: "No model call has been paid for", place: null }] };
  const index = facts.log.indexOfAgent(agent.agentId);
  const hasPrice = total.costMicros > 0;
  const figureOf = (use: ModelUse): number => (hasPrice ? use.costMicros : tokensOf(use));
  const words = (use: ModelUse): string => (hasPrice ? costText(use) : compact(tokensOf(use)));
  const spent = (use: ModelUse): string =>
    `${words(use)} of ${words(total)}${hasPrice ? "" : " tokens"}, ${percent(figureOf(use), figureOf(total))}`;
  const dearest = greatest(facts, ({ costMicros, tokens, last }) =>
    last < moment.count ? (hasPrice ? costMicros : tokens) : 0,
  );
  const amountOf = ({ costMicros, tokens }: Span): string =>
    hasPrice ? dollars(costMicros) : `${compact(tokens)} tokens`;
  const missing = costTitle(total);
  return {
    question,
    facts: [
      {
        text: `${nameOf(facts, index)} by its own calls: ${spent(agent.use)}`,
        place: pageAddress(facts, index, { view: "budgets" }),
      },
      { text: `${model[0]}: ${spent(model[1])}`, place: null },
      ...(dearest ? [spanFact(facts, "The dearest: ", dearest, `, ${amountOf(dearest.span)}`)] : []),
      ...(missing === undefined ? [] : [{ text: missing, place: null }]),
    ],
  };
}

/** The longest spans of the critical path, and how the time divides into work, waits for people and idle time. */
export function slowAnswer(facts: SummaryFacts): SummaryAnswer {
  const { log, timeline, until, time, isOpen, moment } = facts;
  const { totalMs, workMs, peopleMs, idleMs } = time;
  const lengthOf = ({ span: { start, end } }: Found): number => Math.max(0, Math.min(end, until) - start);
  const path = [...criticalPath(log, timeline, until)];
  const longest = path
    .flatMap(([agent, spans]): Found[] => [...spans].map((span) => ({ agent, span })))
    .filter(({ span }) => span.first < moment.count && span.kind !== "child" && span.kind !== "person")
    .toSorted((one, other) => lengthOf(other) - lengthOf(one))
    .slice(0, MOST_FACTS);
  const split = `${milliseconds(workMs)} of work, ${milliseconds(peopleMs)} waiting for people, ${milliseconds(idleMs)} idle`;
  return {
    question: isOpen ? "What is slow so far" : "What was slow",
    facts: [
      ...longest.map((one) => {
        const isOver = one.span.last >= 0 && one.span.last < moment.count;
        const lasted = `: ${milliseconds(lengthOf(one))}${isOver ? "" : " so far"}, ${percent(lengthOf(one), totalMs)}`;
        return spanFact(facts, "", one, lasted);
      }),
      { text: `In all ${milliseconds(totalMs)}: ${split}`, place: null },
    ],
  };
}
