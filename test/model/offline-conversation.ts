import type { JsonObject, Message, ModelTool } from "../../src/state/index.ts";

/** Messages of a conversation, oldest first. */
export function conversation(
  ...turns: readonly (readonly [role: "system" | "user" | "assistant", text: string])[]
): Message[] {
  return turns.map(([role, content], index) => ({
    id: `m${index}`,
    createdAt: index,
    role,
    content,
    origin: role === "assistant" ? "model" : role,
  }));
}

/** A tool as a model sees it; all parameters are required by default. */
export function tool(
  name: string,
  description: string,
  properties: Record<string, JsonObject>,
  required = Object.keys(properties),
): ModelTool {
  return { name, description, parameters: { type: "object", properties, required } };
}

export const weather = tool(
  "get_weather",
  "Tells the weather in a city.",
  { city: { type: "string" }, unit: { type: "string", enum: ["celsius", "fahrenheit"] } },
  ["city"],
);
