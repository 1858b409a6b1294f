import * as fc from "fast-check";
import type { Message } from "../../src/state/index.ts";
import { answer, hookMessage, input, round, turn } from "./messages.ts";

/** The shape of a turn: its rounds, and whether it has an input and an answer. */
const turnShape = fc.record({
  rounds: fc.array(
    fc.record({
      calls: fc.integer({ min: 1, max: 3 }),
      text: fc.constantFrom("", "I will look."),
      note: fc.constantFrom(undefined, "user" as const, "system" as const),
    }),
    { maxLength: 4 },
  ),
  hasInput: fc.boolean(),
  answers: fc.boolean(),
});

/** A conversation whose last turn is open. */
export interface Conversation {
  readonly history: readonly Message[];
  readonly turnId: string;
}

function conversationOf(
  shapes: readonly (typeof turnShape extends fc.Arbitrary<infer Shape> ? Shape : never)[],
): Conversation {
  const history = shapes.flatMap(({ rounds, hasInput, answers }, index): Message[] => {
    const turnId = turn(index + 1);
    const isOpen = index === shapes.length - 1;
    return [
      ...(hasInput || index === 0 ? [input(turnId)] : []),
      ...rounds.flatMap(({ calls, text, note }, step) => [
        ...round(turnId, step + 1, calls, text),
        ...(note ? [hookMessage(turnId, step + 1, note)] : []),
      ]),
      ...(answers && !isOpen ? [answer(turnId, rounds.length + 1)] : []),
    ];
  });
  return { history, turnId: turn(shapes.length) };
}

/** Conversations as the runtime writes them. */
export const wholeConversation: fc.Arbitrary<Conversation> = fc
  .array(turnShape, { minLength: 1, maxLength: 6 })
  .map(conversationOf);

const damage = fc.oneof(
  fc.record({ kind: fc.constant("lose" as const), at: fc.nat() }),
  fc.record({ kind: fc.constant("double" as const), at: fc.nat(), to: fc.nat() }),
  fc.record({ kind: fc.constant("move" as const), at: fc.nat(), to: fc.nat() }),
  fc.record({ kind: fc.constant("rename" as const), at: fc.nat() }),
  fc.record({ kind: fc.constant("repeatCall" as const), at: fc.nat() }),
);

/** Conversations with lost, duplicated or misplaced messages, or with wrong call ids. */
export const brokenConversation: fc.Arbitrary<Conversation> = fc
  .tuple(wholeConversation, fc.array(damage, { maxLength: 6 }))
  .map(([{ history, turnId }, damages]) => {
    const messages = [...history];
    for (const { kind, at, ...rest } of damages) {
      if (messages.length === 0) break;
      const index = at % messages.length;
      const message = messages[index];
      if (!message) continue;
      const to = "to" in rest ? rest.to % messages.length : 0;
      if (kind === "lose" || kind === "move") messages.splice(index, 1);
      if (kind === "double" || kind === "move") messages.splice(to, 0, message);
      if (kind === "rename" && message.role === "tool") messages[index] = { ...message, providerId: "another" };
      if (kind === "repeatCall" && message.role === "assistant" && message.toolCalls) {
        messages[index] = { ...message, toolCalls: [...message.toolCalls, ...message.toolCalls.slice(0, 1)] };
      }
    }
    return { history: messages, turnId };
  });
