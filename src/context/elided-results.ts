import { type Message, textOf, type ToolMessage } from "../state/index.ts";
import { leftOut } from "./history-block.ts";
import { loadedRounds } from "./loaded-rounds.ts";
import { legalMessages, openTurnStart, roundsOf } from "./turns-and-rounds.ts";

/** The input of the compiler. */
interface ElisionInput {
  readonly history: readonly Message[];
  readonly turnId: string;
  readonly loadedCallIds: readonly string[];
  readonly earlier: readonly Message[];
}

interface ElisionLimits {
  readonly keepRounds: number;
  readonly overCharacters: number;
}

/**
 * The whole conversation without the long results of old rounds. Results that the model loaded again are shown where they are in the open
 * turn; those of earlier turns as rounds in front of it, so that the prompt stays the same up to there.
 */
export function withElidedResults(
  { keepRounds, overCharacters }: ElisionLimits,
  { history, turnId, loadedCallIds, earlier }: ElisionInput,
): readonly Message[] {
  const legal = legalMessages(history);
  const rounds = [...roundsOf(legal)];
  const old = rounds.slice(0, leftOut({ least: keepRounds, most: 2 * keepRounds }, rounds.length));
  const open = openTurnStart(legal, turnId);
  const loaded = new Set(loadedCallIds);
  const shown: Message[] = [...legal];
  const hidden = new Set<string>();
  for (const [start, { calls }] of old) {
    for (const [place, { callId, name }] of calls.entries()) {
      const index = start + 1 + place;
      const result = shown[index];
      if (result?.role !== "tool" || !isLong(result, overCharacters)) continue;
      if (index >= open && loaded.has(callId)) continue;
      shown[index] = elided(result, name);
      hidden.add(callId);
    }
  }
  if (loaded.size === 0) return shown;
  // A result that is shown anyway is not shown a second time.
  const present = new Set(rounds.flatMap(([, { calls }]) => calls.map(({ callId }) => callId)));
  const absent = loadedCallIds.filter((callId) => hidden.has(callId) || !present.has(callId));
  const rest = loadedRounds(absent, [...earlier, ...legal], []);
  return legalMessages([...shown.slice(0, open), ...rest, ...shown.slice(open)]);
}

function isLong({ content }: ToolMessage, overCharacters: number): boolean {
  if (typeof content !== "string" && content.some(({ type }) => type !== "text")) return true;
  return textOf(content).length > overCharacters;
}

/** Returns the same note each time, because tokens and digests of messages are cached by object. */
const notes = new WeakMap<ToolMessage, ToolMessage>();

function elided(result: ToolMessage, name: string): ToolMessage {
  let note = notes.get(result);
  if (note === undefined) {
    const length = textOf(result.content).length.toLocaleString("en");
    // Reads of artifacts are not in the list of calls that can be loaded.
    const again =
      name === "read_artifact" ? "call it again" : `load_tool_results loads it again, by its id ${result.callId}`;
    note = Object.freeze({
      ...result,
      content: `[This result of ${length} characters is no longer shown. If you need it, ${again}.]`,
    });
    notes.set(result, note);
  }
  return note;
}
