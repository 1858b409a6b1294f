import { z } from "zod";
import { anyRule, type Door, optionsOf } from "../base/index.ts";
import { type ClientTool, waitingTool } from "./client-tool.ts";

export interface AskUserOptions {
  /** Default `ask_user`. */
  readonly name?: string | undefined;
  /** For the model: when to ask. Default: when only the user knows or may decide. */
  readonly description?: string | undefined;
  /** Whole milliseconds until a question that nobody answered expires. Default: never. */
  readonly expiresAfterMs?: number | undefined;
}

const questionSchema = z.object({
  question: z.string().regex(/\S/, "must not be empty").describe("What the user is asked, in plain words."),
  options: z.array(z.string().min(1)).optional().describe("Answers to choose from, where there are such."),
});

/** A question as the model asked it: the arguments of `askUser()`. */
export type UserQuestion = z.output<typeof questionSchema>;

const defaultDescription =
  "Asks the user a question and waits for the answer. Use it when you need something that only the user knows or may decide.";

/**
 * A tool by which the model asks the user: the turn waits with a request of kind `question`. Throws `InvalidInputError`
 * for a name, a description or an expiry that is wrong.
 */
export function askUser(options?: AskUserOptions): ClientTool {
  const checked = optionsOf<AskUserOptions>(options, "askUser()", askUserDoor);
  const { name = "ask_user", description = defaultDescription, expiresAfterMs } = checked;
  return waitingTool("question", {
    name,
    description,
    parameters: questionSchema,
    describeCall: inWords,
    expiresAfterMs,
  });
}

const askUserDoor: Door<AskUserOptions> = {
  rules: { name: anyRule, description: anyRule, expiresAfterMs: anyRule },
  instead: { timeoutMs: "expiresAfterMs", timeout: "expiresAfterMs" },
};

function inWords({ question, options = [] }: UserQuestion): string {
  return [question, ...options.map((option) => `- ${option}`)].join("\n");
}
