import { type AgentDefinition, defineAgent } from "../../src/index.ts";

export interface Speech {
  /** Called when the first half is said. */
  readonly said: () => void;
  /** When it goes on. */
  readonly goOn: Promise<void>;
  /** When the answer is whole: what is committed takes the place of what is still being sent, so those who listen say it. */
  readonly whole: Promise<unknown>;
}

/** An agent that says half of its answer, waits, says the other half, and waits again before the answer is whole. */
export function slowSpeaker({ said, goOn, whole }: Speech): AgentDefinition {
  return defineAgent({
    name: "speaker",
    model: {
      name: "slow",
      provider: "test",
      countPromptTokens: () => 1,
      async generate(_request, { onDelta }) {
        onDelta?.({ type: "text", text: "The first half, " });
        said();
        await goOn;
        onDelta?.({ type: "text", text: "and the second." });
        await whole;
        return {
          content: "The first half, and the second.",
          toolCalls: [],
          usage: { inputTokens: 1, outputTokens: 1 },
          finishReason: "stop",
          model: "slow",
        };
      },
    },
  });
}
