export * from "./json.ts";
export * from "./message.ts";
export * from "./model-call.ts";
