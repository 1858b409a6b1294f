import type { ToolCallRequest } from "./message.ts";

/** A call as its tool gets it: of a call through another tool, such as `call_tool`, the tool that it means and the inner arguments. */
export function meantCall<Request extends Pick<ToolCallRequest, "name" | "arguments" | "tool">>(
  request: Request,
): Request {
  const { tool, arguments: text } = request;
  return tool === undefined ? request : { ...request, name: tool, arguments: innerArguments(text) };
}

/** The inner arguments of a call `{ name, arguments }`, as text; models write them as an object or as JSON text. */
export function innerArguments(text: string): string {
  const outer = outerCall(text);
  const inner = outer?.["arguments"];
  if (typeof inner === "string") return inner;
  return inner === undefined || inner === null ? "{}" : JSON.stringify(inner);
}

/** The name in a call `{ name, arguments }`; `undefined` if it cannot be read. */
export function innerName(text: string): string | undefined {
  const name = outerCall(text)?.["name"];
  return typeof name === "string" ? name : undefined;
}

function outerCall(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
