import { createHash, randomUUID } from "node:crypto";
import { agentOfTurn, numberOfTurn, turnIdOf } from "../../state/index.ts";

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Digits of a UUID that contain the turn's number; 0 in the id of a task. */
const TURN_DIGITS = 8;
const NO_TURN = "0".repeat(TURN_DIGITS);

export function isUuid(text: string): boolean {
  return uuid.test(text);
}

/**
 * The id of a new task and of its agent: a UUID whose last 32 bits are 0. The id of a request is the same UUID with its
 * turn's number in these bits, so no table is needed to convert them.
 */
export function newTaskId(): string {
  return randomUUID().slice(0, -TURN_DIGITS) + NO_TURN;
}

/** The id of the task that a request with an idempotency key creates, derived from the parts. */
export function taskIdOfKey(parts: readonly unknown[]): string {
  const hex = createHash("sha256").update(JSON.stringify(parts)).digest("hex");
  const variant = "89ab"[Number.parseInt(hex.charAt(16), 16) % 4];
  const groups = [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `${variant}${hex.slice(17, 20)}`];
  return `${groups.join("-")}-${hex.slice(20, 24)}${NO_TURN}`;
}

/** Whether the text is a valid task id. */
export function isTaskId(text: string): boolean {
  return isUuid(text) && text.endsWith(NO_TURN);
}

export function requestIdOfTurn(turnId: string): string {
  const number = numberOfTurn(turnId).toString(16).padStart(TURN_DIGITS, "0");
  return agentOfTurn(turnId).slice(0, -TURN_DIGITS) + number;
}

/** The turn of a request id; `undefined` for other text. */
export function turnOfRequestId(requestId: string): string | undefined {
  if (!isUuid(requestId)) return undefined;
  const id = requestId.toLowerCase();
  const number = Number.parseInt(id.slice(-TURN_DIGITS), 16);
  return number === 0 ? undefined : turnIdOf(id.slice(0, -TURN_DIGITS) + NO_TURN, number);
}
