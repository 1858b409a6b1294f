/** What a reader has heard so far, to wait for more of it. */
export class Heard<Message> {
  readonly all: Message[] = [];
  readonly #waiting = new Set<() => void>();
  #hasEnded = false;

  add(message: Message): void {
    this.all.push(message);
    for (const look of this.#waiting) look();
  }

  /** Nothing more comes: who still waits is told so. */
  end(): void {
    this.#hasEnded = true;
    for (const look of this.#waiting) look();
  }

  /** Resolves with the first message, past or coming, that passes. */
  until(passes: (message: Message) => boolean): Promise<Message> {
    const { promise, resolve, reject } = Promise.withResolvers<Message>();
    let seen = 0;
    const look = (): void => {
      while (seen < this.all.length) {
        const message = this.all[seen] as Message;
        seen += 1;
        if (!passes(message)) continue;
        this.#waiting.delete(look);
        return resolve(message);
      }
      if (this.#hasEnded) reject(new Error("the connection ended before it came"));
    };
    this.#waiting.add(look);
    look();
    return promise;
  }
}
