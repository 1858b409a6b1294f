type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null;

/** Fields that only the result of a tool has, in any format. */
const isResult = (value: Fields): boolean =>
  value["role"] === "tool" ||
  value["type"] === "tool_result" ||
  value["type"] === "function_call_output" ||
  "toolResult" in value ||
  "functionResponse" in value;

/** Where a request has a text: inside a result of a tool, or beside them. */
export function whereIs(text: string, body: unknown): "inside" | "beside them" | "nowhere" {
  if (isInResult(text, body)) return "inside";
  return JSON.stringify(body)?.includes(text) ? "beside them" : "nowhere";
}

function isInResult(text: string, value: unknown): boolean {
  if (!isObject(value)) return false;
  if (isResult(value) && JSON.stringify(value).includes(text)) return true;
  return Object.values(value).some((part) => isInResult(text, part));
}

/** How a request asks for output that fits a schema. */
export function requestedFormat(body: Fields | undefined): string {
  const { response_format: chat, text, generationConfig: google, format, tools } = body ?? {};
  const further = body?.["additionalModelRequestFields"];
  const claude = isObject(further) ? further["output_config"] : body?.["output_config"];
  const named = (value: unknown): unknown => (isObject(value) ? value["type"] : undefined);
  const type = named(chat) ?? named(isObject(text) ? text["format"] : undefined);
  if (type === "json_object" && isObject(chat) && "json_schema" in chat) return "schema";
  if (type === "json_schema" || isObject(format)) return "schema";
  if (isObject(google) && ("responseSchema" in google || "responseJsonSchema" in google)) return "schema";
  if (isObject(claude) && isObject(claude["format"])) return "schema";
  if (tools !== undefined || isObject(body?.["toolConfig"])) return "tool";
  return type === undefined && format === undefined ? "instructions" : "JSON";
}

function add(to: string[], id: unknown): void {
  if (typeof id === "string") to.push(id);
}

/** The ids of the calls in a request, and of the results, in their order. */
export function sentIds(body: unknown): { readonly calls: readonly string[]; readonly results: readonly string[] } {
  const calls: string[] = [];
  const results: string[] = [];
  const walk = (value: unknown): void => {
    if (!isObject(value)) return;
    const { toolUse, toolResult, functionCall, functionResponse, tool_calls: chatCalls } = value;
    if (value["type"] === "tool_use") add(calls, value["id"]);
    if (value["type"] === "tool_result") add(results, value["tool_use_id"]);
    if (value["type"] === "function_call") add(calls, value["call_id"]);
    if (value["type"] === "function_call_output") add(results, value["call_id"]);
    if (value["role"] === "tool") add(results, value["tool_call_id"]);
    if (isObject(toolUse)) add(calls, toolUse["toolUseId"]);
    if (isObject(toolResult)) add(results, toolResult["toolUseId"]);
    if (isObject(functionCall)) add(calls, functionCall["id"]);
    if (isObject(functionResponse)) add(results, functionResponse["id"]);
    if (Array.isArray(chatCalls)) for (const call of chatCalls) if (isObject(call)) add(calls, call["id"]);
    for (const part of Object.values(value)) walk(part);
  };
  walk(body);
  return { calls, results };
}

/** In what form a request has a thought. */
export function thoughtIn(body: unknown, thought: string): "signed" | "signature" | "text" | "–" {
  const text = JSON.stringify(body) ?? "";
  const hasSignature = text.includes(`signature of ${thought}`);
  const hasText = text.replaceAll(`signature of ${thought}`, "").includes(thought);
  if (hasSignature) return hasText ? "signed" : "signature";
  return hasText ? "text" : "–";
}
