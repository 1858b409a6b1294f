import type { Message } from "../../state/index.ts";
import type { Activation } from "./activation.ts";
import { pauseAgent } from "./intake.ts";

/** Brings a created or shut down agent to `ready`, or to `paused` where it is held; any other is left as it is. */
export function wakeUp(activation: Activation, conversation: readonly Message[] = []): void {
  const { lifecycle, definition, identity } = activation;
  if (lifecycle !== "created" && lifecycle !== "shutdown") return;
  activation.append({ type: "agent.starting" });
  activation.append({ type: "agent.started", definition: definition.ref }, { messages: conversation });
  if (identity.pause) pauseAgent(activation, identity.pause.by);
}

/** What an agent that is taken up says of itself, where a start was cut off or its definition is another one now. */
export function carryOn(activation: Activation): void {
  const { lifecycle, definition, identity, openTurnId } = activation;
  if (lifecycle === "starting") activation.append({ type: "agent.started", definition: definition.ref });
  if (identity.definition.hash === definition.ref.hash || openTurnId === null) return;
  const message = `definition "${definition.name}" has changed since agent "${identity.agentId}" was made`;
  activation.append({ type: "warning", turnId: openTurnId, code: "definition_changed", message });
}
