import type { Decide } from "../../runtime/index.ts";
import type { AgentRequest } from "../../state/index.ts";
import { askingLines } from "../view/request-lines.ts";
import type { LineInput } from "./line-input.ts";
import { editOf, type Reply, replyOf, replyPrompt } from "./reply.ts";

/** What a person said: a decision, not now, nothing any more, or that it is not asked any more. */
export type PersonsReply = Decide | "later" | "ended" | "aborted";

/** Shows a request and asks until the reply is one. */
export async function askPerson(
  input: Pick<LineInput, "next">,
  say: (line: string) => void,
  request: AgentRequest,
  signal: AbortSignal,
): Promise<PersonsReply> {
  askingLines(request).forEach(say);
  for (;;) {
    const read = await input.next(replyPrompt(request), { signal });
    if (typeof read !== "object") return read;
    let reply: Reply = replyOf(request, read.line);
    if (reply.type === "edit") {
      const edited = await input.next("Arguments as JSON: ", { signal, prefill: JSON.stringify(request.arguments) });
      if (typeof edited !== "object") return edited;
      reply = editOf(edited.line);
    }
    if (reply.type === "decide") return reply.decide;
    if (reply.type === "later") return "later";
    if (reply.type === "unclear") say(reply.hint);
  }
}
