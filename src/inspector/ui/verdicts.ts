import type { RequestRow } from "./feed-client.ts";

export type Verdict = NonNullable<RequestRow["decision"]>["verdict"];

/** The outcomes of a request in words. */
export const verdictWords: Readonly<Record<Verdict, string>> = {
  approved: "approved",
  edited: "approved with other arguments",
  rejected: "rejected",
  answered: "answered",
  provided: "provided",
  expired: "expired",
};
