import type { ServerResponse } from "node:http";
import { onTestFinished } from "vitest";
import type { WireRefusal, WireReply } from "../../../examples/wire-formats/wire-format.ts";
import type { LanguageModel } from "../../../src/index.ts";
import { startRawServer } from "../../support/raw-server.ts";
import type { FamilyOptions, ModelFamily } from "./families.ts";

/** How a stream ends before its time: the connection breaks, the body ends, or nothing more comes. */
export type Cut = "broken" | "ended" | "silent";

/** An answer, which may be cut after the first half of its text, or a refusal. */
export type FamilyReply =
  | (WireReply & { readonly cut?: Cut })
  | (WireRefusal & { readonly headers?: Readonly<Record<string, string>> });

export interface FamilyServer {
  readonly model: (options?: FamilyOptions) => LanguageModel;
  /** The bodies of all requests. */
  readonly bodies: readonly Readonly<Record<string, unknown>>[];
  openConnections(): number;
}

/** A server in the format of one family, which gives these answers in turn, the last one again and again. */
export async function familyServer(family: ModelFamily, replies: readonly FamilyReply[]): Promise<FamilyServer> {
  const { format } = family;
  const bodies: Readonly<Record<string, unknown>>[] = [];
  const server = await startRawServer((_request, response, body) => {
    const reply = replies[Math.min(bodies.length, replies.length - 1)] ?? {};
    bodies.push(JSON.parse(body) as Readonly<Record<string, unknown>>);
    if ("status" in reply) {
      const refusal = format.refusal(reply);
      response.writeHead(reply.status, { "content-type": "application/json", ...refusal.headers, ...reply.headers });
      response.end(JSON.stringify(refusal.body));
    } else sendReply(response, family, reply);
  });
  onTestFinished(() => server.stop());
  return {
    bodies,
    model: (options) => family.model(server.origin, options),
    openConnections: () => server.openConnections(),
  };
}

function sendReply(
  response: ServerResponse,
  { format }: ModelFamily,
  { cut, ...reply }: Exclude<FamilyReply, WireRefusal>,
): void {
  const events = format.events(reply).map((event) => Buffer.from(event));
  response.writeHead(200, { "content-type": format.contentType });
  if (cut === undefined) {
    response.end(Buffer.concat(events));
    return;
  }
  const text = reply.text ?? "";
  const half = text.slice(0, Math.ceil(text.length / 2));
  const sent = Buffer.concat(events.slice(0, events.findIndex((event) => event.includes(half)) + 1));
  if (cut === "ended") response.end(sent);
  else response.write(sent, () => cut === "broken" && response.destroy());
}
