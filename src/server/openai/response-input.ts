import { z } from "zod";
import type { Content, ContentPart } from "../../state/index.ts";
import type { StartTurnOptions } from "../core/plain-message.ts";
import { MOST_ANSWERS } from "../core/limits.ts";
import { fileOf, unsupported } from "./chat-request.ts";
import { badRequest } from "./protocol-errors.ts";
import { requestOfItem } from "./response-ids.ts";

/** Ignored parameters: the agent's definition sets them, or they have no effect. */
const ignored = {
  include: z.unknown().optional(),
  max_output_tokens: z.unknown().optional(),
  metadata: z.unknown().optional(),
  parallel_tool_calls: z.unknown().optional(),
  prompt_cache_key: z.unknown().optional(),
  prompt_cache_options: z.unknown().optional(),
  prompt_cache_retention: z.unknown().optional(),
  reasoning: z.unknown().optional(),
  safety_identifier: z.unknown().optional(),
  service_tier: z.unknown().optional(),
  stream_options: z.unknown().optional(),
  temperature: z.unknown().optional(),
  top_logprobs: z.unknown().optional(),
  top_p: z.unknown().optional(),
  truncation: z.unknown().optional(),
  user: z.unknown().optional(),
};

const functionTool = z.object({
  type: z.literal("function"),
  name: z.string(),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.json()).nullish(),
});

/** The body of a request. Parameters that are neither listed nor ignored are refused. */
export const createBodySchema = z
  .strictObject({
    /** Name of a definition. */
    model: z.string().optional(),
    input: z.union([z.string(), z.array(z.looseObject({ type: z.string().optional() }))]),
    previous_response_id: z.string().nullish(),
    conversation: z.union([z.string(), z.object({ id: z.string() })]).nullish(),
    stream: z.boolean().nullish(),
    background: z.boolean().nullish(),
    tools: z.array(z.looseObject({ type: z.string() })).nullish(),
    max_tool_calls: z.int().min(1).nullish(),
    instructions: z.string().nullish(),
    store: z.boolean().nullish(),
    text: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
    tool_choice: z.unknown().optional(),
    ...ignored,
  })
  .meta({ id: "CreateResponse" });
export type CreateBody = z.output<typeof createBodySchema>;

/** A client's answer to a request of the agent. */
export type Answer = { readonly requestId: string; readonly where: string } & (
  | { readonly kind: "approval"; readonly isApproved: boolean; readonly reason: string | undefined }
  | { readonly kind: "output"; readonly output: string }
);

/** A validated request. */
export interface ReadInput {
  /** The application's instructions; `null` without any. */
  readonly instructions: string | null;
  /** Earlier messages, for a new conversation. */
  readonly history: readonly Said[];
  /** The new input; `null` if the request contains only answers. */
  readonly content: Content | null;
  readonly answers: readonly Answer[];
  readonly clientTools: StartTurnOptions["clientTools"];
}

export interface Said {
  readonly role: "user" | "assistant";
  readonly content: Content;
}

/** Throws `ServerError` naming the invalid parameter. */
export function readInput(body: CreateBody): ReadInput {
  assertSupported(body);
  const items = typeof body.input === "string" ? [{ role: "user", content: body.input }] : body.input;
  const read = items.map((item, index) => readItem(item, `input[${index}]`));
  // Clients may send the whole conversation: new items follow the agent's last message or call.
  const last = read.findLastIndex((item) => item.type === "theirs");
  const news = read.slice(last + 1);
  const answers = news.flatMap((item) => (item.type === "answer" ? [item.answer] : []));
  const said = news.flatMap((item) => (item.type === "user" ? [item.content] : []));
  if (answers.length > 0 && said.length > 0) {
    const way = "send the message when the response to the answers has ended";
    throw badRequest(`input accepts answers or a new message, not both: ${way}`, { param: "input" });
  }
  if (answers.length + said.length === 0) throw badRequest("input contains no new items", { param: "input" });
  if (answers.length > MOST_ANSWERS) {
    throw badRequest(`input accepts at most ${MOST_ANSWERS} answers; it has ${answers.length}`, { param: "input" });
  }
  const answered = new Set<string>();
  const twice = answers.find(({ requestId }) => answered.size === answered.add(requestId).size);
  if (twice !== undefined)
    throw badRequest(`${twice.where} answers a request that another item also answers`, { param: twice.where });
  const wanted = [body.instructions ?? "", ...read.flatMap((item) => (item.type === "system" ? [item.text] : []))];
  const instructions = wanted.filter((text) => text !== "").join("\n\n");
  return {
    instructions: instructions === "" ? null : instructions,
    history: read.slice(0, last + 1).flatMap((item) => historyOf(item)),
    content: said.length === 0 ? null : joined(said),
    answers,
    clientTools: body.tool_choice === "none" ? undefined : toolsOf(body.tools ?? []),
  };
}

/** Refuses parameters that would otherwise have a different effect. */
function assertSupported({ store, tool_choice: choice }: CreateBody): void {
  if (store === false)
    throw unsupported("store", "responses are always stored, and only you can read them; leave it out");
  if (choice !== undefined && choice !== null && choice !== "auto" && choice !== "none") {
    throw unsupported("tool_choice", 'an agent chooses its tools itself; send "auto" or "none"');
  }
}

type ReadItem =
  | { readonly type: "user"; readonly content: Content }
  | { readonly type: "system"; readonly text: string }
  /** An item from the agent, as the client got it. */
  | { readonly type: "theirs"; readonly text: string }
  | { readonly type: "answer"; readonly answer: Answer };

const partSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("input_text"), text: z.string() }),
  z.object({ type: z.literal("output_text"), text: z.string() }),
  z.object({ type: z.literal("refusal"), refusal: z.string() }),
  z.object({ type: z.literal("input_image"), image_url: z.string() }),
  z.object({
    type: z.literal("input_file"),
    filename: z.string().nullish(),
    file_data: z.string().nullish(),
    file_url: z.string().nullish(),
  }),
]);
const contentSchema = z.union([z.string(), z.array(partSchema)], {
  error:
    "must be a text, or a list of input_text, output_text, input_image with an image_url, and input_file with file_data or file_url",
});
const messageSchema = z.object({
  role: z.enum(["user", "assistant", "system", "developer"]),
  content: contentSchema,
});
const approvalSchema = z.object({
  approval_request_id: z.string(),
  approve: z.boolean(),
  reason: z.string().nullish(),
});
const outputSchema = z.object({ call_id: z.string(), output: contentSchema });

/** Types of the agent's items that clients may send back, besides messages. */
const theirs: ReadonlySet<string> = new Set(
  "function_call mcp_call mcp_approval_request mcp_list_tools reasoning".split(" "),
);

function readItem(item: Readonly<Record<string, unknown>>, where: string): ReadItem {
  const { type = "message" } = item;
  if (type === "message") {
    const { role, content } = checked(messageSchema, item, where);
    const read = itemContent(content, `${where}.content`);
    if (role === "user") return { type: "user", content: read };
    return { type: role === "assistant" ? "theirs" : "system", text: textIn(read, where) };
  }
  if (type === "mcp_approval_response") {
    const { approval_request_id: id, approve, reason } = checked(approvalSchema, item, where);
    const requestId = requestOfItem("mcpr", id);
    const said = { isApproved: approve, reason: reason ?? undefined };
    return { type: "answer", answer: { kind: "approval", requestId, where, ...said } };
  }
  if (type === "function_call_output") {
    const { call_id: id, output } = checked(outputSchema, item, where);
    const answer = { kind: "output", requestId: requestOfItem("call", id), where } as const;
    return {
      type: "answer",
      answer: { ...answer, output: textIn(itemContent(output, `${where}.output`), `${where}.output`) },
    };
  }
  if (typeof type === "string" && theirs.has(type)) return { type: "theirs", text: "" };
  const taken = "message, function_call_output, mcp_approval_response";
  throw badRequest(`${where}: unsupported item type; supported are: ${taken}`, { param: `${where}.type` });
}

function checked<T>(schema: z.ZodType<T>, value: unknown, where: string): T {
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  const [issue] = error.issues;
  const place = (issue?.path ?? []).map((step) => (typeof step === "number" ? `[${step}]` : `.${String(step)}`));
  const param = where + place.join("");
  throw badRequest(`${param}: ${issue?.message ?? "does not fit"}`, { param });
}

function itemContent(content: z.output<typeof contentSchema>, where: string): Content {
  if (typeof content === "string") return content;
  return content.map((part, index): ContentPart => {
    if (part.type === "input_file") {
      const url = part.file_data ?? part.file_url ?? undefined;
      return fileOf({ url, name: part.filename ?? undefined }, `${where}[${index}]`);
    }
    if (part.type === "input_image") return { type: "image", url: part.image_url };
    return { type: "text", text: part.type === "refusal" ? part.refusal : part.text };
  });
}

function textIn(content: Content, where: string): string {
  if (typeof content === "string") return content;
  return content
    .map((part) => {
      if (part.type === "text") return part.text;
      throw badRequest(`${where}: only text is accepted`, { param: where });
    })
    .join("");
}

/** Joins consecutive messages. */
function joined(said: readonly Content[]): Content {
  const [first = ""] = said;
  if (said.length === 1) return first;
  return said.flatMap((content): readonly ContentPart[] =>
    typeof content === "string" ? [{ type: "text", text: content }] : content,
  );
}

/** Leaves out calls and results; the agent's messages already reflect them. */
function historyOf(item: ReadItem): readonly Said[] {
  if (item.type === "user") return [{ role: "user", content: item.content }];
  return item.type === "theirs" && item.text !== "" ? [{ role: "assistant", content: item.text }] : [];
}

function toolsOf(tools: readonly unknown[]): StartTurnOptions["clientTools"] {
  if (tools.length === 0) return undefined;
  return tools.map((tool, index) => {
    const where = `tools[${index}]`;
    const { type } = tool as { readonly type: string };
    if (type !== "function") {
      const why = "the agent has its own tools; a client may only send functions";
      throw badRequest(`${where}: unsupported tool type: ${why}`, { param: `${where}.type` });
    }
    const { name, description, parameters } = checked(functionTool, tool, where);
    return {
      name,
      description: description || `The function ${name} of the client.`,
      parameters: parameters ?? { type: "object", properties: {} },
    };
  });
}
