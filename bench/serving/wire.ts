import { connect, type Socket } from "node:net";
import type { StoreKind } from "../ours/open-stores.ts";

export type ServerKind = "bare" | StoreKind;

export const token = "the-token-of-the-bench";
export const bearer = `Bearer ${token}`;
/** A route that requires a token and does not read the stores. */
export const listPath = "/api/definitions";

/** A hand-written keep-alive connection: the client of a bench must be cheaper than the server. */
export class Wire {
  readonly #socket: Socket;
  readonly #host: string;
  #text = "";
  #waiting: { readonly isWhole: (text: string) => boolean; readonly whole: PromiseWithResolvers<string> } | undefined;
  /** Resolves when the server has closed the connection. */
  readonly closed: Promise<void>;

  constructor(url: string) {
    const { hostname, port, host } = new URL(url);
    this.#host = host;
    this.#socket = connect({ host: hostname, port: Number(port) });
    this.#socket.setNoDelay(true);
    this.#socket.on("data", (bytes) => {
      this.#text += bytes.toString("latin1");
      const waiting = this.#waiting;
      if (!waiting?.isWhole(this.#text)) return;
      this.#waiting = undefined;
      const text = this.#text;
      this.#text = "";
      waiting.whole.resolve(text);
    });
    this.closed = new Promise((resolve) => {
      this.#socket.once("close", () => {
        this.#waiting?.whole.reject(new Error("the server has closed the connection"));
        resolve();
      });
    });
    this.#socket.on("error", () => undefined);
  }

  /** Resolves with a complete answer; it must have a content length. */
  async get(path: string): Promise<string> {
    return await this.#send(path, isWholeAnswer);
  }

  /** Opens a stream. Resolves with its head and ignores the rest. */
  async stream(path: string): Promise<void> {
    const head = await this.#send(path, (text) => text.includes("\r\n\r\n"));
    if (!head.startsWith("HTTP/1.1 200 ")) throw new Error(`${path} was answered ${head.slice(0, 200)}`);
    this.#socket.removeAllListeners("data");
    this.#socket.resume();
  }

  /** Requests a stream and never reads from it. */
  ignore(path: string): void {
    this.#socket.pause();
    this.#socket.write(this.#request(path));
  }

  close(): void {
    this.#socket.destroy();
  }

  async #send(path: string, isWhole: (text: string) => boolean): Promise<string> {
    const whole = Promise.withResolvers<string>();
    this.#waiting = { isWhole, whole };
    this.#socket.write(this.#request(path));
    return await whole.promise;
  }

  #request(path: string): string {
    return `GET ${path} HTTP/1.1\r\nHost: ${this.#host}\r\nAuthorization: ${bearer}\r\n\r\n`;
  }
}

function isWholeAnswer(text: string): boolean {
  const head = text.indexOf("\r\n\r\n");
  if (head < 0) return false;
  const [, length] = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, head)) ?? [];
  if (length === undefined) throw new Error(`an answer without a length: ${text.slice(0, head)}`);
  return text.length >= head + 4 + Number(length);
}
