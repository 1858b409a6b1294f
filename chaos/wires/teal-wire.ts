import { turnOfRequestId } from "../../src/server/teal/task-ids.ts";
import { sseFrames } from "../../test/support/sse-frames.ts";
import { TEAL_VERSION } from "../serving/team.ts";
import type { Line } from "./wire-client.ts";
import type { Asked, Exchange, Heard, Hearing, Talk, Wire } from "./wire.ts";

/** It cannot end a running turn and has no official client; its clients use `fetch` and an event parser. */
export const tealWire: Wire = {
  name: "teal",
  surface: "teal",
  open: async (line) => new TealTalk(line, null),
};

const address = `/teller/${TEAL_VERSION}`;

/** The fields of the frames that a client reads. */
interface Frame {
  readonly task_id: string;
  readonly request_id: string;
  readonly output_partial?: string;
  readonly output?: string;
  readonly approval_url?: string;
  readonly tool_calls?: readonly { readonly id: string; readonly metadata: { readonly kind?: Asked["kind"] } }[];
}

class TealTalk implements Talk {
  readonly deeds = ["talk", "work", "pay", "sign", "ask"] as const;
  readonly #line: Line;
  #taskId: string | null;

  constructor(line: Line, taskId: string | null) {
    this.#line = line;
    this.#taskId = taskId;
  }

  async twin(line: Line): Promise<Talk> {
    return new TealTalk(line, this.#taskId);
  }

  async send({ key, text }: Exchange, hearing: Hearing): Promise<Heard> {
    const body = { task_id: this.#taskId, items: [{ content_type: "text", content: text }] };
    return await this.#streamed(`${address}/sse`, body, { key, hearing });
  }

  async answer({ key, answer }: Exchange, [asked]: readonly Asked[], hearing: Hearing): Promise<Heard> {
    const url = new URL(asked?.proof ?? "", "http://127.0.0.1");
    const path = `${url.pathname}/sse`;
    const round = { key: `${key}-${asked?.id.replaceAll(/[^\w-]/g, "-")}`, hearing };
    if (asked?.kind === "approval") return await this.#streamed(`${path}${url.search}`, {}, round);
    return await this.#streamed(path, { action: "answer", result: answer }, round);
  }

  async cancel(): Promise<void> {
    throw new Error("there is no such request");
  }

  async #streamed(path: string, body: object, { key, hearing }: { key: string; hearing: Hearing }): Promise<Heard> {
    const response = await this.#line.fetch(`http://127.0.0.1${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": key },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${await response.text()}`);
    let text = "";
    for await (const { event, data } of sseFrames(response)) {
      const frame = JSON.parse(data) as Frame;
      this.#taskId ??= frame.task_id;
      hearing.isOf(turnOfRequestId(frame.request_id) ?? frame.request_id);
      text += frame.output_partial ?? "";
      hearing.show(text);
      if (event !== "partial-response") return heardOf(event, frame, text);
    }
    throw new Error("the stream ended without a last event");
  }
}

/** The text joined from the pieces, which must equal the output. */
function heardOf(event: string | undefined, frame: Frame, text: string): Heard {
  if (event === "hitl-response") {
    const proof = frame.approval_url;
    const asked = frame.tool_calls ?? [];
    return {
      state: "waiting",
      text,
      asked: asked.map(({ id, metadata: { kind = "approval" } }) => ({ id, kind, proof })),
    };
  }
  if (event !== "final-response") return { state: "failed", text, asked: [] };
  if (frame.output === undefined) return { state: "canceled", text, asked: [] };
  if (frame.output !== text) throw new Error(`the pieces make "${text}", the output is "${frame.output}"`);
  return { state: "completed", text, asked: [] };
}
