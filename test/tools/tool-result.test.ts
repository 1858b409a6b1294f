import { describe, expect, test } from "vitest";
import { renderOutput, toolResult, type ToolResultPart } from "../../src/tools/index.ts";

const data = Buffer.alloc(3_000, 7).toString("base64");
const url = `data:image/png;base64,${data}`;
const image = { type: "image", url };
const png = Buffer.from(`\x89PNG\r\n\x1A\n${"\0".repeat(3_000)}`, "latin1").toString("base64");

describe("results in parts", () => {
  test.each<[string, unknown]>([
    [
      "toolResult",
      toolResult({
        content: [
          { type: "text", text: "The page:" },
          { type: "image", url },
        ],
      }),
    ],
    [
      "bytes",
      toolResult({
        content: [
          { type: "text", text: "The page:" },
          { type: "image", data: Buffer.from(data, "base64"), mimeType: "image/png" },
        ],
      }),
    ],
    [
      "an MCP server",
      {
        content: [
          { type: "text", text: "The page:" },
          { type: "image", data, mimeType: "image/png" },
        ],
        isError: false,
      },
    ],
    [
      "resources of an MCP server",
      {
        content: [
          { type: "resource", resource: { uri: "a", text: "The page:" } },
          { type: "resource", resource: { uri: "b", blob: data, mimeType: "image/png" } },
        ],
      },
    ],
    ["our own parts", [{ type: "text", text: "The page:" }, image]],
    [
      "Chat Completions",
      [
        { type: "text", text: "The page:" },
        { type: "image_url", image_url: { url } },
      ],
    ],
    [
      "Responses",
      [
        { type: "text", text: "The page:" },
        { type: "input_image", image_url: url },
      ],
    ],
    [
      "Anthropic",
      [
        { type: "text", text: "The page:" },
        { type: "image", source: { type: "base64", media_type: "image/png", data } },
      ],
    ],
    [
      "the AI SDK",
      [
        { type: "text", text: "The page:" },
        { type: "image", data, mediaType: "image/png" },
      ],
    ],
    [
      "a tool of the AI SDK",
      {
        type: "content",
        value: [
          { type: "text", text: "The page:" },
          { type: "media", data, mediaType: "image/png" },
        ],
      },
    ],
    [
      "LangChain",
      [
        { type: "text", text: "The page:" },
        { type: "image", source_type: "base64", data, mime_type: "image/png" },
      ],
    ],
    [
      "an image by its member `image`",
      [
        { type: "output_text", text: "The page:" },
        { type: "image", image: data, mediaType: "image/png" },
      ],
    ],
  ])("of %s are a text and an image", (_name, value) => {
    expect(renderOutput(value)).toEqual({ text: "The page:\n[image 1]", images: [image] });
  });

  test("an image alone, and a URL alone", () => {
    for (const value of [url, image, [image], { type: "image", data, mimeType: "image/png" }]) {
      expect(renderOutput(value)).toEqual({ text: "[image 1]", images: [image] });
    }
  });

  test("base64 of one form goes to the model, however a tool writes it", () => {
    const wrapped = `data:image/JPG;base64,${data.slice(0, 76)}\n${data.slice(76)}`;
    const sent = { type: "image", url: `data:image/jpeg;base64,${data}` };
    expect(renderOutput(toolResult({ content: [{ type: "image", url: wrapped }] })).images).toEqual([sent]);
    expect(renderOutput({ type: "image", data: wrapped, mimeType: "image/jpg" }).images).toEqual([sent]);
  });

  test("an image of 20 MB between the words of a text is left out of it, and one of them alone is refused", () => {
    const large = `${url}${"A".repeat(20_000_000)}`;
    expect(renderOutput(`Look: ${large} there, and ${large}`)).toMatchObject({
      text: `Look: [image of ${large.length} characters left out] there, and [image of ${large.length} characters left out]`,
    });
    for (const alone of [large, "iVBORw0KGg".padEnd(20_000_000, "A")]) {
      expect(renderOutput(alone).text).toContain("image");
      expect(renderOutput(alone)).toMatchObject({ error: "unreadable" });
    }
  });

  test("images between the words of a text are left out of it", () => {
    const page = `# Map\n\n![map](${url})\n\nTurn left.`;
    const left = `# Map\n\n![map]([image of ${url.length} characters left out])\n\nTurn left.`;
    expect(renderOutput(page)).toEqual({ text: left });
    expect(renderOutput({ page })).toEqual({ text: JSON.stringify({ page: left }) });
    const icon = `<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw="> Home`;
    expect(renderOutput(icon)).toEqual({ text: icon });
  });

  test("an error", () => {
    expect(renderOutput(toolResult({ content: [{ type: "text", text: "No screen." }], isError: true }))).toEqual({
      text: "No screen.",
      error: "told",
    });
    expect(renderOutput({ content: [{ type: "text", text: "No screen." }], isError: true })).toMatchObject({
      error: "told",
    });
  });

  test.each<[string, unknown, RegExp]>([
    ["an image within other JSON", { page: 1, picture: url }, /"picture" is an image; return images with toolResult/],
    ["base64 alone", png, /it is an image as text; return images with toolResult/],
    ["base64 within other JSON", { page: 1, shot: { data: png } }, /"data" is an image; return images with toolResult/],
    [
      "a type that servers do not take",
      [{ type: "image", data, mimeType: "image/svg+xml" }],
      /cannot be sent; use a PNG/,
    ],
    ["an address that is not encrypted", [{ type: "image", url: "http://example.com/a.png" }], /cannot be sent/],
    ["no base64", [{ type: "image", data: "<svg>", mimeType: "image/png" }], /cannot be sent/],
    ["too many", Array.from({ length: 21 }, () => image), /21 images; at most 20/],
    ["too large", [{ type: "image", url: `${url}${"A".repeat(10_000_000)}` }], /at most 10000000 can be sent/],
    ["sounds", { content: [{ type: "audio", data, mimeType: "audio/wav" }] }, /part of type "audio"/],
  ])("%s is an error result", (_what, value, message) => {
    const { text, error } = renderOutput(value);
    expect([error, text]).toEqual(["unreadable", expect.stringMatching(message)]);
    expect(text.length).toBeLessThan(1_000);
  });

  test("data that only looks like parts stays JSON", () => {
    for (const value of [
      [{ type: "text", text: "a" }],
      { type: "text", id: 1 },
      { content: [1] },
      [],
      [{ type: "image" }],
      { type: "text", text: "a", author: "b" },
      [{ type: "image", url: "/assets/a.png", alt: "a cat" }],
      { type: "resource", name: "db-1" },
      { type: "audio", title: "a song", url: "https://example.com/a.mp3" },
      { type: "file", url: "https://example.com/a.pdf" },
      { type: "input_image", name: "upload" },
    ]) {
      expect(renderOutput(value)).toEqual({ text: JSON.stringify(value) });
    }
  });

  test("secrets are removed from the text", () => {
    const result = toolResult({
      content: [
        { type: "text", text: "key 1234" },
        { type: "image", url },
      ],
    });
    expect(renderOutput(result, (text) => text.replaceAll("1234", "***")).text).toBe("key ***\n[image 1]");
  });
});

test.each<[string, unknown, RegExp]>([
  ["no list", "a", /takes \{ content: \[parts\], isError \}/],
  ["a part of no type", [{ text: "a" }], /content\[0\] is .*use \{ type: "text"/],
  ["a wrong image", [{ type: "image", url: "ftp://a" }], /cannot be sent/],
])("toolResult refuses %s", (_what, content, message) => {
  expect(() => toolResult({ content: content as ToolResultPart[] })).toThrow(message);
});
