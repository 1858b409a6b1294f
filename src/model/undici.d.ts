/** Parts of `undici` that are loaded alone: the whole takes a tenth of a second. */
declare module "undici/lib/core/connect.js" {
  export { buildConnector as default } from "undici";
}
declare module "undici/lib/dispatcher/client.js" {
  export { Client as default } from "undici";
}
