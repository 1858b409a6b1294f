import { defineAgent } from "troupe";

export const agent = defineAgent({ name: "desk", model: "offline" });
