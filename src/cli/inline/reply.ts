import { z } from "zod";
import type { Decide } from "../../runtime/index.ts";
import { type AgentRequest, type Json, jsonSchema } from "../../state/index.ts";

/** A parsed reply. `unclear` contains a hint on what to type. */
export type Reply =
  | { readonly type: "decide"; readonly decide: Decide }
  | { readonly type: "later" }
  /** The arguments follow. */
  | { readonly type: "edit" }
  | { readonly type: "unclear"; readonly hint: string };

/** The prompt for a request. */
export function replyPrompt({ kind, isAsked }: Pick<AgentRequest, "kind" | "isAsked">): string {
  switch (kind) {
    case "budget":
      return 'Continue with more? [y]es, [n]o <why>, [e]dit {"add": <amount>}, [l]ater: ';
    case "approval":
      return "Approve? [y]es, [n]o <why>, [e]dit <json>, [l]ater: ";
    case "question":
      return "Your answer (or /reject <why>; an empty line leaves it for later): ";
    case "client":
      return "Its result, as text or JSON (or /reject <why>; an empty line leaves it for later): ";
    case "auth":
      // The person does what the prompt asks for elsewhere, for instance a login.
      if (isAsked === true) return "Done? [y]es, [n]o <why>, [l]ater: ";
      return "Only the program can provide credentials. [n]o <why>, [l]ater: ";
    default:
      return kind satisfies never;
  }
}

/** Parses a typed line as a reply. An empty line never approves anything. */
export function replyOf(request: Pick<AgentRequest, "kind" | "arguments" | "isAsked">, line: string): Reply {
  const text = line.trim();
  const { kind } = request;
  if (kind === "question" || kind === "client") return answerOf(request, text);
  const [, word = "", rest = ""] = /^(\S+)\s*([\s\S]*)$/.exec(text) ?? [];
  const isApproval = kind === "approval" || kind === "budget";
  const isForDone = kind === "auth" && request.isAsked === true;
  switch (word.toLowerCase()) {
    case "n":
    case "no":
      return rejected(rest);
    case "l":
    case "later":
      return { type: "later" };
    case "y":
    case "yes":
      if (isApproval && rest === "") return { type: "decide", decide: { verdict: "approved" } };
      if (isForDone && rest === "") return { type: "decide", decide: { verdict: "provided" } };
      break;
    case "e":
    case "edit":
      if (isApproval) return rest === "" ? { type: "edit" } : editOf(rest);
      break;
    default:
  }
  return { type: "unclear", hint: isApproval ? "Type y, n, e or l." : isForDone ? "Type y, n or l." : "Type n or l." };
}

/** Parses arguments that replace the model's. */
export function editOf(text: string): Reply {
  const value = jsonOf(text);
  if (value !== undefined) return { type: "decide", decide: { verdict: "edited", arguments: value } };
  return { type: "unclear", hint: 'The arguments must be JSON, for instance {"amount":5}.' };
}

function answerOf(request: Pick<AgentRequest, "kind" | "arguments">, text: string): Reply {
  if (text === "" || text === "/later") return { type: "later" };
  const [, why] = /^\/reject\b\s*([\s\S]*)$/.exec(text) ?? [];
  if (why !== undefined) return rejected(why);
  return { type: "decide", decide: { verdict: "answered", result: resultOf(request, text) } };
}

function rejected(reason: string): Reply {
  return { type: "decide", decide: { verdict: "rejected", ...(reason === "" ? {} : { reason }) } };
}

/**
 * The result of an answer: JSON for a client tool, the option with the typed number for a question, otherwise the text.
 */
export function resultOf({ kind, arguments: args }: Pick<AgentRequest, "kind" | "arguments">, text: string): Json {
  if (kind !== "client") return optionOf(args, text) ?? text;
  const value = jsonOf(text);
  return value === undefined ? text : value;
}

const withOptionsSchema = z.object({ options: z.array(z.string()) });

/** The option with a typed number: `2` is the second, unless an option is itself called `2`. */
function optionOf(args: Json, text: string): string | undefined {
  const { data } = withOptionsSchema.safeParse(args);
  if (data === undefined || !/^[1-9]\d{0,2}$/.test(text) || data.options.includes(text)) return undefined;
  return data.options[Number(text) - 1];
}

/** `undefined` for text that is not JSON. */
function jsonOf(text: string): Json | undefined {
  try {
    const parsed = jsonSchema.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}
