import type { Content } from "./message.ts";

/** The text of a message's content, without images and files. Needs neither Node nor zod, because web pages fold entries too. */
export function textOf(content: Content): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}
