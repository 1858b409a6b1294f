import type { ArtifactView, FeedMessageItem } from "../feed/wire.ts";
import { say } from "./page-state.ts";
import { oneLine } from "./untrusted.tsx";

type Part = Exclude<FeedMessageItem["message"]["content"], string>[number];
export type FilePart = Extract<Part, { type: "file" }>;

/** Reads an artifact of the agent whose messages are shown. */
export type ReadArtifact = (artifactId: string) => Promise<ArtifactView>;

interface FileProps {
  readonly part: FilePart;
  readonly readArtifact?: ReadArtifact | undefined;
}

/** A file by its name and type, with a button that saves it. Its content is never shown or opened by the page. */
export function MessageFile({ part, readArtifact }: FileProps) {
  const { name, mediaType, url, artifactId } = part;
  const isEmbedded = url?.startsWith("data:") === true;
  const canSave = isEmbedded || (artifactId !== undefined && readArtifact !== undefined);
  return (
    <p class="message-file">
      file {name !== undefined && <b>{oneLine(name, 120)}</b>} <code>{oneLine(mediaType, 80)}</code>
      {artifactId !== undefined && <code class="quiet"> {oneLine(artifactId, 80)}</code>}
      {url !== undefined && !isEmbedded && (
        <span class="quiet">
          {" "}
          at <code>{oneLine(url, 400)}</code>, not loaded
        </span>
      )}
      {canSave && (
        <button type="button" class="link" onClick={() => void save(part, readArtifact)}>
          Save
        </button>
      )}
    </p>
  );
}

async function save({ name, url, artifactId }: FilePart, readArtifact: ReadArtifact | undefined): Promise<void> {
  try {
    if (url?.startsWith("data:")) return saveBytes(name ?? "file", bytesOf(url.slice(url.indexOf(",") + 1)));
    const artifact = await readArtifact?.(artifactId ?? "");
    if (artifact === undefined) return;
    if (artifact.isCut) return say("The file is too large for the page");
    const { content, encoding } = artifact;
    saveBytes(name ?? artifact.name, encoding === "base64" ? bytesOf(content) : new TextEncoder().encode(content));
  } catch (error) {
    say(error instanceof Error ? error.message : "The file could not be read");
  }
}

/** The type is not the file's own, so that no browser opens it in the origin of the page. */
function saveBytes(name: string, bytes: Uint8Array<ArrayBuffer>): void {
  const address = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name.replaceAll(/[^\p{L}\p{N}._ -]/gu, "_").slice(0, 120);
  link.click();
  URL.revokeObjectURL(address);
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
