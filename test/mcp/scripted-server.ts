import type { ListedTool } from "../../src/mcp/listed-tool.ts";
import { serve } from "./served-desk.ts";

interface Message {
  readonly method: string;
  readonly id?: number;
  readonly params?: { readonly cursor?: string; readonly name?: string };
}

export interface ScriptedServer {
  readonly url: string;
  /** Number of calls of tools that have arrived. */
  calls(): number;
  /** Names of the tools that were called. */
  called(): readonly string[];
  /** Number of sessions that were opened. */
  sessions(): number;
}

export interface Replies {
  readonly result: (result: object) => Response;
  readonly text: (text: string) => Response;
  /** An error of the protocol. */
  readonly error: (code: number, message: string, data?: object) => Response;
}

export interface Script {
  /** The tools, or a page of them for a cursor. Default: one tool "work". */
  readonly tools?: readonly unknown[] | ((cursor: string | undefined) => object);
  /** Answers the call with this number, from 1. Default: the text "worked". */
  readonly call?: (number: number, request: Request, replies: Replies) => Response | Promise<Response>;
  /** Results of further methods. Default: none. */
  readonly answers?: Readonly<Record<string, object>>;
  /** Whether the server has sessions. Default false. */
  readonly hasSessions?: boolean;
}

const work: ListedTool = { name: "work", description: "Works.", inputSchema: { type: "object" } };

/** A server of the legacy era over HTTP with scripted answers. */
export async function openScripted({
  tools = [work],
  call,
  answers = {},
  hasSessions = false,
}: Script): Promise<ScriptedServer> {
  const called: string[] = [];
  let sessions = 0;
  const handler = async (request: Request): Promise<Response> => {
    if (request.method === "DELETE") return new Response(null, { status: 200 });
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const { method, id, params } = (await request.json()) as Message;
    const answer = (result: object, headers: Record<string, string> = {}): Response =>
      Response.json({ jsonrpc: "2.0", id, result }, { headers });
    const failure = (code: number, message: string, data?: object): Response =>
      Response.json({ jsonrpc: "2.0", id, error: { code, message, data } });
    if (id === undefined) return new Response(null, { status: 202 });
    if (method === "initialize") {
      sessions += 1;
      const headers: Record<string, string> = hasSessions ? { "mcp-session-id": `s${sessions}` } : {};
      const serverInfo = { name: "scripted", version: "1" };
      return answer({ protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo }, headers);
    }
    if (method === "tools/list") return answer(typeof tools === "function" ? tools(params?.cursor) : { tools });
    const other = method === "tools/call" ? undefined : answers[method];
    if (other !== undefined) return answer(other);
    if (method !== "tools/call") return failure(-32_601, "Method not found");
    called.push(params?.name ?? "");
    const text = (words: string): Response => answer({ content: [{ type: "text", text: words }] });
    const replies = { result: (result: object) => answer(result), text, error: failure };
    return call === undefined ? text("worked") : await call(called.length, request, replies);
  };
  const { url } = await serve(handler);
  return { url: `${url}/mcp`, calls: () => called.length, called: () => called, sessions: () => sessions };
}
