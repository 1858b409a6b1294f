import { sqliteStores } from "../../src/stores/sqlite.ts";
import { storesContract } from "../contracts/stores.contract.ts";
import { temporaryFile } from "./temporary-file.ts";

storesContract("SQLite file", () => sqliteStores(temporaryFile()));
storesContract("SQLite in memory", () => sqliteStores(":memory:"));
