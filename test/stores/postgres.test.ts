import { describe } from "vitest";
import { storesContract } from "../contracts/stores.contract.ts";
import { postgresProgram } from "../support/postgres-server.ts";
import { postgresOfSuite } from "../support/postgres-suite.ts";

describe.skipIf(!postgresProgram)("one server", () => {
  const postgres = postgresOfSuite();
  storesContract("Postgres", () => postgres.empty());
});
