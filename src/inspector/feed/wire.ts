// The published format `troupe.feed/1`, for authors of front ends.
export * from "./answers.ts";
export * from "./messages.ts";
