import { afterEach, describe, expect, it } from "vitest";
import OpenAI from "openai";
import { httpFetch } from "../../src/model/index.ts";
import { startModelServer } from "../support/model-server.ts";
import { type RawServer, startRawServer } from "../support/raw-server.ts";

let server: RawServer | undefined;
afterEach(() => server?.stop());

async function origin(handle: Parameters<typeof startRawServer>[0]): Promise<string> {
  server = await startRawServer(handle);
  return server.origin;
}

const readings = [(response: Response) => response.text(), (response: Response) => new Response(response.body).text()];

describe("httpFetch", () => {
  it("sends method, headers and body, and gives status, headers and text", async () => {
    const url = await origin((request, response, body) => {
      response.writeHead(418, {
        "x-seen": `${request.method} ${request.url} ${String(request.headers["x-a"])}`,
        "set-cookie": ["a=1", "b=2"],
      });
      response.end(body.toUpperCase());
    });
    const response = await httpFetch(`${url}/path?q=1`, { method: "POST", headers: { "x-a": "1" }, body: "grüße" });
    expect([response.status, response.ok, response.url]).toEqual([418, false, `${url}/path?q=1`]);
    expect(response.headers.get("X-Seen")).toBe("POST /path?q=1 1");
    expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    expect(await response.text()).toBe("GRÜSSE");
    expect(response.bodyUsed).toBe(true);
    await expect(response.text()).rejects.toThrow("already read");
  });

  it("keeps characters whole that are cut between packets", async () => {
    const bytes = Buffer.from("€uro");
    const url = await origin((_request, response) => {
      response.write(bytes.subarray(0, 1), () => response.end(bytes.subarray(1)));
    });
    expect(await (await httpFetch(url)).text()).toBe("€uro");
  });

  it("gives the body in its other forms as well", async () => {
    const url = await origin((_request, response) => void response.end('{"a":1}'));
    expect(await (await httpFetch(new URL(url))).json()).toEqual({ a: 1 });
    expect(Buffer.from(await (await httpFetch(url)).bytes()).toString()).toBe('{"a":1}');
    expect(await new Response((await httpFetch(url)).body).text()).toBe('{"a":1}');
  });

  it("rejects with the signal's reason: before, while waiting, and inside the body", async () => {
    const url = await origin((request, response) => {
      if (request.url === "/body") response.write("begun");
    });
    const reason = new Error("enough");
    await expect(httpFetch(url, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const waiting = new AbortController();
    const call = httpFetch(url, { signal: waiting.signal });
    setImmediate(() => waiting.abort(reason));
    await expect(call).rejects.toBe(reason);
    for (const read of readings) {
      const inBody = new AbortController();
      const response = await httpFetch(`${url}/body`, { signal: inBody.signal });
      const text = read(response);
      setImmediate(() => inBody.abort(reason));
      await expect(text).rejects.toBe(reason);
    }
    await expect.poll(() => server?.openConnections()).toBe(0);
  });

  it("rejects with a TypeError when the connection is cut, also when nobody reads yet", async () => {
    const url = await origin((_request, response) => {
      response.writeHead(200, { "content-length": "10" });
      response.write("half", () => response.destroy());
    });
    for (const read of readings) {
      const response = await httpFetch(url);
      await expect.poll(() => server?.openConnections()).toBe(0);
      // By the end of another exchange this side has noticed the cut as well.
      await expect(read(await httpFetch(url))).rejects.toThrow(/terminated/);
      await expect(read(response)).rejects.toThrow(TypeError);
    }
  });

  it("refuses bodies and inputs that it cannot send", async () => {
    await expect(httpFetch("http://127.0.0.1:1", { method: "POST", body: new FormData() })).rejects.toThrow(TypeError);
    await expect(httpFetch(new Request("http://127.0.0.1:1"))).rejects.toThrow(TypeError);
    await expect(httpFetch("no url")).rejects.toThrow(TypeError);
  });

  it("serves the openai client in its own ways: whole, streamed, and with errors", async () => {
    const models = await startModelServer((_body, { index }) =>
      index < 2 ? { text: "hello", deltas: ["hel", "lo"] } : { status: 404 },
    );
    try {
      const client = new OpenAI({ apiKey: "k", baseURL: models.baseURL, maxRetries: 0, fetch: httpFetch });
      const body = { model: "m", messages: [{ role: "user", content: "hi" }] } as const;
      const whole = await client.chat.completions.create({ ...body, messages: [...body.messages] });
      expect(whole.choices[0]?.message.content).toBe("hello");
      let text = "";
      for await (const chunk of await client.chat.completions.create({
        ...body,
        messages: [...body.messages],
        stream: true,
      })) {
        text += chunk.choices[0]?.delta.content ?? "";
      }
      expect(text).toBe("hello");
      await expect(client.chat.completions.create({ ...body, messages: [...body.messages] })).rejects.toThrow("404");
    } finally {
      await models.stop();
    }
  });
});
