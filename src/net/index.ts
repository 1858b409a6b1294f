export { isLoopbackName, isPublicAddress } from "./public-address.ts";
