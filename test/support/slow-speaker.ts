import { setTimeout as delay } from "node:timers/promises";
import { type AgentDefinition, defineAgent } from "../../src/index.ts";

export interface Speech {
  /** Called when the first half is said. */
  readonly said: () => void;
  /** When it goes on. */
  readonly goOn: Promise<void>;
}

/** An agent that says half of its answer, waits, and says the other half some time before the answer is whole. */
export function slowSpeaker({ said, goOn }: Speech): AgentDefinition {
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
        await delay(300);
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
