/** `openaiModel()` against a server of the protocol: a streamed answer, an overloaded server, and the proxy of the environment. */
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { createAgent, openaiModel } from "troupe";

const chunk = (delta: object, more: object = {}): string =>
  `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "any", choices: [{ index: 0, delta, finish_reason: null, ...more }] })}\n\n`;
const requested: string[] = [];
const server = createServer((request, response) => {
  requested.push(request.url ?? "");
  request.resume();
  if (requested.length === 1) {
    response
      .writeHead(529, { "retry-after": "0", "content-type": "application/json" })
      .end('{"error":{"message":"busy"}}');
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const text of ["The key ", "hangs ", "outside."]) response.write(chunk({ role: "assistant", content: text }));
  response.write(chunk({}, { finish_reason: "stop" }));
  response.write(
    'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"any","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}\n\n',
  );
  response.end("data: [DONE]\n\n");
});
const proxied: string[] = [];
server.on("connect", ({ url }, socket) => {
  proxied.push(url ?? "");
  const through = connect(port, "127.0.0.1", () => {
    socket.write("HTTP/1.1 200 OK\r\n\r\n");
    socket.pipe(through).pipe(socket);
  });
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const { port } = server.address() as AddressInfo;

// With "proxy", this server is the proxy too, and the host of the model does not exist.
const isProxied = process.argv[2] === "proxy";
if (isProxied) process.env["HTTP_PROXY"] = `http://127.0.0.1:${port}`;
const baseURL = isProxied ? "http://model.invalid/v1" : `http://127.0.0.1:${port}/v1`;
const agent = await createAgent({ model: openaiModel("any", { apiKey: "none", baseURL }), streaming: "always" });
await agent.start();
const turn = agent.executeTurn("Where is the key?");
let deltas = 0;
for await (const { type } of turn) if (type === "text.delta") deltas += 1;
const { text } = await turn.result;
await agent.runtime.shutdown();
server.closeAllConnections();
server.close();
process.stdout.write(
  JSON.stringify({ text, isStreamed: deltas > 0, requests: requested.length, proxied: [...new Set(proxied)] }),
);
