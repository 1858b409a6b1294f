import { describe } from "vitest";
import { queuesContract } from "../contracts/queues.contract.ts";
import { subjectOn } from "../support/bullmq-queues.ts";
import { postgresProgram } from "../support/postgres-server.ts";
import { postgresOfSuite } from "../support/postgres-suite.ts";

describe.skipIf(!postgresProgram)("Postgres", () => {
  const postgres = postgresOfSuite();
  queuesContract("BullMQ", () => subjectOn(postgres.server));
});
