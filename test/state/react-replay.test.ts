import { expect, test } from "vitest";
import {
  agentTransition,
  effectsAt,
  type Entry,
  foldTurn,
  initialAgentState,
  type ReactInput,
  reactInputSchema,
  reactInputsOf,
  startTurn,
  textOf,
  type TurnState,
} from "../../src/state/index.ts";
import { scenarios } from "../machines/scenarios.ts";
import { every, rows } from "../support/full.ts";
import { entriesOf } from "../support/journal-probes.ts";
import { describeRuntimes, type Stage } from "../support/runtimes.ts";
import { inputOf, stateOf } from "./react/as-state.ts";

type TextLookup = (messageId: string) => string;

/** One turn of a journal: its entries, and the text of its messages. */
interface TurnJournal {
  readonly entries: readonly Entry[];
  readonly text: TextLookup;
}

async function turnsOf(stage: Stage, run: (typeof scenarios)[number]["run"]): Promise<TurnJournal[]> {
  const runtime = await run(stage, {});
  const turns: TurnJournal[] = [];
  for (const { agentId } of await runtime.list()) {
    const messages = await runtime.stores.messages({ tenant: "default", agentId });
    const texts = new Map(messages.map(({ id, content }) => [id, textOf(content)]));
    const ofTurn = (await entriesOf(runtime.stores, agentId)).filter((entry) => "turnId" in entry);
    for (const [turnId, entries] of Map.groupBy(ofTurn, (entry) => ("turnId" in entry ? entry.turnId : undefined))) {
      if (turnId !== undefined) turns.push({ entries, text: (id) => texts.get(id) ?? "" });
    }
  }
  return turns;
}

/** Folds a turn and yields its state before each entry. */
function* foldOf(
  entries: readonly Entry[],
  text?: TextLookup,
): Generator<{ before: TurnState; entry: Entry }, TurnState> {
  const [first, ...rest] = entries;
  if (first?.type !== "turn.started") throw new Error("a turn begins with turn.started");
  let turn = startTurn(first);
  for (const entry of [first, ...rest]) {
    yield { before: turn, entry };
    turn = foldTurn(turn, entry, text);
  }
  return turn;
}

function lastOf(entries: readonly Entry[], text?: TextLookup): { turn: TurnState; inputs: ReactInput[] } {
  const inputs: ReactInput[] = [];
  const steps = foldOf(entries, text);
  for (let next = steps.next(); ; next = steps.next()) {
    if (next.done) return { turn: next.value, inputs };
    inputs.push(...reactInputsOf(next.value.before, next.value.entry, text).map(inputOf));
  }
}

function replay(inputs: readonly unknown[]) {
  return inputs.reduce(
    (state: ReturnType<typeof initialAgentState>, input) => agentTransition(reactInputSchema.parse(input))(state),
    initialAgentState(),
  );
}

/** Whether this state calls for the entry that follows. */
function callsFor(turn: TurnState, entry: Entry): boolean {
  const { callLlm, runTools } = effectsAt(stateOf(turn.react));
  if (entry.type === "tool.started") return runTools.includes(entry.callId);
  // A turn without a message of its own continues the conversation (row L5); another attempt belongs to the same call.
  const continues = turn.step === 0 && turn.react.messages.length === 0;
  return callLlm || continues || turn.attempt > 0;
}

describeRuntimes(
  "the runtime's turns run on the ReAct core (row R8)",
  (stage) => {
    test.each(rows(scenarios, every(4)))("$name: its ReAct state equals the replay of its inputs", async ({ run }) => {
      const turns = await turnsOf(stage(), run);
      expect(turns.length).toBeGreaterThan(0);
      for (const { entries, text } of turns) {
        for (const lookup of [undefined, text]) {
          const { turn, inputs } = lastOf(entries, lookup);
          const stored: unknown[] = JSON.parse(JSON.stringify(inputs));
          expect(replay(stored)).toEqual(stateOf(turn.react));
        }
        expect(lastOf(entries, text).turn.react.messages.every(({ id, content }) => content === text(id))).toBe(true);
      }
    });

    test.each(rows(scenarios, every(4)))(
      "$name: it starts only what its ReAct state calls for (row R5)",
      async ({ run }) => {
        const turns = await turnsOf(stage(), run);
        const effects = turns.flatMap(({ entries }) => [...foldOf(entries)]);
        const begun = effects.filter(({ entry }) => ["model.requested", "tool.started"].includes(entry.type));
        expect(begun.filter(({ before, entry }) => !callsFor(before, entry))).toEqual([]);
      },
    );
  },
  ["memory"],
);
