/** The agent file of the servers that RESTART and SURVIVOR kill: `CHAOS_MODEL` is the address of its model. */
import { defineAgent, openaiModel } from "../../src/index.ts";

const baseURL = process.env["CHAOS_MODEL"] ?? "";

/** An agent whose only model call is as slow as its server. */
export const agent = defineAgent({ name: "slow", model: openaiModel("slow", { apiKey: "none", baseURL }) });
