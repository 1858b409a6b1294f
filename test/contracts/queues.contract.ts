import { afterEach, beforeEach, describe } from "vitest";
import type { Queues } from "../../src/queues/index.ts";
import { drainContract } from "./queues-drain.contract.ts";
import { endsContract } from "./queues-ends.contract.ts";
import type { QueuesSubject } from "./queues-fixtures.ts";
import { toolsContract } from "./queues-tools.contract.ts";
import { wakesContract } from "./queues-wakes.contract.ts";
import { workersContract } from "./queues-workers.contract.ts";

/** The contract of every queues adapter; `open` returns empty queues. */
export function queuesContract(name: string, open: () => QueuesSubject): void {
  describe(`${name} queues`, () => {
    let subject: QueuesSubject;
    let clients: Queues[];
    beforeEach(() => {
      clients = [];
      const opened = open();
      const client = (): Queues => {
        const queues = opened.client();
        clients.push(queues);
        return queues;
      };
      subject = { ...opened, client };
    });
    afterEach(async () => {
      await subject.soon(Promise.all(clients.map((client) => client.close())));
    });
    describe("wakes", () => {
      wakesContract(() => subject);
    });
    describe("tool jobs", () => {
      toolsContract(() => subject);
    });
    describe("workers", () => {
      workersContract(() => subject);
    });
    describe("ends", () => {
      endsContract(() => subject);
    });
    describe("leaving", () => {
      drainContract(() => subject);
    });
  });
}
