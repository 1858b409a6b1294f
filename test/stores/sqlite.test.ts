import { sqliteStores } from "../../src/stores/sqlite.ts";
import { storesContract } from "../contracts/stores.contract.ts";
import { inFull } from "../support/full.ts";
import { temporaryFile } from "./temporary-file.ts";

storesContract("SQLite file", () => sqliteStores(temporaryFile()));
inFull(() => storesContract("SQLite in memory", () => sqliteStores(":memory:")));
