import { dataOf, type FilePart, isTextType, type Message, type ModelRequest, sizeOfBase64 } from "../state/index.ts";
import type { Host } from "./host.ts";

/*
 * Files in messages are artifacts of the agent, so that journals and windows of history stay small. Before a call the content of those
 * that a model may see is added to the request; the prompt's hash covers their ids only.
 */

/** Largest file that is added to a prompt, and largest total of one message, in bytes. */
const LARGEST_FILE = 10_000_000;
const LARGEST_OF_MESSAGE = 20_000_000;
/** Longest text file that is added to a prompt, in characters; `read_artifact` shows longer ones. */
const LONGEST_TEXT_FILE = 100_000;

/** One copy per message, because token counts and texts of messages are cached by object. */
const copies = new WeakMap<Message, Message>();

/** The request with the content of its artifacts; the same object if it has none. Missing and large ones stay without content. */
export async function withArtifacts(host: Host, request: ModelRequest): Promise<ModelRequest> {
  const isKnown = (message: Message): boolean => !hasArtifact(message) || copies.has(message);
  if (!request.messages.some(hasArtifact)) return request;
  // An artifact of this round may still wait for its commit.
  if (!request.messages.every(isKnown)) await host.committed();
  const messages: Message[] = [];
  for (const message of request.messages) {
    messages.push(hasArtifact(message) ? (copies.get(message) ?? (await loaded(host, message))) : message);
  }
  return { ...request, messages };
}

function hasArtifact({ content }: Message): boolean {
  return typeof content !== "string" && content.some((part) => part.type === "file" && isLoadable(part));
}

/** Other binaries, such as archives, are for tools and people. */
function isLoadable({ artifactId, url, mediaType }: FilePart): boolean {
  if (artifactId === undefined || url !== undefined) return false;
  return mediaType === "application/pdf" || isTextType(mediaType) || /^(?:audio|video|image)\//.test(mediaType);
}

async function loaded(host: Host, message: Message): Promise<Message> {
  const { content } = message;
  if (typeof content === "string") return message;
  const parts: (typeof content)[number][] = [];
  let room = LARGEST_OF_MESSAGE;
  for (const part of content) {
    const isImage = part.type === "file" && part.mediaType.startsWith("image/");
    // Images of a result are parts of their own; those among its files were too many or too large.
    const isShown = part.type === "file" && isLoadable(part) && !(isImage && message.role === "tool");
    const url = isShown ? await urlOf(host, part, Math.min(room, LARGEST_FILE)) : undefined;
    if (part.type !== "file" || url === undefined) parts.push(part);
    else {
      room -= sizeOfBase64(dataOf(url) ?? "");
      parts.push(Object.freeze({ ...part, url }));
    }
  }
  const copy = Object.freeze({ ...message, content: Object.freeze(parts) });
  copies.set(message, copy);
  return copy;
}

async function urlOf(host: Host, part: FilePart, room: number): Promise<string | undefined> {
  const { artifactId = "", mediaType } = part;
  const artifact = await host.artifact(artifactId);
  if (artifact === undefined || artifact.size > room) return undefined;
  if (artifact.encoding === "base64") return `data:${mediaType};base64,${artifact.content}`;
  if (!isTextType(mediaType) || artifact.content.length > LONGEST_TEXT_FILE) return undefined;
  return `data:${mediaType};base64,${Buffer.from(artifact.content).toString("base64")}`;
}
