import { defineAgent } from "troupe";

const desk = defineAgent({ name: "desk", model: "offline" });
export { desk as default };
