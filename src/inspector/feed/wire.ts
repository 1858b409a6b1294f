// The published format `troupe.feed/1`, which front ends are written against.
export * from "./answers.ts";
export * from "./messages.ts";
