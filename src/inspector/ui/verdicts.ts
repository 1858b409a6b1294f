import type { RequestRow } from "./feed-client.ts";

export type Verdict = NonNullable<RequestRow["decision"]>["verdict"];

/** The outcome of a request in words. */
export function verdictWord(kind: RequestRow["kind"], verdict: Verdict): string {
  return kind === "budget" && verdict === "rejected" ? "stopped" : verdictWords[verdict];
}

const verdictWords: Readonly<Record<Verdict, string>> = {
  approved: "approved",
  edited: "approved with other arguments",
  rejected: "rejected",
  answered: "answered",
  provided: "provided",
  expired: "expired",
};
