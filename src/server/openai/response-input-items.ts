import { type AgentRequest, type Content, type ContentPart, fileMark, type JsonObject } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { sealedId } from "../core/url-ids.ts";
import { itemId, partBegunBy, partName, type TurnPart } from "./response-ids.ts";
import { beginningOf } from "./response-reading.ts";

/** The input of a response: the messages of its turn, or the answers that it follows. */
export async function inputItemsOf(caller: Caller, part: TurnPart): Promise<readonly JsonObject[]> {
  const { agent, begin } = part;
  if (begin === null) {
    const { inputMessageIds } = await beginningOf(caller, part);
    const { runtime } = caller;
    const key = { tenant: runtime.tenant, agentId: agent.agentId };
    return (await runtime.stores.messagesById(key, inputMessageIds)).map(messageItem);
  }
  const own = partName(begin);
  const decided = await caller.decidedRequests(agent.rootAgentId);
  return decided.filter((one) => one.requestId === begin || partBegunBy(one) === own).map(answerItem);
}

function messageItem({ id, content }: { readonly id: string; readonly content: Content }): JsonObject {
  const parts = typeof content === "string" ? [{ type: "text", text: content } as const] : content;
  return {
    type: "message",
    id: itemId.message(id),
    role: "user",
    status: "completed",
    content: parts.map(contentItem),
  };
}

function contentItem(part: ContentPart): JsonObject {
  if (part.type === "text") return { type: "input_text", text: part.text };
  if (part.type === "image") return { type: "input_image", image_url: part.url, file_id: null, detail: "auto" };
  const { url, name } = part;
  if (url === undefined) return { type: "input_text", text: fileMark(part) };
  const named = name === undefined ? {} : { filename: name };
  return { type: "input_file", ...named, ...(url.startsWith("data:") ? { file_data: url } : { file_url: url }) };
}

function answerItem({ requestId, kind, decision }: AgentRequest): JsonObject {
  if (kind === "client" || kind === "question") {
    const output = decision?.result?.text ?? decision?.reason ?? "";
    const call_id = itemId.callId(requestId);
    return { type: "function_call_output", id: sealedId("fco", requestId), call_id, output, status: "completed" };
  }
  return {
    type: "mcp_approval_response",
    id: sealedId("mcpa", requestId),
    approval_request_id: itemId.approval(requestId),
    approve: decision?.verdict !== "rejected" && decision?.verdict !== "expired",
    reason: decision?.reason ?? null,
  };
}
