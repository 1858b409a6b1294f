import { copyOfJson } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { RunContext } from "./run-context.ts";
import type { Tool } from "./tool.ts";

/** As an author declares it: always, never, or by a function of the checked arguments. */
export interface ApprovalDefinition {
  readonly name: string;
  readonly needsApproval?: boolean | ((args: never, run: RunContext) => boolean | Promise<boolean>) | undefined;
}

/** An answer that is neither true nor false fails the call: a slip of the author must not let it run unseen. */
export function approvalRule(definition: ApprovalDefinition): Tool["needsApproval"] {
  const { name, needsApproval = false } = definition;
  if (typeof needsApproval === "boolean") return needsApproval;
  return async (args, run) => {
    const answer: unknown = await needsApproval.call(definition, copyOfJson(args) as never, run);
    if (typeof answer === "boolean") return answer;
    throw new InvalidInputError(
      `Tool "${name}": needsApproval gave ${answer === null ? "null" : typeof answer}, not true or false.`,
      { details: { tool: name } },
    );
  };
}
