import type { WebSocket } from "ws";

/** Most bytes in the buffer of the socket before the next frame is sent. */
const socketBytes = 1_000_000;
/** Most bytes that wait for a client; a slower one is disconnected. */
export const mostWaitingBytes = 32_000_000;

/**
 * The outgoing frames of one client.
 * Owns: the frames that wait. Does not own: the socket, but terminates one that is too slow.
 */
export class FrameClient {
  readonly #socket: WebSocket;
  readonly #mostWaiting: number;
  #waiting: string[] = [];
  /** How many of them are sent. */
  #sent = 0;
  #bytes = 0;
  #sending = false;

  constructor(socket: WebSocket, mostWaiting: number) {
    this.#socket = socket;
    this.#mostWaiting = mostWaiting;
  }

  send(text: string): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    this.#waiting.push(text);
    this.#bytes += text.length;
    if (this.#bytes + this.#socket.bufferedAmount > this.#mostWaiting) this.drop();
    else this.#pump();
  }

  drop(): void {
    this.#waiting = [];
    this.#sent = 0;
    this.#bytes = 0;
    this.#socket.terminate();
  }

  #pump(): void {
    if (this.#sending) return;
    this.#sending = true;
    while (this.#sent < this.#waiting.length && this.#socket.bufferedAmount < socketBytes) {
      const text = this.#waiting[this.#sent] ?? "";
      this.#sent += 1;
      this.#bytes -= text.length;
      this.#socket.send(text, () => this.#pump());
    }
    if (this.#sent * 2 >= this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#sent);
      this.#sent = 0;
    }
    this.#sending = false;
  }
}
