import { type AgentDefinition, defineAgent } from "../../src/index.ts";

export interface Speech {
  /** Called when the first half was sent. */
  readonly said: () => void;
  /** Resolves when the second half may follow. */
  readonly goOn: Promise<void>;
  /** Resolves when the answer may complete. The committed text replaces the streamed one, so listeners have to come first. */
  readonly whole: Promise<unknown>;
}

/** An agent that sends half of its answer, waits, sends the other half, and waits again before the answer is complete. */
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
