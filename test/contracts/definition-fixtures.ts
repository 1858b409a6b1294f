import { hashOfDefinition, type StoredDefinition } from "../../src/state/index.ts";

/** A definition in the form in which the stores save it. */
export function storedDefinition(name: string = "clerk", instructions: string = "Answer."): StoredDefinition {
  const content = {
    name,
    model: { provider: "offline", name: "offline" },
    instructions,
    tools: [],
    onDemandTools: [],
    history: "fullHistory",
    autoCompact: null,
    output: null,
    limits: { maxSteps: 10 },
    maxModelAttempts: 3,
    maxConsecutiveToolFailures: 3,
    plugins: [],
    clientTools: false,
  };
  return { hash: hashOfDefinition(content), ...content };
}
