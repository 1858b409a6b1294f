import { faultPoint } from "../base/index.ts";
import { type CallState, type Json, requestIdOf, type RequestKind } from "../state/index.ts";
import type { Host } from "./host.ts";
import { hashOfArguments } from "./tool-calls.ts";

/** A question that a person, the caller or the program has to answer before a call can continue. */
export interface Question {
  readonly kind: RequestKind;
  /** Text shown to a person. */
  readonly prompt: string;
  /** Milliseconds from now. By default the request never expires. */
  readonly expiresAfterMs?: number | undefined;
  /**
   * Set if the tool's code asks; contains the subject of its question. By default the runtime asks about the call's arguments.
   */
  readonly asked?: { readonly arguments?: Json | undefined } | undefined;
}

/** Opens a request for a decision; the call then waits for it. */
export function openRequest(host: Host, call: CallState, question: Question): void {
  const { kind, prompt, expiresAfterMs, asked } = question;
  const { turnId, step, callId, name, gate } = call;
  if (!gate) return;
  const { tenant, agentId, rootAgentId, definition, ownerId } = host.identity;
  const requestId = requestIdOf(callId, call.requests + 1);
  const openedAt = host.clock.now();
  const expiresAt = expiresAfterMs === undefined ? null : openedAt + expiresAfterMs;
  const args = asked?.arguments ?? gate.arguments;
  const argumentsHash = asked || gate.argumentsHash === "" ? hashOfArguments(args) : gate.argumentsHash;
  const opened = { requestId, kind, name, argumentsHash, prompt, expiresAt };
  host.append(
    { type: "request.opened", turnId, step, callId, ...opened, ...(asked ? { asked: true as const } : {}) },
    {
      requests: [
        {
          tenant,
          requestId,
          agentId,
          agentName: definition.name,
          ...(ownerId === null ? {} : { ownerId }),
          rootAgentId,
          turnId,
          step,
          callId,
          kind,
          name,
          arguments: args,
          argumentsHash,
          prompt,
          actorId: host.turn(turnId)?.actorId ?? null,
          openedAt,
          expiresAt,
          status: "open",
          decision: null,
          decidedAt: null,
          ...(asked ? { isAsked: true } : {}),
        },
      ],
    },
  );
  faultPoint("request.opened");
}
