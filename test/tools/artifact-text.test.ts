import { expect, test } from "vitest";
import { type ReadArtifactArguments, readArtifactText } from "../../src/tools/index.ts";

const artifact = { artifactId: "a", name: "f", version: 1, size: 4, createdAt: 0, turnId: null, callId: null };
const args: ReadArtifactArguments = { id: "a", from: 0, length: 100 };
const read = (contentType: string, content: string, encoding?: "base64") =>
  readArtifactText(
    { ...artifact, contentType, content, ...(encoding ? { encoding } : {}) },
    args,
    new AbortController().signal,
  );

test.each([
  ["application/pdf", "base64"],
  ["application/x-unknown", "base64"],
  ["application/zip", undefined],
] as const)("an artifact of %s (%s) is told to be binary instead of shown", async (contentType, encoding) => {
  expect(await read(contentType, "JVBERg==", encoding)).toEqual({
    ok: false,
    code: "not_text",
    message: `Artifact a (f, ${contentType}) is binary (4 bytes) and cannot be read as text.`,
  });
});

test("a text is shown", async () => {
  expect(await read("text/csv", "a,b")).toMatchObject({ ok: true, text: expect.stringContaining("a,b") });
});
