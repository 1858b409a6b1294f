import { existsSync } from "node:fs";
import { offlineModel, openaiModel } from "troupe";

if (existsSync(".env")) process.loadEnvFile(".env");

// With a key, a language model. Without one, rules that choose a tool by the words of the message and need no network.
// Other providers: npm install @ai-sdk/anthropic, and aiSdkModel(anthropic("…")) of "troupe/models/ai-sdk".
export const model = process.env["OPENAI_API_KEY"]
  ? openaiModel(process.env["OPENAI_MODEL"] || "gpt-5-mini")
  : offlineModel();
