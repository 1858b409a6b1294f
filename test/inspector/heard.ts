/** The messages that a reader has received so far, and waiting for more of them. */
export class Heard<Message> {
  readonly all: Message[] = [];
  readonly #waiting = new Set<() => void>();
  #hasEnded = false;

  add(message: Message): void {
    this.all.push(message);
    for (const look of this.#waiting) look();
  }

  /** Nothing more comes: pending waits reject. */
  end(): void {
    this.#hasEnded = true;
    for (const look of this.#waiting) look();
  }

  /** Resolves with the first past or future message that matches. */
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
      if (this.#hasEnded) reject(new Error("the connection ended before the message came"));
    };
    this.#waiting.add(look);
    look();
    return promise;
  }
}
