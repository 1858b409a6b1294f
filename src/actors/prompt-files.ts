import { dataOf, type FilePart, isTextType, type Message, type ModelRequest, sizeOfBase64 } from "../state/index.ts";
import type { Host } from "./host.ts";

/*
 * Files in messages are artifacts of the agent, so that journals and windows of history stay small. Before a call the content of those
 * that a model may see is added to the request; the prompt's hash covers their ids only.
 */

/** Largest file that is added to a prompt, and largest total of one message, in bytes. */
const LARGEST_FILE = 10_000_000;
const LARGEST_OF_MESSAGE = 20_000_000;
/** Largest total of one prompt, in bytes; no provider takes more in a request. */
const LARGEST_OF_PROMPT = 50_000_000;
/** Longest text file that is added to a prompt, in characters; `read_artifact` shows longer ones. */
const LONGEST_TEXT_FILE = 100_000;

/**
 * One copy per message, because token counts and texts of messages are cached by object. Held weakly, so that an agent between calls
 * keeps no contents in memory.
 */
const copies = new WeakMap<Message, WeakRef<Message>>();
/** Bytes of the files in each copy. */
const sizes = new WeakMap<Message, number>();

/**
 * The request with the content of its artifacts; the same object if it has none. Missing and large ones stay without content, and those of
 * the oldest messages if the prompt would be too large.
 */
export async function withArtifacts(host: Host, request: ModelRequest): Promise<ModelRequest> {
  if (!request.messages.some(hasArtifact)) return request;
  const messages = [...request.messages];
  let room = LARGEST_OF_PROMPT;
  for (const [index, message] of [...messages.entries()].toReversed()) {
    if (!hasArtifact(message)) continue;
    const copy = copies.get(message)?.deref() ?? (await loaded(host, message));
    room -= sizes.get(copy) ?? 0;
    if (room < 0) break;
    messages[index] = copy;
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
  // An artifact of this round may still wait for its commit.
  await host.committed();
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
  sizes.set(copy, LARGEST_OF_MESSAGE - room);
  copies.set(message, new WeakRef(copy));
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
