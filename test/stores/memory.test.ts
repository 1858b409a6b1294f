import { memoryStores } from "../../src/stores/memory.ts";
import { storesContract } from "../contracts/stores.contract.ts";

storesContract("memory", () => memoryStores());
