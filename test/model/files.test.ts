import { describe, expect, it } from "vitest";
import type { ContentPart, LanguageModel, Message, ModelRequest } from "../../src/index.ts";
import { aiSdkModel } from "../../src/model/ai-sdk.ts";
import { takesInResultOf } from "../../src/model/ai-sdk/provider-prompt.ts";
import { countPromptTokens, openaiModel, promptByteBound } from "../../src/model/index.ts";
import { completion, wireAnswer, type WireServer, wireServer } from "../support/wire-server.ts";
import { deflateSync } from "node:zlib";

const pdf = Buffer.from("%PDF-1.4 1 0 obj << /Type /Pages /Count 3 >> endobj 2 0 obj << /Type /Page >> endobj");
const base64 = (bytes: Buffer | string): string => Buffer.from(bytes).toString("base64");
const fileOf = (mediaType: string, bytes: Buffer | string, name?: string) =>
  ({
    type: "file",
    mediaType,
    url: `data:${mediaType};base64,${base64(bytes)}`,
    ...(name === undefined ? {} : { name }),
  }) as const;
const report = fileOf("application/pdf", pdf, "report.pdf");
const zip = { ...fileOf("application/zip", "zip", "a.zip"), artifactId: "artifact_1" };

const userOf = (content: Message["content"]): Message => ({
  id: "u",
  role: "user",
  createdAt: 0,
  origin: "user",
  content,
});
const call = { callId: "t:1:0", providerId: "call_1", name: "report", arguments: "{}" };
const toolOf = (content: Message["content"], isError = false): readonly Message[] => [
  userOf("go"),
  { id: "a", role: "assistant", createdAt: 0, origin: "model", content: "", toolCalls: [call] },
  {
    id: "r",
    role: "tool",
    createdAt: 0,
    origin: "tool",
    callId: call.callId,
    providerId: call.providerId,
    content,
    ...(isError ? { isError } : {}),
  },
];
const answered: Message = { id: "a", role: "assistant", createdAt: 0, origin: "model", content: "Seen." };
const ask = (model: LanguageModel, request: ModelRequest) =>
  model.generate(request, { signal: new AbortController().signal });

const chatModel = ({ host }: WireServer): LanguageModel =>
  openaiModel("m", { baseURL: `http://${host}/v1`, apiKey: "none" });
const sentTo = (server: WireServer, index = 0) =>
  (JSON.parse(server.requests[index]?.body ?? "{}") as { messages: readonly { role: string; content: unknown }[] })
    .messages;

describe("Chat Completions", () => {
  it("carries PDF, WAV and MP3; text is sent as text, and other files are named", async () => {
    const server = await wireServer((socket) => socket.write(wireAnswer(completion("ok"))));
    const parts: readonly ContentPart[] = [
      { type: "text", text: "Look:" },
      report,
      fileOf("audio/x-wav", "wav"),
      fileOf("audio/mpeg", "mp3"),
      fileOf("text/csv", "a,b", "t.csv"),
      zip,
      { type: "file", mediaType: "application/pdf", url: "https://example.com/a.pdf" },
      { type: "file", mediaType: "image/png", url: "data:image/png;base64,AAAA" },
    ];
    await ask(chatModel(server), { messages: [userOf(parts)] });
    expect(sentTo(server)[0]?.content).toEqual([
      { type: "text", text: "Look:" },
      { type: "file", file: { filename: "report.pdf", file_data: report.url } },
      { type: "input_audio", input_audio: { data: base64("wav"), format: "wav" } },
      { type: "input_audio", input_audio: { data: base64("mp3"), format: "mp3" } },
      { type: "text", text: "\n[file t.csv, text/csv, 3 bytes]\na,b\n" },
      { type: "text", text: "\n[file a.zip, application/zip, 3 bytes: artifact artifact_1, not shown]\n" },
      { type: "text", text: "\n[file application/pdf: https://example.com/a.pdf, not shown]\n" },
      { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
    ]);
  });

  it("sends files of results in a message behind the round, and says which ones are not shown", async () => {
    const server = await wireServer((socket) => socket.write(wireAnswer(completion("ok"))));
    const mark = "[file a.zip, application/zip, 3 bytes: artifact artifact_1]";
    const content = [{ type: "text", text: `Two:\n${mark}` } as const, report, zip];
    await ask(chatModel(server), { messages: toolOf(content) });
    const sent = sentTo(server);
    expect(sent.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
    expect(sent[2]?.content).toBe("Two:\n[file a.zip, application/zip, 3 bytes: artifact artifact_1, not shown]");
    expect(sent[4]?.content).toEqual([
      { type: "text", text: expect.stringMatching(/^Files from the result of tool call /) },
      { type: "file", file: { filename: "report.pdf", file_data: report.url } },
    ]);
  });

  it.each([
    [400, "Invalid file data: the PDF could not be parsed"],
    [400, "Unknown part type: file"],
    [422, "messages[1].content: unsupported content type"],
    [500, "input file is not supported - hint: you may need another model"],
  ])("a refused file is named instead, in this call and in later ones (%s %s)", async (status, message) => {
    const refusal = JSON.stringify({ error: { message } });
    const server = await wireServer((socket, { body }) =>
      socket.write(
        body.includes("file_data")
          ? wireAnswer(refusal, "content-type: application/json", status)
          : wireAnswer(completion("ok")),
      ),
    );
    const model = chatModel(server);
    const request = { messages: [userOf([{ type: "text", text: "Look:" }, report])] };
    const before = await model.countPromptTokens(request);
    const answer = await ask(model, request);
    expect(answer).toMatchObject({ content: "ok", warnings: [{ code: "files_refused" }] });
    expect(answer.warnings?.[0]?.message).toContain(message);
    expect((await ask(model, request)).warnings).toBeUndefined();
    expect(server.requests).toHaveLength(3);
    expect(sentTo(server, 2)[0]?.content).toMatch(/\[file report\.pdf, application\/pdf, \d+ bytes: not shown\]/);
    // It is not counted any more either.
    expect(await model.countPromptTokens(request)).toBeLessThan(before - 10_000);
    // Another file is tried.
    await ask(model, { messages: [userOf([fileOf("application/pdf", pdf, "b.pdf")])] });
    expect(server.requests).toHaveLength(5);
  });

  it("a file that was accepted before stays when a later one is refused", async () => {
    const server = await wireServer((socket, { body }) => {
      const refusal = JSON.stringify({ error: { message: "Invalid file data: broken.pdf could not be parsed" } });
      const isRefused = body.includes('"filename":"broken.pdf"');
      socket.write(
        isRefused ? wireAnswer(refusal, "content-type: application/json", 400) : wireAnswer(completion("ok")),
      );
    });
    const model = chatModel(server);
    const first = userOf([{ type: "text", text: "Look:" }, report]);
    await ask(model, { messages: [first] });
    const broken = fileOf("application/pdf", pdf, "broken.pdf");
    await ask(model, { messages: [first, answered, userOf([broken])] });
    const last = JSON.stringify(sentTo(server, 2));
    expect(last).toContain('"filename":"report.pdf"');
    expect(last).toContain("[file broken.pdf, application/pdf");
  });

  it("a server that refuses images of tools, files and reasoning, one after the other, gets a prompt without them", async () => {
    const refusals = [
      ["image_url", "image_url is only supported by certain models"],
      ["file_data", "Unknown part type: file"],
      ["reasoning_content", "Invalid signature in thinking block"],
    ] as const;
    const server = await wireServer((socket, { body }) => {
      const [, message] = refusals.find(([field]) => body.includes(`"${field}"`)) ?? [];
      const refusal = JSON.stringify({ error: { message } });
      socket.write(
        message === undefined
          ? wireAnswer(completion("ok"))
          : wireAnswer(refusal, "content-type: application/json", 400),
      );
    });
    const model = chatModel(server);
    const image = { type: "image", url: "data:image/png;base64,iVBORw0KGgo=" } as const;
    const [, called, result] = toolOf([{ type: "text", text: "[image 1]" }, image]);
    const reasoning = { reasoning_content: "Hm." };
    const messages = [userOf([report]), { ...called, reasoning } as Message, result as Message];
    const request: ModelRequest = { messages };
    expect((await ask(model, request)).content).toBe("ok");
    expect(server.requests).toHaveLength(4);
    await ask(model, request);
    expect(server.requests).toHaveLength(5);
  });
});

const stream = (parts: readonly unknown[]) =>
  new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });

/** The prompts of a model of the AI SDK that answers nothing, or refuses these media types. */
function sdkModel(specificationVersion: "v3" | "v4", provider: string, refused?: RegExp) {
  const prompts: { readonly role: string; readonly content: readonly Record<string, unknown>[] }[][] = [];
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const model = aiSdkModel({
    specificationVersion,
    provider,
    modelId: "m",
    supportedUrls: { "application/pdf": [/^https:\/\/example\.com\//] },
    doStream: async (options: never) => {
      const { prompt } = options as { readonly prompt: (typeof prompts)[number] };
      prompts.push(prompt);
      if (refused?.test(JSON.stringify(prompt))) {
        const message = "'file part media type audio/wav' functionality not supported.";
        throw Object.assign(new Error(message), { name: "AI_UnsupportedFunctionalityError" });
      }
      return {
        stream: stream([
          { type: "text-start", id: "0" },
          { type: "text-delta", id: "0", delta: "ok" },
          { type: "text-end", id: "0" },
          { type: "finish", finishReason: { unified: "stop" }, usage },
        ]),
      };
    },
  });
  return { model, prompts };
}

describe("the AI SDK", () => {
  it.each([
    ["v3", base64(pdf), new URL("https://example.com/a.pdf")],
    ["v4", { type: "data", data: base64(pdf) }, { type: "url", url: new URL("https://example.com/a.pdf") }],
  ] as const)("%s takes files as parts with their type and name", async (version, data, url) => {
    const { model, prompts } = sdkModel(version, "google.generative-ai");
    const link = { type: "file", mediaType: "application/pdf", url: "https://example.com/a.pdf" } as const;
    await ask(model, { messages: [userOf([report, link, zip])] });
    expect(prompts[0]?.[0]?.content).toEqual([
      { type: "file", mediaType: "application/pdf", filename: "report.pdf", data },
      { type: "file", mediaType: "application/pdf", data: url },
      { type: "text", text: expect.stringContaining("artifact artifact_1, not shown]") },
    ]);
  });

  const image = { type: "image", url: "data:image/png;base64,AAAA" } as const;
  const content = [{ type: "text", text: "Two:" } as const, image, report];

  it.each([
    [
      "v4",
      { type: "file", mediaType: "image/png", data: { type: "data", data: "AAAA" } },
      { type: "file", mediaType: "application/pdf", filename: "report.pdf", data: { type: "data", data: base64(pdf) } },
    ],
    [
      "v3",
      { type: "image-data", mediaType: "image/png", data: "AAAA" },
      { type: "file-data", mediaType: "application/pdf", data: base64(pdf) },
    ],
  ] as const)("%s of Anthropic takes images and PDFs in results", async (version, picture, file) => {
    const { model, prompts } = sdkModel(version, "anthropic.messages");
    await ask(model, { messages: toolOf(content) });
    expect(prompts[0]?.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
    expect(prompts[0]?.[2]?.content[0]?.["output"]).toEqual({
      type: "content",
      value: [{ type: "text", text: "Two:" }, picture, file],
    });
  });

  it("of other providers, and of failed calls, they follow in a message of the user", async () => {
    for (const [provider, isError] of [
      ["google.generative-ai", false],
      ["anthropic.messages", true],
    ] as const) {
      const { model, prompts } = sdkModel("v4", provider);
      await ask(model, { messages: toolOf(content, isError) });
      expect(prompts[0]?.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
      expect(prompts[0]?.[2]?.content[0]?.["output"]).toMatchObject({ type: isError ? "error-text" : "text" });
      expect(prompts[0]?.[4]?.content.map(({ type }) => type)).toEqual(["text", "file", "file"]);
    }
  });

  it.each([
    ["anthropic.messages", true, true],
    ["googleVertex.anthropic.messages", true, true],
    ["openai.responses", true, true],
    ["azure.responses", true, true],
    ["amazon-bedrock", true, false],
    ["openai.chat", false, false],
    ["mistral.chat", false, false],
  ])("%s in results: images %s, PDFs %s", (provider, images, files) => {
    const takes = takesInResultOf(provider);
    expect([takes(image, {}), takes(report, {})]).toEqual([images, files]);
  });

  it("a file that the provider's package refuses is named instead", async () => {
    const { model, prompts } = sdkModel("v4", "x.chat", /"mediaType":"audio\/wav"/);
    const request = { messages: [userOf([{ type: "text", text: "Listen:" }, fileOf("audio/wav", "wav", "a.wav")])] };
    expect((await ask(model, request)).content).toBe("ok");
    expect(prompts).toHaveLength(2);
    expect(JSON.stringify(prompts[1])).toContain("[file a.wav, audio/wav, 3 bytes: not shown]");
  });
});

describe("the tokens of files", () => {
  const empty = promptByteBound({ messages: [userOf("")] });
  const tokensOf = (part: ContentPart, fileTokens?: number) =>
    promptByteBound({ messages: [userOf([part])] }, { fileTokens }) - empty;

  it("of a PDF are counted by its pages, also if they are compressed", () => {
    expect(tokensOf(report)).toBe(15_064);
    const objects = deflateSync(Buffer.from("<< /Type /Page >> ".repeat(7)));
    const head = Buffer.from("%PDF-1.5 << /Type /ObjStm /Filter /FlateDecode >>\nstream\n");
    const compressed = Buffer.concat([head, objects, Buffer.from("\nendstream")]);
    expect(tokensOf(fileOf("application/pdf", compressed))).toBe(35_064);
    const encrypted = Buffer.from(`%PDF-1.7 ${"x".repeat(9_000)}`);
    expect(tokensOf(fileOf("application/pdf", encrypted))).toBe(25_064);
  });

  it("a file with too many of them is named, unless the user sets them; a bomb is not unpacked", () => {
    const many = fileOf("application/pdf", "<< /Type /Pages /Count 999999 >>", "many.pdf");
    const bound = (fileTokens?: number) =>
      (openaiModel("m", { apiKey: "none", ...(fileTokens === undefined ? {} : { fileTokens }) }).boundPromptTokens?.({
        messages: [userOf([many])],
      }) ?? 0) - empty;
    expect(bound()).toBeLessThan(200);
    expect(bound(9)).toBe(9);
    const section = Buffer.concat([
      Buffer.from("/Type /ObjStm\nstream\n"),
      deflateSync(Buffer.alloc(30_000_000)),
      Buffer.from("\nendstream "),
    ]);
    const bomb = Buffer.concat(Array.from({ length: 200 }, () => section));
    // No page is found, so that the size counts.
    expect(tokensOf(fileOf("application/pdf", bomb))).toBe(64 + 5_000 * Math.ceil(bomb.length / 2_000));
  });

  it("of a recording are counted by its length or its size", () => {
    const wav = Buffer.alloc(320_044);
    wav.write("RIFF", 0, "latin1");
    wav.writeUInt32LE(32_000, 28);
    expect(tokensOf(fileOf("audio/wav", wav))).toBe(64 + 401);
    expect(tokensOf(fileOf("audio/mpeg", Buffer.alloc(48_000)))).toBe(1_064);
    expect(tokensOf(fileOf("text/plain", "a".repeat(900)))).toBe(964);
  });

  it("of an address are assumed, and can be set", async () => {
    const link = { type: "file", mediaType: "application/pdf", url: "https://example.com/a.pdf" } as const;
    expect(tokensOf(link)).toBe(100_064);
    expect(tokensOf(link, 7)).toBe(7);
    const counted = await countPromptTokens({ messages: [userOf([link])] }, { fileTokens: 7 });
    expect(counted - (await countPromptTokens({ messages: [userOf("")] }))).toBe(7);
    const model = openaiModel("m", { fileTokens: 7, apiKey: "none" });
    expect((model.boundPromptTokens?.({ messages: [userOf([report])] }) ?? 0) - empty).toBe(7);
  });

  it("text files count as their text", () => {
    const model = openaiModel("m", { apiKey: "none" });
    const bound = model.boundPromptTokens?.({ messages: [userOf([fileOf("text/plain", "a".repeat(900))])] }) ?? 0;
    expect(bound - empty).toBeGreaterThan(900);
    expect(bound - empty).toBeLessThan(1_000);
  });

  it.each([0, -1, 1.5, "7"])("%s is refused as fileTokens", (fileTokens) => {
    expect(() => openaiModel("m", { fileTokens: fileTokens as number })).toThrow(/fileTokens/);
    const sdk = {
      specificationVersion: "v4",
      provider: "p",
      modelId: "m",
      supportedUrls: {},
      doStream: async () => null,
    };
    expect(() => aiSdkModel(sdk as never, { fileTokens: fileTokens as number })).toThrow(/fileTokens/);
  });
});
