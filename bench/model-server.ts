/**
 * A model server for the bench, in a separate process: `POST /v1/chat/completions`, whole or streamed, on loopback.
 * It prints its base URL as its only line. Its answers depend on the model's name: see `model-answers.ts`.
 * `GET /requests` returns the number of answers so far, so that the bench can check that the work was done.
 *
 * It exits on SIGTERM and when its parent process has exited for any reason. Started by hand, it keeps running.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type ModelBehaviour, modelBehaviour, withId } from "./model-answers.ts";

interface ChatRequest {
  readonly model: string;
  readonly stream: boolean;
  readonly toolMessages: number;
}

const behaviours = new Map<string, ModelBehaviour | undefined>();
let answered = 0;

function behaviourOf(model: string): ModelBehaviour | undefined {
  if (!behaviours.has(model)) behaviours.set(model, modelBehaviour(model));
  return behaviours.get(model);
}

/** Throws if the body is not a chat request. */
function parseChatRequest(body: string): ChatRequest {
  const parsed = JSON.parse(body) as { model: string; stream?: boolean; messages: readonly { role: string }[] };
  let toolMessages = 0;
  for (let index = parsed.messages.length - 1; index >= 0; index -= 1) {
    const role = parsed.messages[index]?.role;
    if (role === "user") break;
    if (role === "tool") toolMessages += 1;
  }
  return { model: parsed.model, stream: parsed.stream === true, toolMessages };
}

function refuse(response: ServerResponse, status: number, message: string): void {
  const body = JSON.stringify({ error: { message, type: "invalid_request_error", param: null, code: null } });
  response.writeHead(status, { "content-type": "application/json" });
  response.end(body);
}

function sendStream(response: ServerResponse, pieces: readonly string[]): void {
  const id = answered;
  response.writeHead(200, ["content-type", "text/event-stream"]);
  let next = 0;
  const sendNext = (): void => {
    const piece = pieces[next];
    next += 1;
    if (piece === undefined || response.destroyed) return;
    if (next === pieces.length) {
      response.end(withId(piece, id));
      return;
    }
    response.write(withId(piece, id));
    setImmediate(sendNext);
  };
  sendNext();
}

function complete(body: string, response: ServerResponse): void {
  let request: ChatRequest;
  try {
    request = parseChatRequest(body);
  } catch {
    refuse(response, 400, "The body is not a chat completion request: expected JSON with model and messages.");
    return;
  }
  const behaviour = behaviourOf(request.model);
  if (behaviour === undefined) {
    refuse(response, 404, `No model "${request.model}": expected one, loop-N, child-N, calls-N, spawn-N or stream-N.`);
    return;
  }
  const answer = behaviour.answer(request.toolMessages);
  if (answer === undefined) {
    refuse(
      response,
      400,
      `${request.toolMessages} tool messages after the last user message do not fit ${request.model}.`,
    );
    return;
  }
  answered += 1;
  if (request.stream) {
    sendStream(response, answer.streamed);
    return;
  }
  const whole = withId(answer.whole, answered);
  response.writeHead(200, ["content-type", "application/json", "content-length", String(whole.length)]);
  response.end(whole);
}

function handle(request: IncomingMessage, response: ServerResponse): void {
  if (request.method === "POST" && request.url === "/v1/chat/completions") {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => complete(Buffer.concat(parts).toString("utf8"), response));
    return;
  }
  if (request.method === "GET" && request.url === "/requests") {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ answered }));
    return;
  }
  refuse(response, 404, `Nothing at ${request.method ?? ""} ${request.url ?? ""}.`);
}

const server = createServer(handle);
// Clients keep their connections between rounds, so no round includes reconnecting.
server.keepAliveTimeout = 600_000;
server.requestTimeout = 0;

process.on("SIGTERM", () => process.exit(0));
if (process.send !== undefined) {
  process.on("disconnect", () => process.exit(0));
  // Ctrl-C is sent to the whole process group; ignore it, because the bench stops this process after its last call.
  process.on("SIGINT", () => undefined);
  if (!process.connected) process.exit(0);
}

server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`http://127.0.0.1:${port}/v1\n`);
});
