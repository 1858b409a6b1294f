import { useEffect, useMemo, useState } from "preact/hooks";
import type { RunRow, StepContents } from "../feed/wire.ts";
import {
  type CallSide,
  type ComparedAgent,
  type ComparedStep,
  compareRuns,
  type StepField,
  type StepSide,
} from "../run-model/compare.ts";
import { isBusy } from "../run-model/agent-moment.ts";
import { sinceFork, type UseSince } from "../run-model/since-fork.ts";
import { useAsked } from "./asked.ts";
import { pointWords } from "./fork-point.tsx";
import { CompareStep } from "./compare-step.tsx";
import type { FeedClient } from "./feed-client.ts";
import { compact, costOfCall, costText, dateTime, milliseconds, plural, shortId } from "./format.ts";
import { addressOf, go, info, route } from "./page-state.ts";
import { RunSession } from "./run-session.ts";
import { spentUntil } from "./spent.ts";
import { oneLine, plainText } from "./untrusted.tsx";

const MOST_RUNS = 100;

/** Two runs, aligned by agent and step, differences first. */
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
        <p class="empty">
          Choose two runs above. The page shows their agents and steps side by side, differences first.
        </p>
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

/** Each agent has a table; a page with 2,000 of them would freeze. */
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
  const contents = { one: useContents(one), other: useContents(other) };
  const agents = useMemo(
    () =>
      isWhole
        ? compareRuns(
            { log: one.log, contentsOf: (agentId, seq) => contents.one.steps.get(keyOfStep(agentId, seq)) },
            { log: other.log, contentsOf: (agentId, seq) => contents.other.steps.get(keyOfStep(agentId, seq)) },
          )
        : [],
    [...lengths, contents.one.steps, contents.other.steps],
  );
  for (const run of [one, other]) {
    const why = run.gone.value ?? (run.link.value.kind === "refused" ? run.link.value.why : null);
    if (why !== null && (run.length.value === 0 || run.gone.value !== null))
      return <p class="empty">{plainText(why)}</p>;
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
  const isReading = contents.one.isReading || contents.other.isReading;
  const unread = agents.reduce((sum, { steps }) => sum + steps.filter(({ isRead }) => !isRead).length, 0);
  return (
    <div class="compare-body">
      {[one, other].map((run, index) => (
        <NotHeld key={run.runId} name={index === 0 ? "A" : "B"} run={run} />
      ))}
      <Totals one={one} other={other} agents={agents} />
      <SinceFork one={one} other={other} />
      <Unread isReading={isReading} steps={unread} failure={contents.one.failure ?? contents.other.failure} />
      {differing.slice(0, most).map((agent) => (
        <AgentComparison key={comparedKey(agent)} one={one} other={other} agent={agent} />
      ))}
      {differing.length > most && (
        <p>
          <button type="button" onClick={() => setMost(most + SHOWN_AT_ONCE)}>
            Show {SHOWN_AT_ONCE} more
          </button>{" "}
          <span class="quiet">{plural(differing.length - most, "agent")} more did something else.</span>
        </p>
      )}
      {differing.length === 0 && !isReading && unread === 0 && (
        <p class="note good">
          Both runs did the same: models, prompts, calls with their arguments and results, tokens, cost, answers and
          ends agree in every step.
        </p>
      )}
      {differing.length === 0 && !isReading && unread > 0 && (
        <p class="note">Nothing that could be compared differs.</p>
      )}
      {same > 0 && differing.length > 0 && !isReading && (
        <p class="quiet">
          {unread > 0
            ? `No difference was found in ${plural(same, "agent")}`
            : `${plural(same, "agent")} did the same in both runs`}
          :{" "}
          {agents
            .slice(differing.length, differing.length + 20)
            .map(({ name }) => oneLine(name, 40))
            .join(", ")}
        </p>
      )}
    </div>
  );
}

/** Shown because a page cannot hold all events of a very long run. */
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

function comparedKey({ one, other }: ComparedAgent): string {
  return `${one?.agentId ?? ""} ${other?.agentId ?? ""}`;
}

interface Contents {
  /** By `keyOfStep`. */
  readonly steps: ReadonlyMap<string, StepContents>;
  readonly isReading: boolean;
  readonly failure: string | null;
}

const nothingRead: Contents = { steps: new Map(), isReading: true, failure: null };

function keyOfStep(agentId: string, seq: number): string {
  return `${seq} ${agentId}`;
}

/** The contents of a run's steps, once all are read. */
function useContents(run: RunSession): Contents {
  const { answer, failure } = useAsked(() => contentsOf(run), {
    subject: run,
    on: [run.isCaughtUp.value, run.length.value],
    delayMs: 1_000,
  });
  return useMemo(
    () => (answer || failure !== null ? { steps: answer ?? new Map(), isReading: false, failure } : nothingRead),
    [answer, failure],
  );
}

async function contentsOf(run: RunSession): Promise<ReadonlyMap<string, StepContents>> {
  const steps = new Map<string, StepContents>();
  for (let after: string | null | undefined; after !== null; ) {
    const page: Awaited<ReturnType<FeedClient["steps"]>> = await run.client.steps(run.runId, after ?? null);
    for (const step of page.items) steps.set(keyOfStep(step.agentId, step.seq), step);
    after = page.next;
  }
  return steps;
}

/** Which contents were not compared. */
function Unread({ isReading, steps, failure }: { isReading: boolean; steps: number; failure: string | null }) {
  if (isReading) {
    return (
      <p class="quiet loading" aria-busy="true">
        Reading prompts, arguments and results of both runs …
      </p>
    );
  }
  if (steps === 0) return null;
  const why =
    failure ?? (info.value?.namesOnly === true ? "this page shows names only" : "they are not stored any more");
  return (
    <p class="note">
      Prompts, arguments, results and answers of {plural(steps, "step")} are not compared: {plainText(why)}.
    </p>
  );
}

interface Figure {
  readonly name: string;
  readonly one: string;
  readonly other: string;
}

function Totals({ one, other, agents }: RunsProps & { readonly agents: readonly ComparedAgent[] }) {
  const sides = { one: totalsOf(one, agents, "one"), other: totalsOf(other, agents, "other") };
  return <FiguresTable label="Both runs" one={one} other={other} sides={sides} />;
}

/** What a fork and its origin did after they parted, if one of the runs is a fork of the other. */
function SinceFork({ one, other }: RunsProps) {
  const isSecond = one.log.agents[0]?.agentId === other.log.agents[0]?.origin?.runId;
  const [origin, fork] = isSecond ? [one, other] : [other, one];
  const use = sinceFork(origin.log, fork.log);
  const from = fork.log.agents[0]?.origin;
  if (!use || !from) return null;
  const figures = { origin: figuresOf(use.origin), fork: figuresOf(use.fork) };
  const sides = isSecond ? { one: figures.origin, other: figures.fork } : { one: figures.fork, other: figures.origin };
  return (
    <section>
      <p>
        <b class="side">{isSecond ? "B" : "A"}</b> is a fork of <b class="side">{isSecond ? "A" : "B"}</b>{" "}
        {pointWords(from)}. Both have the same past; from there on:
      </p>
      <FiguresTable label="Since the fork" one={one} other={other} sides={sides} />
    </section>
  );
}

function figuresOf(use: UseSince): Record<string, string> {
  return {
    Steps: use.steps.toLocaleString("en"),
    "Tool calls": use.toolCalls.toLocaleString("en"),
    Tokens: compact(use.tokens),
    Cost: costText(use),
    Took: milliseconds(use.ms),
  };
}

interface FiguresProps extends RunsProps {
  readonly label: string;
  readonly sides: Readonly<Record<"one" | "other", Readonly<Record<string, string>>>>;
}

function FiguresTable({ label, one, other, sides }: FiguresProps) {
  const figures: Figure[] = Object.entries(sides.one).map(([name, text]) => ({
    name,
    one: text,
    other: sides.other[name] ?? "",
  }));
  return (
    <div class="totals-box" tabIndex={0} role="region" aria-label={label === "Both runs" ? "Totals" : label}>
      <table class="totals" aria-label={label}>
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
                    class={figure.one === figure.other || figure.name === "Took" ? "figures" : "figures differs"}
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
  const [root] = moments;
  const steps = agents.flatMap((agent) => agent.steps.flatMap((step) => step[side] ?? []));
  const { tokens, cost } = spentUntil(run.moment.value);
  return {
    Agents: run.log.agents.length.toLocaleString("en"),
    Steps: steps.length.toLocaleString("en"),
    "Tool calls": moments.reduce((sum, agent) => sum + (agent?.toolCalls ?? 0), 0).toLocaleString("en"),
    Tokens: compact(tokens),
    Cost: costText(cost),
    // The journal of a fork begins with the past of its origin.
    Took: `${milliseconds(run.time - (run.log.agents[0]?.origin ? run.log.agents[0].createdAt : run.log.startedAt))}${root && isBusy(root) ? " so far" : ""}`,
    Ended: root?.stopReason ?? "still open",
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
      {agent.ends && (
        <p>
          Ended otherwise: <b class="side">A</b> <span class="differs">{endText(agent.ends.one)}</span>{" "}
          <b class="side">B</b> <span class="differs">{endText(agent.ends.other)}</span>
        </p>
      )}
      <table class="compared-steps" hidden={differing.length === 0}>
        <thead>
          <tr>
            {["Step", "", "Model", "Prompt", "Calls", "Tokens", "Cost", "Answer"].map((name) => (
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

/** Shortens `completed completed` to one word. */
function endText(end: string): string {
  return end === "" ? "still open" : end.replaceAll(/\b(\w+) \1\b/g, "$1").replaceAll("_", " ");
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
  const cell = (field: Exclude<StepField, "tools" | "arguments" | "results">, text: string, isNumber = false) => (
    <td class={`${step.differs.includes(field) ? "differs" : "quiet"}${isNumber ? " number figures" : ""}`}>{text}</td>
  );
  return (
    <>
      {cell("model", oneLine(side.model, 30))}
      {cell("prompt", promptText(side, step))}
      <Calls side={side} step={step} />
      {cell("tokens", `${compact(side.inputTokens)} + ${compact(side.outputTokens)}`, true)}
      {cell("cost", costText(costOfCall(side.costMicros)), true)}
      {cell("answer", answerText(side))}
    </>
  );
}

/** Shows whether the prompts differ; opening the step shows them. */
function promptText({ contents }: StepSide, { one, other, differs }: ComparedStep): string {
  if (one === null || other === null) return "–";
  if (differs.includes("prompt")) return "another";
  return contents?.prompt == null ? "…" : "the same";
}

function answerText({ contents }: StepSide): string {
  if (!contents) return "…";
  return contents.answer === null || contents.answer.text === "" ? "–" : oneLine(contents.answer.text, 90);
}

/** The calls of a step with arguments and results. Differences are highlighted. */
function Calls({ side, step: { one, other, differs } }: { readonly side: StepSide; readonly step: ComparedStep }) {
  const others = (side === one ? other : one)?.calls ?? [];
  const part = (call: CallSide, field: "arguments" | "results") => {
    const of = field === "arguments" ? "arguments" : "result";
    const value = call[of];
    if (value === null) return null;
    const hasTwin = others.some((twin) => twin.name === call.name && twin[of]?.hash === value.hash);
    const text = oneLine(value.text, 60);
    return <span class={differs.includes(field) && !hasTwin ? "differs" : "quiet"}>{text}</span>;
  };
  return (
    <td class="compared-calls">
      {side.calls.length === 0 && <span class={differs.includes("tools") ? "differs" : "quiet"}>–</span>}
      {side.calls.map((call) => {
        const isOther = differs.includes("tools") && !others.some(({ name }) => name === call.name);
        return (
          <div key={call.callId}>
            <b class={isOther ? "differs" : ""}>{oneLine(call.name, 40)}</b> {part(call, "arguments")}
            {call.result !== null && <span class="quiet"> → </span>}
            {part(call, "results")}
          </div>
        );
      })}
    </td>
  );
}
