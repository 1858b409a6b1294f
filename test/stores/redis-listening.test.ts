import { createServer, connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { NOW } from "../contracts/names.ts";
import { agentKey, openAgent } from "../contracts/stores-fixtures.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";

/** A proxy to Redis that breaks a connection when its client subscribes on it, a given number of times. */
async function breakingWay(port: number, breaks: number) {
  const sockets = new Set<Socket>();
  let left = breaks;
  let attempts = 0;
  const way = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    for (const socket of [near, far]) {
      sockets.add(socket.on("error", () => undefined));
      socket.once("close", () => [near, far].forEach((one) => one.destroy()));
    }
    near.on("data", (bytes: Buffer) => {
      const isListening = /\r\nsubscribe\r\n/i.test(bytes.toString("latin1"));
      if (isListening) attempts += 1;
      // The first subscription succeeds: this tests the repair of a connection that was already subscribed.
      if (!isListening || attempts === 1) far.write(bytes);
      else if (left > 0) {
        left -= 1;
        near.destroy();
      } else far.write(bytes);
    });
    far.on("data", (bytes: Buffer) => near.write(bytes));
  });
  await new Promise<void>((resolve) => way.listen(0, "127.0.0.1", resolve));
  const address = way.address();
  if (address === null || typeof address === "string") throw new Error("the client is not subscribed");
  return {
    url: `redis://127.0.0.1:${address.port}`,
    breaksLeft: () => left,
    stop: () => {
      for (const socket of sockets) socket.destroy();
      way.close();
    },
  };
}

test.skipIf(!redisProgram)(
  "a listener still receives writes after its connection broke while it was resubscribing",
  async () => {
    const server = await RedisServer.start();
    const way = await breakingWay(server.port, 3);
    const prefix = ownPrefix();
    const stores = storesOn(server, { prefix });
    const other = storesOn(server, { prefix, url: way.url });
    await openAgent(stores);
    const client = server.client();
    let calls = 0;
    let wanted = Promise.withResolvers<void>();
    other.onForeignWrite(() => {
      calls += 1;
      wanted.resolve();
    });
    const heard = async (): Promise<void> => {
      for (let before = calls; calls === before; ) {
        wanted = Promise.withResolvers();
        await stores.pause(agentKey(), "ann", NOW);
        await stores.resume(agentKey(), "ann", NOW);
        await Promise.race([wanted.promise, new Promise((resolve) => setTimeout(resolve, 50))]);
      }
    };
    await heard();
    await client.call("CLIENT", "KILL", "TYPE", "pubsub");
    await heard();
    while (way.breaksLeft() > 0) await heard();
    await heard();
    expect(way.breaksLeft()).toBe(0);
    client.disconnect();
    await stores.close();
    await other.close();
    way.stop();
    await server.stop();
  },
);
