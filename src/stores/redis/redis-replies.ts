import { CorruptRecordError } from "../../errors/index.ts";

/** An array of texts as Redis gave it; none of ours holds anything else where this is asked. */
export function textsOf(answer: unknown): string[] {
  if (!Array.isArray(answer)) throw new CorruptRecordError("Redis gave no list where there should be one");
  return answer.map((one: unknown) => (typeof one === "string" || typeof one === "number" ? String(one) : ""));
}
