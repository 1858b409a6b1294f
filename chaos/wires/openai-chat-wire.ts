import OpenAI, { APIError } from "openai";
import { questionPrefix } from "../model/script.ts";
import type { Line } from "./wire-client.ts";
import {
  type Asked,
  type Deed,
  type Exchange,
  type Heard,
  type Hearing,
  stampTool,
  type Talk,
  type Wire,
} from "./wire.ts";

/**
 * Chat completions. Of four clients, the first sends its whole history with each request, the second only names its
 * conversation, and the third has no conversation. The fourth has no key either: it reads whole answers, and the official
 * client repeats cut requests with `x-stainless-retry-count`.
 */
export const openaiChatWire: Wire = {
  name: "openai-chat",
  surface: "openai",
  open: async (line, conversation) => new ChatTalk(line, conversation, []),
};

type Message = OpenAI.ChatCompletionMessageParam;
const ways = ["history", "named", "keyed", "repeated"] as const;
const model = "teller";
const tools = [{ type: "function", function: stampTool } as const];

/** Extensions to the protocol in the last chunk of an answer. */
interface More {
  readonly turnId: string;
  readonly status?: string;
  readonly requests?: readonly { readonly requestId: string; readonly kind: Asked["kind"]; argumentsHash: string }[];
}

interface Told {
  readonly message: OpenAI.ChatCompletionMessage;
  readonly more: More;
}

class ChatTalk implements Talk {
  readonly #line: Line;
  readonly #client: OpenAI;
  readonly #conversation: string;
  readonly #way: (typeof ways)[number];
  /** Messages before the exchange, and those of the exchange so far. */
  #before: readonly Message[];
  #now: readonly Message[] = [];
  #attempts = 0;

  constructor(line: Line, conversation: string, before: readonly Message[]) {
    this.#line = line;
    this.#conversation = conversation;
    this.#before = before;
    this.#way = ways[line.place.number % ways.length] ?? "history";
    const maxRetries = this.#way === "repeated" ? 1_000 : 0;
    this.#client = new OpenAI({ apiKey: "none", baseURL: "http://127.0.0.1/v1", maxRetries, fetch: line.fetch });
  }

  get isSingle(): boolean {
    return this.#way === "keyed" || this.#way === "repeated";
  }

  get isUnkeyed(): boolean {
    return this.#way === "repeated";
  }

  /** Approvals and questions require a conversation to return to. */
  get deeds(): readonly Deed[] {
    return this.isSingle ? ["talk", "work", "sign", "stamp"] : ["talk", "work", "sign", "stamp", "pay", "ask"];
  }

  async twin(line: Line): Promise<Talk> {
    return new ChatTalk(line, this.#conversation, this.#before);
  }

  async send(exchange: Exchange, hearing: Hearing): Promise<Heard> {
    const { key, text } = exchange;
    return await this.#ask([{ role: "user", content: text }], { key, hearing });
  }

  async answer(exchange: Exchange, asked: readonly Asked[], hearing: Hearing): Promise<Heard> {
    const { key, answer } = exchange;
    const [first] = asked;
    const isQuestion = first?.kind === "question";
    const round = { key: `${key}-${isQuestion ? "answer" : first?.id.replaceAll(/[^\w-]/g, "-")}`, hearing };
    if (first?.kind === "approval") {
      for (const one of asked) await this.#approve(one);
      // The outcome of the approval is part of the answer to the request that waited for it.
      return await this.send(exchange, hearing);
    }
    const said = asked.map(({ id, kind }): Message => {
      return kind === "client"
        ? { role: "tool", tool_call_id: id, content: answer }
        : { role: "user", content: answer };
    });
    // Only the header names the conversation of a question.
    return await this.#ask(isQuestion && this.#way === "named" ? said : [...this.#now, ...said], round);
  }

  async cancel(): Promise<void> {
    throw new Error("there is no such request");
  }

  /** Uses troupe's own API, because the protocol has no such request. */
  async #approve({ id, proof }: Asked): Promise<void> {
    const response = await this.#line.fetch(`http://127.0.0.1/api/requests/${id.replace("#", ".")}`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": `approve-${id.replaceAll(/[^\w-]/g, "-")}` },
      body: JSON.stringify({ verdict: "approved", argumentsHash: proof }),
    });
    const body = await response.text();
    if (!response.ok) throw new Error(`an approval was answered ${response.status}: ${body}`);
  }

  async #ask(own: readonly Message[], round: { readonly key: string; readonly hearing: Hearing }): Promise<Heard> {
    const { hearing } = round;
    this.#attempts += 1;
    const messages = [...(this.#way === "history" ? this.#before : []), ...own];
    const headers = {
      ...(this.isSingle ? {} : { "x-troupe-conversation": this.#conversation }),
      ...(this.isUnkeyed ? {} : { "idempotency-key": round.key }),
      ...(this.isUnkeyed && this.#attempts > 1 ? { "x-stainless-retry-count": "1" } : {}),
    };
    let told: Told;
    try {
      told = this.isUnkeyed
        ? await this.#whole(messages, headers)
        : await this.#streamed(messages, { headers, hearing });
    } catch (error) {
      if (error instanceof APIError && error.type === "server_error" && error.status !== 503) return failed;
      throw error;
    }
    this.#attempts = 0;
    hearing.isOf(told.more.turnId);
    const heard = heardOf(told);
    const answered: Message = { role: "assistant", content: told.message.content, ...callsOf(told.message) };
    if (heard.state === "waiting") this.#now = [...own, answered];
    else this.#before = [...this.#before, ...own, answered];
    return heard;
  }

  async #whole(messages: Message[], headers: Readonly<Record<string, string>>): Promise<Told> {
    const completion = await this.#client.chat.completions.create({ model, messages, tools }, { headers });
    return toldOf(completion, (completion as unknown as { readonly troupe?: More }).troupe);
  }

  async #streamed(
    messages: Message[],
    { headers, hearing }: { readonly headers: Readonly<Record<string, string>>; readonly hearing: Hearing },
  ): Promise<Told> {
    let more: More | undefined;
    const stream = this.#client.chat.completions.stream({ model, messages, tools }, { headers });
    stream.on("content", (_, text) => hearing.show(lastOf(text)));
    stream.on("chunk", (chunk) => {
      const { troupe } = chunk as { readonly troupe?: Partial<More> };
      if (typeof troupe?.turnId === "string") more = { ...troupe, turnId: troupe.turnId };
    });
    return toldOf(await stream.finalChatCompletion(), more);
  }
}

const failed: Heard = { state: "failed", text: "", asked: [] };
const question = { id: "question", kind: "question" } as const;

function toldOf({ choices }: OpenAI.ChatCompletion, more: More | undefined): Told {
  const [choice] = choices;
  if (choice === undefined || more === undefined) throw new Error("an answer without a choice, or without its turn");
  return { message: choice.message, more };
}

function heardOf({ message, more: { status, requests = [] } }: Told): Heard {
  const text = lastOf(message.content ?? "");
  // The answer to a request that led to a question is this question, even after the end of its turn.
  if (message.content?.startsWith(questionPrefix)) return { state: "waiting", text, asked: [question] };
  if (status !== "waiting") return { state: status === "completed" ? "completed" : "failed", text, asked: [] };
  const calls = (message.tool_calls ?? []).map(({ id }) => ({ id, kind: "client" }) as const);
  const others = requests.filter(({ kind }) => kind !== "client");
  const asked = others.map(({ requestId: id, kind, argumentsHash: proof }) => ({ id, kind, proof }));
  return { state: "waiting", text, asked: [...calls, ...asked] };
}

/** The agent's last texts. Texts are separated by an empty line, and the note about an open request is one of them. */
function lastOf(text: string): string {
  const last = text.split("\n\n").at(-1) ?? "";
  return notes.some((note) => last.startsWith(note) || note.startsWith(last)) ? "" : last;
}

const notes = ["This waits for approval: ", questionPrefix];

function callsOf({ tool_calls: calls }: OpenAI.ChatCompletionMessage): object {
  return calls === undefined || calls.length === 0 ? {} : { tool_calls: calls };
}
