import type { ElicitRequestFormParams, InputResponseView } from "@modelcontextprotocol/server";
import { visible, visibleJson } from "../../base/index.ts";
import type { Decide } from "../../runtime/index.ts";
import type { AgentRequest, Json } from "../../state/index.ts";

/** An open request that a client was asked about. */
export interface AskedRequest {
  readonly id: string;
  /** Hash of the arguments that the client was shown. */
  readonly hash: string;
  readonly kind: AgentRequest["kind"];
}

/** A decision without its author, who is the caller. */
export type WantedDecision = Omit<Decide, "by" | "key">;

/** What a client's response to a request means. `undone`: the person left the form, or filled it in wrongly. */
export type ReadResponse = { readonly decision: WantedDecision } | { readonly undone: "missing" | "cancelled" };

/** Maximum number of characters of the arguments in a form. */
const MOST_SHOWN = 4_000;

/** The form for a person who decides a request. */
export function formOf(request: AgentRequest): ElicitRequestFormParams {
  return { mode: "form", message: messageOf(request), requestedSchema: forms[request.kind].schema(request.arguments) };
}

function messageOf({ kind, prompt, name, agentName, arguments: args }: AgentRequest): string {
  const asked = visible(prompt);
  if (kind === "question") return asked;
  const shown = visibleJson(JSON.stringify(args));
  const cut =
    shown.length > MOST_SHOWN ? `${shown.slice(0, MOST_SHOWN)}… (${shown.length} characters in total)` : shown;
  return `${asked}\nAgent: ${agentName}. Tool: ${name}. Arguments: ${cut}`;
}

interface Form {
  schema(args: Json): ElicitRequestFormParams["requestedSchema"];
  /** Reads the content of an accepted form. */
  read(content: Readonly<Record<string, unknown>>, argumentsHash: string): ReadResponse;
}

const approvalForm: Form = {
  schema: () => ({
    type: "object",
    properties: {
      decision: { type: "string", title: "Decision", enum: ["approve", "reject"] },
      reason: { type: "string", title: "Reason", description: "The agent reads it." },
    },
    required: ["decision"],
  }),
  read: ({ decision, reason }, argumentsHash) => {
    const said = typeof reason === "string" && reason.trim() !== "" ? { reason } : {};
    if (decision === "approve") return { decision: { verdict: "approved", argumentsHash, ...said } };
    return decision === "reject" ? { decision: { verdict: "rejected", ...said } } : { undone: "missing" };
  },
};

/** The form of each kind of request. */
const forms: Readonly<Record<AgentRequest["kind"], Form>> = {
  approval: approvalForm,
  budget: approvalForm,
  question: {
    schema: (args) => {
      const options = optionsOfQuestion(args);
      const description = options.length === 0 ? {} : { description: visible(`Suggested: ${options.join(", ")}`) };
      return {
        type: "object",
        properties: { answer: { type: "string", title: "Answer", minLength: 1, ...description } },
        required: ["answer"],
      };
    },
    read: ({ answer }) => answered(answer),
  },
  client: {
    schema: () => ({
      type: "object",
      properties: { result: { type: "string", title: "Result of the tool", minLength: 1 } },
      required: ["result"],
    }),
    read: ({ result }) => answered(result),
  },
  auth: {
    schema: () => ({
      type: "object",
      properties: { ready: { type: "boolean", title: "The credentials are available" } },
      required: ["ready"],
    }),
    read: ({ ready }) => {
      if (ready === true) return { decision: { verdict: "provided" } };
      return { undone: ready === false ? "cancelled" : "missing" };
    },
  },
};

/** The answers that a question suggests; a person may write another one. */
function optionsOfQuestion(args: Json): readonly string[] {
  const options = typeof args === "object" && args !== null && "options" in args ? args["options"] : undefined;
  return Array.isArray(options) ? options.filter((option): option is string => typeof option === "string") : [];
}

/** Reads a client's response. The content is untrusted: anything but a clear answer decides nothing. */
export function readResponse({ kind, hash }: AskedRequest, response: InputResponseView): ReadResponse {
  if (response.kind !== "elicit") return { undone: "missing" };
  if (response.action === "cancel") return { undone: "cancelled" };
  if (response.action === "decline") return { decision: { verdict: "rejected", reason: "declined by the user" } };
  return forms[kind].read(response.content ?? {}, hash);
}

function answered(text: unknown): ReadResponse {
  return typeof text === "string" && text !== ""
    ? { decision: { verdict: "answered", result: text } }
    : { undone: "missing" };
}

/** Whether a decided request has the result that this decision would have. */
export function isAlike({ decision }: AgentRequest, wanted: WantedDecision): boolean {
  if (decision?.verdict !== wanted.verdict) return false;
  return wanted.verdict !== "answered" || decision.result?.text === wanted.result;
}

/** The outcome of a request that another client decided, or that ended without a decision, as a sentence. */
export function outcomeOf({ kind, name, decision, status }: AgentRequest): string {
  const what = kind === "question" ? "The question" : `The request for "${name}"`;
  if (decision === null) return status === "open" ? `${what} is still open.` : `${what} ended without a decision.`;
  if (decision.verdict === "expired") return `${what} had expired.`;
  const reason = decision.reason === null ? "" : `: ${decision.reason}`;
  return `${what} had already been decided (${decision.verdict}${reason}); your answer was not used.`;
}
