import type { Entry } from "../../src/state/index.ts";
import { gatesIn } from "../checks/effect-checks.ts";
import { journalViolations } from "../../src/testing/simulation/journal-checks.ts";
import { spawnViolations } from "../checks/prefix-checks.ts";
import { limitViolations, restViolations } from "../../src/testing/simulation/rest-checks.ts";
import { type Spent, spendingViolations } from "../checks/spending-checks.ts";
import type { AgentEvidence, TreeEvidence } from "../../src/testing/simulation/evidence.ts";
import { calmFaults } from "./calm-model.ts";
import { HOOK_BROKE, receipt } from "./cast.ts";
import { type Ended, entriesOf, linesOf } from "./evidence-lines.ts";
import { followerFaults, promptFaults } from "./seen-faults.ts";
import { steerFaults } from "./steer-faults.ts";
import type { WorldLine } from "./world.ts";

/** Returns the violated rules of an ended program, in words. The rules hold for all disturbances. */
export function faultsOf(ended: Ended): string[] {
  const { tree, lines, died } = ended;
  return [
    ...linesOf(lines, "fault").map(({ text }) => text),
    ...restViolations(tree).filter((text) => !text.endsWith(HOOK_BROKE) && !(died && leftAborts.test(text))),
    ...spawnViolations(tree),
    ...spendingViolations(tree, billOf(tree, lines)),
    ...limitViolations(tree),
    ...counterFaults(tree),
    ...waiterFaults(ended),
    ...abortFaults(ended),
    ...steerFaults(ended),
    ...tree.agents.flatMap((agent) => [
      ...journalViolations(agent),
      ...modelFaults(agent, lines),
      ...promptFaults(agent, lines),
      ...effectFaults(agent, ended),
    ]),
    ...followerFaults(ended),
    ...calmFaults(ended),
  ];
}

/** Aborts of ended turns, whose agents no process has started since their process died. */
const leftAborts = /: abort:\S+ left in its inbox$/;
const outputPrice = 4;

/**
 * The provider's bill for its answers; for calls that were cut off, the runtime's count. A call can be cut off by a time
 * limit or an abort after its answer was sent but before it arrived: then the runtime's count replaces the bill.
 */
export function billOf(tree: TreeEvidence, lines: readonly WorldLine[]): Spent {
  const asked = new Map(linesOf(lines, "asked").map((line) => [place(line), line.inputTokens]));
  const cut = tree.agents.flatMap((agent) =>
    entriesOf(agent, "model.failed").flatMap(({ turnId, step, usage }) =>
      usage?.estimated === true ? [{ turnId, step, usage }] : [],
    ),
  );
  const cutAt = Map.groupBy(cut, place);
  const stored = new Set(tree.agents.flatMap((agent) => entriesOf(agent, "model.responded").map(place)));
  const bills = [
    ...[...Map.groupBy(linesOf(lines, "answered"), place)].flatMap(([where, answers]) => {
      const lost = answers.length - (stored.has(where) ? 1 : 0);
      const counted = Math.min(lost, cutAt.get(where)?.length ?? 0);
      const inputTokens = asked.get(where) ?? 0;
      return answers.slice(counted).map(({ outputTokens }) => ({ inputTokens, outputTokens }));
    }),
    ...linesOf(lines, "side"),
    ...cut.map(({ usage }) => usage),
  ];
  return bills.reduce(
    ({ tokens, costMicros }, { inputTokens, outputTokens }) => ({
      tokens: tokens + inputTokens + outputTokens,
      costMicros: costMicros + inputTokens + outputTokens * outputPrice,
    }),
    { tokens: 0, costMicros: 0 },
  );
}

/** Key of a step. */
function place({ turnId, step }: { readonly turnId: string; readonly step: number }): string {
  return `${turnId}:${step}`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

/** The counts of accounts and turns equal those in the journals. */
function counterFaults({ agents, accounts }: TreeEvidence): string[] {
  const faults: string[] = [];
  const [steps, calls]: [number[], number[]] = [[], []];
  for (const agent of agents) {
    for (const end of entriesOf(agent, "turn.ended")) {
      const { turnId } = end;
      const ofTurn = agent.entries.filter((entry) => "turnId" in entry && entry.turnId === turnId);
      const granted = new Set(ofTurn.flatMap((entry) => (entry.type === "model.requested" ? [entry.step] : [])));
      const begun = new Set(ofTurn.flatMap(beginOf));
      const account = accounts.find(({ id }) => id === `turn:${turnId}`);
      steps.push(granted.size);
      calls.push(begun.size);
      const counted = { steps: account?.used.steps, toolCalls: account?.used.toolCalls };
      if (counted.steps !== granted.size)
        faults.push(`${turnId}: its account has ${counted.steps} steps, its journal ${granted.size}`);
      if (counted.toolCalls !== begun.size)
        faults.push(`${turnId}: its account has ${counted.toolCalls} calls, its journal ${begun.size}`);
    }
  }
  const roots = accounts.filter(({ parentId }) => parentId === null).map(({ used }) => used);
  const [treeSteps, treeCalls] = [
    sum(roots.map((used) => used.treeSteps)),
    sum(roots.map((used) => used.treeToolCalls)),
  ];
  if (treeSteps !== sum(steps)) faults.push(`its accounts have ${treeSteps} steps, its journals ${sum(steps)}`);
  if (treeCalls !== sum(calls)) faults.push(`its accounts have ${treeCalls} calls, its journals ${sum(calls)}`);
  return faults;
}

/** The id of the call or child that an entry begins; empty for other entries. */
function beginOf(entry: Entry): string[] {
  if (entry.type === "tool.started") return [entry.callId];
  return entry.type === "child.spawned" ? [entry.childId] : [];
}

/** Each sent turn is stored once, and its waiter received its outcome. */
function waiterFaults({ program, tree, lines }: Ended): string[] {
  const [root] = tree.agents;
  if (!root) return ["there is no agent"];
  const faults: string[] = [];
  const sent = entriesOf(root, "turn.started").filter(({ inputMessageIds }) => inputMessageIds.length > 0);
  const { length } = program.turns;
  // An input that no model call of the open turn sees opens a turn.
  const most = length + program.acts.filter(({ does }) => does === "steer").length;
  if (sent.length > most) faults.push(`${length} turns were sent, ${sent.length} begun`);
  const ends = new Map(entriesOf(root, "turn.ended").map((entry) => [entry.turnId, entry]));
  const told = linesOf(lines, "told");
  for (const index of program.turns.keys()) {
    const turns = new Set(told.filter(({ turn }) => turn === index).map(({ turnId }) => turnId));
    if (turns.size !== 1) faults.push(`the waiter of turn ${index} received ${turns.size} turns`);
  }
  for (const { turnId, status, stopReason } of told) {
    const end = ends.get(turnId);
    if (end?.outcome === status && end.stopReason === stopReason) continue;
    faults.push(
      `the waiter of ${turnId} received ${status}, ${stopReason}; it ended ${end?.outcome}, ${end?.stopReason}`,
    );
  }
  return faults;
}

/** After an abort of the agent was acknowledged, turns that were open before get no further grants. */
function abortFaults({ tree, lines }: Ended): string[] {
  const aborts = [...linesOf(lines, "act"), ...linesOf(lines, "acted")].filter(({ does }) => does === "abort");
  return linesOf(lines, "acted").flatMap((acted) => {
    if (acted.does !== "abort") return [];
    const asked = aborts.findLast(({ type, at }) => type === "act" && at <= acted.at);
    return tree.agents.flatMap((agent) => {
      const open = new Set(
        entriesOf(agent, "turn.started").flatMap(({ turnId, at }) => (at < (asked?.at ?? 0) ? [turnId] : [])),
      );
      return agent.entries.flatMap((entry) => {
        const isGrant = entry.type === "model.requested" || entry.type === "tool.started";
        if (!isGrant || !open.has(entry.turnId) || entry.at <= acted.at) return [];
        return [`${entry.type} of ${entry.turnId}:${entry.step} ${entry.at - acted.at} ms after its abort`];
      });
    });
  });
}

/** Each model request was granted, and its prompt contains each result of the turn once, in order. */
function modelFaults(agent: AgentEvidence, lines: readonly WorldLine[]): string[] {
  const asked = linesOf(lines, "asked").filter(({ turnId }) => turnId.startsWith(`${agent.agentId}#`));
  const grants = entriesOf(agent, "model.requested");
  const answers = entriesOf(agent, "model.responded");
  const faults = asked.flatMap(({ turnId, step, told, fault }) => {
    const where = `${turnId}:${step}`;
    const due = answers
      .filter((answer) => answer.turnId === turnId && answer.step < step)
      .flatMap(({ calls }) => calls.map(({ callId }) => callId));
    const isWhole = due.length === told.length && due.every((callId, index) => callId === told[index]);
    return [
      ...(fault === undefined ? [] : [`${where}: an illegal prompt: ${fault}`]),
      ...(isWhole ? [] : [`${where}: its prompt shows the results of ${told.join()}; due are ${due.join()}`]),
    ];
  });
  for (const [where, calls] of Map.groupBy(asked, ({ turnId, step }) => `${turnId}:${step}`)) {
    const granted = grants.filter(({ turnId, step }) => `${turnId}:${step}` === where).length;
    if (calls.length > granted) faults.push(`${where}: the model was asked ${calls.length} times, granted ${granted}`);
  }
  return faults;
}

/** Compares the effects of tools with their calls in the journal. */
function effectFaults(agent: AgentEvidence, { lines }: Ended): string[] {
  const attempts = Map.groupBy(linesOf(lines, "attempt"), ({ callId }) => callId);
  const results = new Map(agent.messages.map((message) => [message.id, message.content]));
  const gates = gatesIn(agent.entries);
  const settled = new Set(entriesOf(agent, "tool.settled").map(({ callId }) => callId));
  const own = [...attempts.keys()].filter((callId) => callId.startsWith(`${agent.agentId}#`));
  const faults = own.flatMap((callId) => (settled.has(callId) ? [] : [`${callId}: it ran, but has no result`]));
  for (const end of entriesOf(agent, "tool.settled")) {
    const { callId, name, outcome, messageId } = end;
    const gate = gates.get(callId);
    if (!gate || gate.kind !== "function") continue;
    const done = attempts.get(callId) ?? [];
    const say = (text: string): void => void faults.push(`${callId} (${name}): ${text}`);
    const grants = entriesOf(agent, "tool.started").filter((entry) => entry.callId === callId);
    if (new Set(done.map(({ key }) => key)).size > 1) say("its receiver got several keys");
    if (gate.effect === "once" && done.length > 1) say(`a once call was done ${done.length} times`);
    if (done.some(({ isGranted }) => !isGranted)) say("it ran before its grant was committed");
    if (grants.length === 0 && done.length > 0) say("it ran without a grant");
    if (outcome === "success" && done.length === 0) say("its outcome is success, but it never ran");
    const text = JSON.stringify(results.get(messageId) ?? "");
    const isStop = text.includes("The tool stopped the run: enough");
    if (outcome === "success" && !isStop && !text.includes(receipt(callId))) say(`its result is ${text.slice(0, 80)}`);
    if (["denied", "invalid", "not_found"].includes(outcome) && done.length > 0) say(`it was ${outcome}, but it ran`);
    const notes = new Set(done.map(({ note }) => note));
    const approved = (gate.arguments as { note?: string } | null)?.note;
    if (!gate.needsApproval && [...notes].some((note) => note !== approved)) say("it ran with other arguments");
  }
  const keys = [...attempts.values()].flatMap((done) => [...new Set(done.map(({ key }) => key))]);
  if (new Set(keys).size < keys.length) faults.push("two calls sent the same key");
  return faults;
}
