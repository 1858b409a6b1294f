import { useEffect, useMemo, useState } from "preact/hooks";
import type { FeedMessageItem, RunRow } from "../feed/wire.ts";
import {
  type ComparedAgent,
  type ComparedStep,
  compareRuns,
  type StepField,
  type StepSide,
} from "../run-model/compare.ts";
import { useAsked } from "./asked.ts";
import { CompareStep } from "./compare-step.tsx";
import type { FeedClient } from "./feed-client.ts";
import { compact, dateTime, dollars, milliseconds, plural, shortId } from "./format.ts";
import { addressOf, go, info, route } from "./page-state.ts";
import { RunSession } from "./run-session.ts";
import { oneLine, plainText } from "./untrusted.tsx";

const MOST_RUNS = 100;
/** Texts are read of so many agents of a run, and so many pages of each. */
const MOST_READ = 50;
const MOST_PAGES = 4;

/** Two runs, aligned by agent and step, with what differs first. */
export function CompareView({ feed }: { readonly feed: FeedClient }) {
  const { runId, otherId } = route.value;
  const { answer } = useAsked(() => feed.runs({ limit: MOST_RUNS }), { subject: feed, on: [runId, otherId] });
  const runs = answer?.items ?? [];
  const one = useRun(feed, runId);
  const other = useRun(feed, otherId);
  return (
    <main id="main" class="compare" tabIndex={-1}>
      <div class="view-bar">
        <h1>Compare</h1>
        <RunPicker label="A" name="First run" runs={runs} runId={runId} onPick={(id) => go({ runId: id })} />
        <RunPicker label="B" name="Second run" runs={runs} runId={otherId} onPick={(id) => go({ otherId: id })} />
        <button type="button" onClick={() => go({ runId: otherId, otherId: runId })}>
          Swap
        </button>
      </div>
      {one && other ? (
        <Comparison key={`${runId} ${otherId}`} one={one} other={other} />
      ) : (
        <p class="empty">Choose two runs above. Their agents and steps are put side by side, what differs first.</p>
      )}
    </main>
  );
}

function useRun(feed: FeedClient, runId: string): RunSession | undefined {
  const [run, setRun] = useState<RunSession | undefined>(undefined);
  useEffect(() => {
    const next = runId === "" ? undefined : new RunSession(feed, runId, { aheadMs: null });
    setRun(next);
    return () => next?.end();
  }, [feed, runId]);
  return run?.runId === runId ? run : undefined;
}

/** A table each: a page of 2,000 of them would stand still. */
const SHOWN_AT_ONCE = 25;

interface PickerProps {
  readonly label: string;
  readonly name: string;
  readonly runs: readonly RunRow[];
  readonly runId: string;
  readonly onPick: (runId: string) => void;
}

function RunPicker({ label, name, runs, runId, onPick }: PickerProps) {
  return (
    <label class="run-picker">
      <b class="side">{label}</b>
      <select aria-label={name} value={runId} onChange={({ currentTarget }) => onPick(currentTarget.value)}>
        <option value="">Choose a run …</option>
        {runId !== "" && !runs.some((row) => row.runId === runId) && (
          <option value={runId}>{oneLine(runId, 40)}</option>
        )}
        {runs.map((row) => (
          <option key={row.runId} value={row.runId}>
            {oneLine(row.name, 30)} {oneLine(shortId(row.runId), 30)} – {dateTime(row.createdAt)}
          </option>
        ))}
      </select>
    </label>
  );
}

interface RunsProps {
  readonly one: RunSession;
  readonly other: RunSession;
}

function Comparison({ one, other }: RunsProps) {
  const [most, setMost] = useState(SHOWN_AT_ONCE);
  const isWhole = one.isCaughtUp.value && other.isCaughtUp.value;
  const lengths = isWhole ? [one.length.value, other.length.value] : [0, 0];
  const texts = { one: useTexts(one), other: useTexts(other) };
  const agents = useMemo(
    () =>
      isWhole
        ? compareRuns(
            { log: one.log, textOf: (id) => texts.one?.get(id) },
            { log: other.log, textOf: (id) => texts.other?.get(id) },
          )
        : [],
    [...lengths, texts.one, texts.other],
  );
  for (const run of [one, other]) {
    const why = run.gone.value ?? (run.link.value.kind === "refused" ? run.link.value.why : null);
    if (why !== null && run.length.value === 0) return <p class="empty">{plainText(why)}</p>;
  }
  if (!isWhole) {
    const [mine, its] = [one.length.value, other.length.value];
    return (
      <p class="empty loading" aria-busy="true">
        Reading both journals: {mine.toLocaleString("en")} events of A and {its.toLocaleString("en")} of B so far …
      </p>
    );
  }
  const differing = agents.filter(({ differences }) => differences > 0);
  const same = agents.length - differing.length;
  return (
    <div class="compare-body">
      {[one, other].map((run, index) => (
        <NotHeld key={run.runId} name={index === 0 ? "A" : "B"} run={run} />
      ))}
      <Totals one={one} other={other} agents={agents} />
      {differing.slice(0, most).map((agent) => (
        <AgentComparison key={keyOf(agent)} one={one} other={other} agent={agent} />
      ))}
      {differing.length > most && (
        <p>
          <button type="button" onClick={() => setMost(most + SHOWN_AT_ONCE)}>
            Show {SHOWN_AT_ONCE} more
          </button>{" "}
          <span class="quiet">{plural(differing.length - most, "agent")} more did something else.</span>
        </p>
      )}
      {differing.length === 0 && (
        <p class="note good">
          Both runs did the same: models, prompts, tools, tokens, cost and answers agree in every step.
        </p>
      )}
      {same > 0 && differing.length > 0 && (
        <p class="quiet">
          {plural(same, "agent")} did the same in both runs:{" "}
          {agents
            .slice(differing.length, differing.length + 20)
            .map(({ name }) => oneLine(name, 40))
            .join(", ")}
        </p>
      )}
    </div>
  );
}

/** A page cannot hold all events of a very long run. */
function NotHeld({ name, run }: { readonly name: string; readonly run: RunSession }) {
  const first = run.first.value;
  if (first === 0) return null;
  return (
    <p class="note">
      {name} has more events than a page holds: its newest {(run.length.value - first).toLocaleString("en")} are
      compared, {first.toLocaleString("en")} are not.
    </p>
  );
}

function keyOf({ one, other }: ComparedAgent): string {
  return `${one?.agentId ?? ""} ${other?.agentId ?? ""}`;
}

/** Texts of the stored messages by id; undefined until they are read. */
function useTexts(run: RunSession): ReadonlyMap<string, string> | undefined {
  const isHidden = info.value?.namesOnly === true;
  const { answer } = useAsked(() => textsOf(run), {
    subject: run,
    on: [run.isCaughtUp.value, run.length.value],
    delayMs: 1_000,
  });
  return isHidden ? undefined : answer;
}

async function textsOf(run: RunSession): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  const note = ({ message, isCut }: FeedMessageItem): void => {
    if (!isCut) texts.set(message.id, textIn(message.content));
  };
  for (const { agentId } of run.log.agents.slice(0, MOST_READ)) {
    let before: string | undefined;
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const { items, next } = await run.client.messages(run.runId, agentId, before === undefined ? {} : { before });
      items.forEach(note);
      if (next === null) break;
      before = next;
    }
  }
  return texts;
}

function textIn(content: FeedMessageItem["message"]["content"]): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

interface Figure {
  readonly name: string;
  readonly one: string;
  readonly other: string;
}

function Totals({ one, other, agents }: RunsProps & { readonly agents: readonly ComparedAgent[] }) {
  const sides = { one: totalsOf(one, agents, "one"), other: totalsOf(other, agents, "other") };
  const figures: Figure[] = Object.entries(sides.one).map(([name, text]) => ({
    name,
    one: text,
    other: sides.other[name] ?? "",
  }));
  return (
    <div class="totals-box" tabIndex={0} role="region" aria-label="Totals">
      <table class="totals" aria-label="Both runs">
        <thead>
          <tr>
            <th scope="col">Run</th>
            {figures.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {(["one", "other"] as const).map((side) => {
            const run = side === "one" ? one : other;
            return (
              <tr key={side}>
                <th scope="row">
                  <b class="side">{side === "one" ? "A" : "B"}</b>{" "}
                  <a href={addressOf({ page: "run", runId: run.runId, at: null, agent: null })}>
                    {oneLine(run.log.agents[0]?.name ?? "", 40)} <code>{oneLine(shortId(run.runId), 24)}</code>
                  </a>
                </th>
                {figures.map((figure) => (
                  <td
                    key={figure.name}
                    class={figure.one === figure.other || figure.name === "took" ? "figures" : "figures differs"}
                  >
                    {figure[side]}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function totalsOf(run: RunSession, agents: readonly ComparedAgent[], side: "one" | "other"): Record<string, string> {
  const moments = run.moment.value.agents;
  const steps = agents.flatMap((agent) => agent.steps.flatMap((step) => step[side] ?? []));
  const tokens = steps.reduce((sum, step) => sum + step.inputTokens + step.outputTokens, 0);
  const hasPrice = steps.every(({ costMicros }) => costMicros !== null);
  const micros = steps.reduce((sum, { costMicros }) => sum + (costMicros ?? 0), 0);
  return {
    agents: run.log.agents.length.toLocaleString("en"),
    steps: steps.length.toLocaleString("en"),
    "tool calls": steps.reduce((sum, { tools }) => sum + tools.length, 0).toLocaleString("en"),
    tokens: compact(tokens),
    cost: dollars(hasPrice ? micros : null),
    took: milliseconds(run.log.endedAt - run.log.startedAt),
    ended: moments[0]?.stopReason ?? "open",
  };
}

function AgentComparison({ one, other, agent }: RunsProps & { readonly agent: ComparedAgent }) {
  const differing = agent.steps.filter(({ isSame }) => !isSame);
  const same = agent.steps.length - differing.length;
  const lacking = agent.one === null ? "A" : agent.other === null ? "B" : null;
  return (
    <section class="compared-agent">
      <h2>
        {oneLine(agent.name, 60)} <code class="id">{idsOf(agent)}</code>
        <span class="quiet">
          {lacking === null
            ? `${plural(differing.length, "step")} of ${agent.steps.length} ${differing.length === 1 ? "differs" : "differ"}`
            : `only in ${lacking === "A" ? "B" : "A"}`}
        </span>
      </h2>
      <table class="compared-steps">
        <thead>
          <tr>
            {["Step", "", "Model", "Prompt", "Tools", "Tokens", "Cost", "Answer"].map((name) => (
              <th key={name} scope="col" class={name === "Tokens" || name === "Cost" ? "number" : ""}>
                {name === "" ? <span class="visually-hidden">Run</span> : name}
              </th>
            ))}
          </tr>
        </thead>
        {differing.map((step) => (
          <StepRows key={`${step.turn} ${step.step}`} one={one} other={other} agent={agent} step={step} />
        ))}
      </table>
      {same > 0 && <p class="quiet same-steps">{plural(same, "step")} more, the same in both.</p>}
    </section>
  );
}

function idsOf({ one, other }: ComparedAgent): string {
  const ids = [one, other].flatMap((agent) => (agent ? shortId(agent.agentId) : []));
  return [...new Set(ids)].join(" · ");
}

interface StepProps extends RunsProps {
  readonly agent: ComparedAgent;
  readonly step: ComparedStep;
}

function StepRows({ one, other, agent, step }: StepProps) {
  const [isOpen, setOpen] = useState(false);
  const title = `${step.turn}.${step.step}`;
  return (
    <tbody>
      {(["one", "other"] as const).map((side) => (
        <tr key={side}>
          {side === "one" && (
            <th scope="rowgroup" rowSpan={2}>
              <button
                type="button"
                class="link"
                aria-expanded={isOpen}
                aria-label={`${title}: prompts and answers`}
                onClick={() => setOpen(!isOpen)}
              >
                {title}
              </button>
            </th>
          )}
          <td>
            <b class="side">{side === "one" ? "A" : "B"}</b>
          </td>
          <SideCells side={step[side]} step={step} />
        </tr>
      ))}
      {isOpen && (
        <tr class="step-detail">
          <td colSpan={8}>
            <CompareStep
              one={agent.one && step.one && { run: one, agentId: agent.one.agentId, seq: step.one.seq }}
              other={agent.other && step.other && { run: other, agentId: agent.other.agentId, seq: step.other.seq }}
            />
          </td>
        </tr>
      )}
    </tbody>
  );
}

function SideCells({ side, step }: { readonly side: StepSide | null; readonly step: ComparedStep }) {
  if (!side) {
    return (
      <td colSpan={6} class="differs">
        no such step
      </td>
    );
  }
  const cell = (field: StepField, text: string, isNumber = false) => (
    <td class={`${step.differs.includes(field) ? "differs" : "quiet"}${isNumber ? " number figures" : ""}`}>{text}</td>
  );
  return (
    <>
      {cell("model", oneLine(side.model, 30))}
      {cell("prompt", side.promptHash.slice(0, 8))}
      {cell("tools", side.tools.length === 0 ? "–" : side.tools.map((name) => oneLine(name, 40)).join(", "))}
      {cell("tokens", `${compact(side.inputTokens)} + ${compact(side.outputTokens)}`, true)}
      {cell("cost", dollars(side.costMicros), true)}
      {cell("answer", side.answer === null ? "…" : side.answer === "" ? "–" : oneLine(side.answer, 90))}
    </>
  );
}
