import { textOf } from "../../src/index.ts";
import type { EntryOf } from "../../src/state/index.ts";
import type { AgentEvidence, TreeEvidence } from "../../src/testing/simulation/evidence.ts";
import type { Attempt } from "../ledger/effect-ledger.ts";
import { byKey } from "./effect-checks.ts";
import { type Heard, type Hearing, spokenOf } from "../wires/wire.ts";
import type { ExchangeRecord, WireUser } from "../wires/wire-user.ts";

/** The data of a user at the end. */
export type UserRecord = Readonly<Pick<WireUser, "userId">> & {
  readonly [Fact in "exchanges" | "faults"]: Readonly<WireUser[Fact]>;
};

/** A stored turn of a root. */
interface StoredTurn {
  readonly turnId: string;
  readonly tree: TreeEvidence;
  readonly root: AgentEvidence;
  /** The turn's first input. */
  readonly input: string;
  readonly end: EntryOf<"turn.ended"> | undefined;
  /** Texts of the agent and its tools up to the end of the turn, and the last of them. */
  readonly said: readonly string[];
  readonly text: string;
}

/** Tools of the teller that must not be called twice, however their call ends. */
const onlyOnce: ReadonlySet<string> = new Set(["pay", "send"]);

/** Compares what the clients of a wire received over all connections with the store and the ledger. */
export function wireViolations(
  users: readonly UserRecord[],
  { trees, attempts }: { readonly trees: readonly TreeEvidence[]; readonly attempts: readonly Attempt[] },
): string[] {
  const turns = trees.flatMap(turnsOf);
  const byInput = Map.groupBy(turns, ({ input }) => input);
  const asked = new Set(users.flatMap(({ exchanges }) => exchanges.map(({ exchange }) => exchange.text)));
  return [
    ...users.flatMap(({ faults }) => faults),
    ...users.flatMap((user) => user.exchanges.flatMap((one) => exchangeViolations(user, one, byInput))),
    ...users.flatMap((user) => talkViolations(user, byInput)),
    ...turns.flatMap(({ turnId, input }) =>
      asked.has(input) ? [] : [`${turnId}: it was taken, but no client asked for it: ${input}`],
    ),
    ...callViolations(attempts),
  ];
}

function turnsOf(tree: TreeEvidence): StoredTurn[] {
  const root = tree.agents.find(({ agentId }) => agentId === tree.rootAgentId);
  if (!root) return [];
  const texts = new Map(root.messages.map(({ id, content }) => [id, textOf(content)]));
  return root.entries.flatMap((entry) => {
    if (entry.type !== "turn.started") return [];
    const { turnId, inputMessageIds } = entry;
    const end = root.entries.find(
      (one): one is EntryOf<"turn.ended"> => one.type === "turn.ended" && one.turnId === turnId,
    );
    const last = root.messages.findLastIndex(({ id }) => id.startsWith(`${turnId}:`));
    const said = spokenOf(
      root.messages.slice(0, last + 1).map(({ role, content }) => ({ role, text: textOf(content) })),
    );
    const input = texts.get(inputMessageIds[0] ?? "") ?? "";
    return [{ turnId, tree, root, input, end, said, text: said.at(-1) ?? "" }];
  });
}

/** Each key has one turn. Every window received this turn, with the outcome that is stored. */
function exchangeViolations(
  { userId }: UserRecord,
  { exchange, hearings }: ExchangeRecord,
  byInput: ReadonlyMap<string, readonly StoredTurn[]>,
): string[] {
  const turns = byInput.get(exchange.text) ?? [];
  const [turn] = turns;
  const ids = new Set([...turns.map(({ turnId }) => turnId), ...hearings.flatMap(({ turnIds }) => [...turnIds])]);
  const faults: string[] = [];
  if (!turn || turns.length !== 1 || ids.size !== 1) {
    faults.push(`${turns.length} turns have its input; it received ${[...ids].join(", ")}`);
  }
  if (turn) {
    const { ownerId } = turn.root.record;
    if (ownerId !== userId) faults.push(`its turn ${turn.turnId} is one of ${ownerId}`);
    for (const hearing of hearings) faults.push(...hearingViolations(hearing, turn));
    if (turn.end?.outcome === "completed") faults.push(...answerViolations(exchange, turn));
  }
  return faults.map((text) => `${userId} ${exchange.text}: ${text}`);
}

function hearingViolations({ ends, cutTexts }: Hearing, { end, text, said }: StoredTurn): string[] {
  const [last] = ends.slice(-1);
  const faults: string[] = [];
  if (!last) faults.push("a window never received its end");
  if (last && last.state !== stateOf(end)) {
    faults.push(`it received ${last.state}, but it ended ${end?.outcome}: ${end?.stopReason}`);
  } else if (last?.state === "completed" && last.text !== text) {
    faults.push(`it received "${last.text}", but "${text}" is stored`);
  }
  if (last?.shown !== undefined && last.state === "completed") {
    const [shown, stored] = [last.shown, said].map((texts) => JSON.stringify(texts));
    if (shown !== stored) faults.push(`its client shows ${shown}, but ${stored} is stored`);
  }
  for (const shown of end?.outcome === "completed" ? cutTexts : []) {
    if (!said.some((one) => one.startsWith(shown))) faults.push(`it was shown "${shown}", but "${text}" is stored`);
  }
  return faults;
}

function stateOf(end: EntryOf<"turn.ended"> | undefined): Heard["state"] | undefined {
  if (end?.outcome === "completed") return "completed";
  return end?.stopReason === "user_requested" ? "canceled" : "failed";
}

/** The script repeats the client's answer once in its own answer. */
function answerViolations({ deed, text, answer }: ExchangeRecord["exchange"], { text: stored }: StoredTurn): string[] {
  const isAsked = deed === "sign" || deed === "stamp" || deed === "ask";
  const times = stored.split(answer).length - 1;
  const about = text.slice(text.indexOf(" ") + 1);
  return [
    ...(stored.startsWith(`DONE ${about}: `) ? [] : [`it is answered with "${stored}"`]),
    ...(times === (isAsked ? 1 : 0) ? [] : [`its client's answer is ${times} times in "${stored}"`]),
  ];
}

/** All turns of a conversation are in one tree. */
function talkViolations({ userId, exchanges }: UserRecord, byInput: ReadonlyMap<string, readonly StoredTurn[]>) {
  const talks = Map.groupBy(exchanges, ({ conversation }) => conversation);
  return [...talks].flatMap(([conversation, own]) => {
    const turns = own.flatMap(({ exchange }) => byInput.get(exchange.text) ?? []);
    const trees = new Set(turns.map(({ tree }) => tree.rootAgentId));
    return trees.size > 1 ? [`${userId}: conversation ${conversation} is in ${trees.size} trees`] : [];
  });
}

function callViolations(attempts: readonly Attempt[]): string[] {
  return [...byKey(attempts)].flatMap(([key, all]) =>
    all.length > 1 && onlyOnce.has(all[0]?.tool ?? "") ? [`${key}: ${all[0]?.tool} ran ${all.length} times`] : [],
  );
}
