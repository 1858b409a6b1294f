import { connect, createServer, type Server, type Socket } from "node:net";

/** A proxy to a server that can swallow an answer and cut the connection, as a network that breaks at the worst moment. */
export class AnswerDropper {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #dropped: PromiseWithResolvers<void> | undefined;
  /** Texts of requests that are not passed on; each is used once. */
  readonly #lost: string[] = [];
  #afterLogin: Buffer | undefined;
  #gate: Promise<void> = Promise.resolve();

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(port: number): Promise<AnswerDropper> {
    const dropper = new AnswerDropper(
      createServer((near) => {
        void dropper.#gate.then(() => dropper.#join(near, connect(port, "127.0.0.1")));
      }),
    );
    await new Promise<void>((resolve) => dropper.#server.listen(0, "127.0.0.1", resolve));
    return dropper;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  /**
   * Swallows the next answer of the server, and cuts its connection. New connections wait until the work that follows is done.
   * Resolves when the answer was swallowed and the work is done.
   */
  async dropNext(meanwhile: () => Promise<void> = async () => undefined): Promise<void> {
    const dropped = Promise.withResolvers<void>();
    const open = Promise.withResolvers<void>();
    this.#dropped = dropped;
    this.#gate = open.promise;
    await dropped.promise;
    await meanwhile();
    open.resolve();
  }

  /** Cuts the connection on which a request with the first of these texts comes, before the server gets it; then the next ones. */
  loseRequests(...texts: string[]): void {
    this.#lost.push(...texts);
  }

  /** How many of the lost requests have not come yet. */
  get losing(): number {
    return this.#lost.length;
  }

  /** Adds bytes to the packet that ends the next login to Postgres. */
  addToLogin(bytes: Buffer): void {
    this.#afterLogin = bytes;
  }

  /** Whether a login with added bytes is still to come. */
  get isLoginAwaited(): boolean {
    return this.#afterLogin !== undefined;
  }

  stop(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #join(near: Socket, far: Socket): void {
    for (const socket of [near, far]) {
      this.#sockets.add(socket.on("error", () => undefined));
      socket.once("close", () => [near, far].forEach((one) => one.destroy()));
    }
    near.on("data", (bytes: Buffer) => {
      const [text] = this.#lost;
      if (text === undefined || !bytes.includes(text)) return far.write(bytes);
      this.#lost.shift();
      return near.destroy();
    });
    far.on("data", (bytes: Buffer) => {
      const added = this.#afterLogin;
      if (added && bytes.toString("latin1").startsWith("R") && bytes.toString("latin1").endsWith("Z\0\0\0\u0005I")) {
        this.#afterLogin = undefined;
        return near.write(Buffer.concat([bytes, added]));
      }
      if (!this.#dropped) return near.write(bytes);
      this.#dropped.resolve();
      this.#dropped = undefined;
      return near.destroy();
    });
  }
}
