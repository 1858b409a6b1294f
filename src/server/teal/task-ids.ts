import { createHash, randomUUID } from "node:crypto";
import { agentOfTurn, numberOfTurn, turnIdOf } from "../../state/index.ts";

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The digits of a UUID that hold the number of a turn; in the id of a task they are 0. */
const TURN_DIGITS = 8;
const NO_TURN = "0".repeat(TURN_DIGITS);

export function isUuid(text: string): boolean {
  return uuid.test(text);
}

/**
 * The id of a new task, which is also its agent's: a UUID whose last 32 bits are 0. The id of a request is the same UUID
 * with the number of its turn there, so one gives the other without a table.
 */
export function newTaskId(): string {
  return randomUUID().slice(0, -TURN_DIGITS) + NO_TURN;
}

/** The id of the task that a request with an idempotency key creates: the same for the same parts. */
export function taskIdOfKey(parts: readonly unknown[]): string {
  const hex = createHash("sha256").update(JSON.stringify(parts)).digest("hex");
  const variant = "89ab"[Number.parseInt(hex.charAt(16), 16) % 4];
  const groups = [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `${variant}${hex.slice(17, 20)}`];
  return `${groups.join("-")}-${hex.slice(20, 24)}${NO_TURN}`;
}

/** Whether a task can have this id. */
export function isTaskId(text: string): boolean {
  return isUuid(text) && text.endsWith(NO_TURN);
}

export function requestIdOfTurn(turnId: string): string {
  const number = numberOfTurn(turnId).toString(16).padStart(TURN_DIGITS, "0");
  return agentOfTurn(turnId).slice(0, -TURN_DIGITS) + number;
}

/** The turn that a request id means; undefined for a text that is the id of no request. */
export function turnOfRequestId(requestId: string): string | undefined {
  if (!isUuid(requestId)) return undefined;
  const id = requestId.toLowerCase();
  const number = Number.parseInt(id.slice(-TURN_DIGITS), 16);
  return number === 0 ? undefined : turnIdOf(id.slice(0, -TURN_DIGITS) + NO_TURN, number);
}
