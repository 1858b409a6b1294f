import type { ArtifactView, FeedMessageItem } from "../feed/wire.ts";
import { say } from "./page-state.ts";
import { oneLine } from "./untrusted.tsx";

type Part = Exclude<FeedMessageItem["message"]["content"], string>[number];
type FilePart = Extract<Part, { type: "file" }>;

/** Reads an artifact of the agent whose messages are shown. */
export type ReadArtifact = (artifactId: string) => Promise<ArtifactView>;

interface FileProps {
  readonly part: FilePart;
  readonly readArtifact?: ReadArtifact | undefined;
}

/** A file by its name and type, with a button that saves it. Its content is never shown, opened or loaded by the page. */
export function MessageFile({ part, readArtifact }: FileProps) {
  const { name = "", mediaType, url = "", artifactId = "" } = part;
  const isEmbedded = url.startsWith("data:");
  const words = ["file", name, mediaType, artifactId, isEmbedded ? "" : url].filter(Boolean).join(" ");
  return (
    <p class="quiet">
      <code>{oneLine(words, 400)}</code>
      {(isEmbedded || (artifactId !== "" && readArtifact)) && (
        <button type="button" class="link" onClick={() => void save(part, readArtifact)}>
          Save
        </button>
      )}
    </p>
  );
}

async function save({ name = "file", url, artifactId = "" }: FilePart, readArtifact?: ReadArtifact): Promise<void> {
  try {
    const artifact = url === undefined ? await readArtifact?.(artifactId) : undefined;
    if (artifact?.isCut) return say("The file is too large for the page");
    const isText = artifact !== undefined && artifact.encoding === undefined;
    const content = artifact?.content ?? url?.slice(url.indexOf(",") + 1) ?? "";
    const bytes = isText ? content : Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
    // The type is not the file's own, so that no browser opens it in the origin of the page.
    const address = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
    Object.assign(document.createElement("a"), { href: address, download: oneLine(name, 200) }).click();
    URL.revokeObjectURL(address);
  } catch (error) {
    say(String(error));
  }
}
