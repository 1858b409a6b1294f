import OpenAI from "openai";
import type { Line } from "./wire-client.ts";
import { type Asked, type Exchange, type Heard, type Hearing, stampTool, type Talk, type Wire } from "./wire.ts";

/**
 * Responses. Of three clients, the first names its conversation, the second names the previous response, and the third
 * creates its responses in the background and then follows them.
 */
export const openaiResponsesWire: Wire = {
  name: "openai-responses",
  surface: "openai",
  open: async (line, conversation) => new ResponsesTalk(line, conversation, new Map()),
};

type Response = OpenAI.Responses.Response;
type Event = OpenAI.Responses.ResponseStreamEvent;
type Params = Pick<OpenAI.Responses.ResponseCreateParams, "input" | "previous_response_id">;
const ways = ["conversation", "previous", "background"] as const;
const model = "teller";
const tools: OpenAI.Responses.FunctionTool[] = [{ type: "function", strict: false, ...stampTool }];

interface Round {
  readonly key: string;
  readonly hearing: Hearing;
}

class ResponsesTalk implements Talk {
  readonly deeds = ["talk", "work", "pay", "sign", "stamp", "ask", "drone"] as const;
  readonly #client: OpenAI;
  readonly #conversation: string;
  readonly #way: (typeof ways)[number];
  /** Known ids of responses by the keys of their requests, over all windows of the user. */
  readonly #responses: Map<string, string>;
  /** The last response, and the shown text of the running one. */
  #previous: string | undefined;
  #shown = new ShownResponse();
  #attempts = 0;

  constructor(line: Line, conversation: string, responses: Map<string, string>, previous?: string) {
    this.#conversation = conversation;
    this.#responses = responses;
    this.#previous = previous;
    this.#way = ways[line.place.number % ways.length] ?? "conversation";
    this.#client = new OpenAI({ apiKey: "none", baseURL: "http://127.0.0.1/v1", maxRetries: 0, fetch: line.fetch });
  }

  async twin(line: Line): Promise<Talk> {
    return new ResponsesTalk(line, this.#conversation, this.#responses, this.#previous);
  }

  async send({ key, text }: Exchange, hearing: Hearing): Promise<Heard> {
    return await this.#ask({ input: text, ...this.#after(this.#previous) }, { key, hearing });
  }

  async answer({ key, answer }: Exchange, asked: readonly Asked[], hearing: Hearing): Promise<Heard> {
    const input = asked.map(({ id, kind }) =>
      kind === "approval"
        ? ({ type: "mcp_approval_response", approval_request_id: id, approve: true } as const)
        : ({ type: "function_call_output", call_id: id, output: answer } as const),
    );
    const previous = asked[0]?.proof;
    const params = { input, ...(previous === undefined ? {} : { previous_response_id: previous }) };
    return await this.#ask(params, { key: `${key}-${asked[0]?.id.replaceAll(/[^\w-]/g, "-")}`, hearing });
  }

  async cancel({ key }: Exchange): Promise<void> {
    await this.#client.responses.cancel(this.#responses.get(key) ?? "");
  }

  #after(previous: string | undefined): object {
    if (this.#way === "conversation") return { conversation: this.#conversation };
    return previous === undefined ? {} : { previous_response_id: previous };
  }

  /** After a cut it alternately continues to follow the response or sends its request again. */
  async #ask(params: Params, round: Round): Promise<Heard> {
    this.#attempts += 1;
    const id = this.#responses.get(round.key);
    const goesOn = id !== undefined && this.#shown.id === id && this.#attempts % 2 === 0;
    if (!goesOn) this.#shown = new ShownResponse();
    const events = goesOn ? await this.#follow(id) : await this.#begin(params, round);
    for await (const event of events) {
      this.#shown.take(event);
      const { id: told } = this.#shown;
      if (told !== undefined) {
        this.#responses.set(round.key, told);
        round.hearing.isOf(turnOf(told));
      }
      round.hearing.show(this.#shown.text);
    }
    const heard = this.#shown.heard();
    this.#attempts = 0;
    if (heard.state !== "waiting") this.#previous = this.#shown.id;
    return heard;
  }

  async #follow(id: string): Promise<AsyncIterable<Event>> {
    return await this.#client.responses.retrieve(id, { stream: true, starting_after: this.#shown.last });
  }

  async #begin(params: Params, { key }: Round): Promise<AsyncIterable<Event>> {
    const options = { headers: { "idempotency-key": key } };
    const request = { model, tools, ...params };
    // The official client's helper checks that each event matches the previous ones.
    if (this.#way !== "background") return this.#client.responses.stream(request, options);
    const { id } = await this.#client.responses.create({ ...request, background: true }, options);
    return await this.#client.responses.retrieve(id, { stream: true });
  }
}

/** The client's view of a response after some of its events. */
class ShownResponse {
  id: string | undefined;
  last = -1;
  text = "";
  #item = "";
  #end: Response | undefined;

  take(event: Event): void {
    if (event.sequence_number <= this.last) {
      throw new Error(`event ${event.sequence_number}, ${event.type}, comes after ${this.last}`);
    }
    if (this.#end) throw new Error(`after its last event comes ${event.type}`);
    this.last = event.sequence_number;
    if ("response" in event) this.id = event.response.id;
    if (event.type === "response.output_text.delta") {
      this.text = this.#item === event.item_id ? this.text + event.delta : event.delta;
      this.#item = event.item_id;
    }
    if (event.type === "response.output_text.done") {
      const shown = this.#item === event.item_id ? this.text : "";
      if (shown !== event.text) throw new Error(`the pieces make "${shown}", the text is "${event.text}"`);
    }
    if (
      event.type === "response.completed" ||
      event.type === "response.incomplete" ||
      event.type === "response.failed"
    ) {
      this.#end = event.response;
    }
  }

  heard(): Heard {
    const response = this.#end;
    if (response === undefined) throw new Error("the stream ended without a last event");
    const asked = response.output.flatMap((item): Asked[] => {
      if (item.type === "mcp_approval_request") return [{ id: item.id, kind: "approval", proof: response.id }];
      if (item.type !== "function_call") return [];
      return [{ id: item.call_id, kind: "client", proof: response.id }];
    });
    return { state: stateOf(response, asked), text: this.text, asked };
  }
}

function stateOf({ status }: Response, asked: readonly Asked[]): Heard["state"] {
  if (status === "cancelled") return "canceled";
  if (status !== "completed") return "failed";
  return asked.length > 0 ? "waiting" : "completed";
}

/** The id of a response identifies its turn and its part of the turn. */
function turnOf(responseId: string): string {
  const [turnId = ""] = Buffer.from(responseId.replace(/^resp_/, ""), "base64url")
    .toString()
    .split(" ");
  return turnId;
}
